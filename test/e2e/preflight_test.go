// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/test/cluster"
)

// preflightScene is one cluster on which preflight finds much, and changes
// nothing.
type preflightScene struct{ *scene }

const sopsMark = "sops: {mac: 'ENC[x]', version: 3.9.0}\n"

// TestPreflight: everything that stands in the way of a bring-up is found
// before it happens, by one command that sends only reads.
func TestPreflight(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{
		FluxDeployments: true, Kubelet: true, Users: []cluster.User{{Name: "viewer"}},
		// A node without a kubelet keeps the status that it was given.
	})
	files := preflightTree(t, c)
	s := &preflightScene{newScene(t, c, "pre", files)}
	mark := c.Mark()
	for _, part := range []struct {
		name string
		run  func(*testing.T, *preflightScene)
	}{
		{"nodes", preflightNodes},
		{"incident 12: the decryption key", preflightDecryption},
		{"incidents 8 and 11: variables", preflightVariables},
		{"a deadlock before it happens", preflightDeadlock},
		{"names, inventories and ciphertext", preflightObjects},
		{"CRD13 a dead aggregated API", preflightDeadAPI},
		{"who may not look", preflightForbidden},
		{"requests", preflightRequests},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, s) })
	}
	mutatedNothing(t, c, mark)
}

func preflightTree(t *testing.T, c *cluster.Cluster) cluster.Files {
	t.Helper()
	files := folders("pre", "plain", "one", "two", "decrypt", "small")
	files["plain/literal.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: literal, namespace: pre}\ndata: {a: '${CLUSTER_NAME}', b: '${NOT_OURS}'}\n"
	files["substituted/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: substituted, namespace: pre}\ndata: {a: '${CLUSTER_NAME}', b: '${BACKUP_ENDPOINT}'}\n"
	files["one/shared.yaml"] = configMap("pre", "shared")
	files["two/shared.yaml"] = configMap("pre", "shared")
	files["storage/cdi.yaml"] = incidentTree(t, c)["platform-config/cdi.yaml"]
	files["sealed/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: pre}\ndata: {password: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\n" + sopsMark
	files["sealed-map/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ciphertext, namespace: pre}\ndata: {password: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\n" + sopsMark
	files["names/ingress.yaml"] = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: pre}
spec:
  rules:
  - host: web.prod.example.org
  - host: web.staging.example.org
  defaultBackend: {service: {name: web, port: {number: 80}}}
`
	files["homeless/cm.yaml"] = configMap("media", "lost")
	files["metrics/needs.yaml"] = "apiVersion: dead.example.com/v1\nkind: Reading\nmetadata: {name: r, namespace: pre}\n"
	files["parent/kid.yaml"] = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: kid, namespace: pre}
spec:
  interval: 1h
  path: ./small
  prune: true
  sourceRef: {kind: GitRepository, name: source}
  decryption: {provider: sops, secretRef: {name: kids-key}}
`
	return files
}

// remove deletes tiers and waits until they are gone: a tier that is on its way
// is one that the next report finds something of.
func (s *preflightScene) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		remove(t, s.c, tierOf(s.ns, name))
	}
	for _, name := range names {
		untilGone(t, s.c, tierOf(s.ns, name))
	}
}

// report runs preflight with a standup.yaml that has these lines beside the
// cluster.
func (s *preflightScene) report(t *testing.T, code int, lines ...string) []finding.Finding {
	t.Helper()
	head := fmt.Sprintf("cluster:\n  server: %s\n  uid: %s\n  domain: prod.example.org\n", s.c.URL(), uidOf(t, s.c))
	if err := os.WriteFile(filepath.Join(s.sh.dir, "standup.yaml"), []byte(head+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := s.sh.want(t, code, "standup", "preflight", "-o", "json")
	if strings.Contains(o.stdout, "hidden-value") {
		t.Errorf("%s\nit shows the value of a Secret", o)
	}
	return decode[struct {
		Steps []struct{ Findings []finding.Finding }
	}](t, o).Steps[0].Findings
}

// mustFind is the finding of a rule about an object or a tier, by name.
func mustFind(t *testing.T, all []finding.Finding, rule, name string) finding.Finding {
	t.Helper()
	for _, f := range all {
		if f.Rule == rule && (name == "" || f.Object != nil && f.Object.Name == name || f.Tier != nil && f.Tier.Name == name) {
			return f
		}
	}
	t.Errorf("%s of %q was not found, but\n%s", rule, name, findingsText(all))
	return finding.Finding{}
}

func mustNotFind(t *testing.T, all []finding.Finding, rule, name string) {
	t.Helper()
	for _, f := range all {
		if f.Rule == rule && (name == "" || f.Object != nil && f.Object.Name == name || f.Tier != nil && f.Tier.Name == name) {
			t.Errorf("found: %+v", f)
		}
	}
}

func findingsText(all []finding.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s %s blocks=%t %s %v\n", f.Rule, f.Severity, f.Blocks, f.Message, f.Causes)
	}
	return b.String()
}

// mustSay fails the test when a finding does not say the texts.
func mustSay(t *testing.T, f finding.Finding, severity finding.Severity, blocks bool, texts ...string) {
	t.Helper()
	all := f.Message + "\n" + strings.Join(f.Causes, "\n") + "\n" + f.Fix
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s does not say %q, but\n%s", f.Rule, text, all)
		}
	}
	if f.Severity != severity || f.Blocks != blocks || f.Fix == "" {
		t.Errorf("%s: severity %s, blocks %t, fix %q", f.Rule, f.Severity, f.Blocks, f.Fix)
	}
}

func preflightNodes(t *testing.T, s *preflightScene) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}
	if err := s.c.Client().Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime network not ready",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "5.10.0-generic", KubeletVersion: "v1.20.1"}
	if err := s.c.Client().Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	all := s.report(t, 3, "nodes: {count: 2, minKernel: '5.15', minKubelet: '1.30', minMemory: 8Gi}")
	mustSay(t, mustFind(t, all, "nodes-too-few", ""), finding.Error, false, "1 node is Ready, and nodes.count of standup.yaml asks for 2")
	mustSay(t, mustFind(t, all, "nodes-not-ready", "node-2"), finding.Warning, false, "KubeletNotReady: container runtime network not ready")
	mustSay(t, mustFind(t, all, "nodes-kernel", "node-2"), finding.Error, false, "it has 5.10.0-generic")
	mustSay(t, mustFind(t, all, "nodes-kubelet", "node-2"), finding.Error, false, "it has v1.20.1")
	mustSay(t, mustFind(t, all, "nodes-memory", "node-2"), finding.Error, false, "it does not say what it has")
	mustSay(t, mustFind(t, all, "kubelet-skew", "node-2"), finding.Warning, false, "its kubelet is v1.20.1")

	if err := s.c.Client().Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if all := s.report(t, 0, "nodes: {count: 1, minKernel: '5.15', minKubelet: '1.30', minMemory: 8Gi}"); len(all) != 0 {
		t.Errorf("found\n%s", findingsText(all))
	}
}

func preflightDecryption(t *testing.T, s *preflightScene) {
	s.add(t, s.manifest("decrypt", "suspend: true", "decryption: {provider: sops, secretRef: {name: sops-age}}"))
	s.add(t, s.manifest("parent", "suspend: true"))
	all := s.report(t, 3)
	mustSay(t, mustFind(t, all, "decryption-secret-missing", "sops-age"), finding.Error, true,
		"Secret/pre/sops-age does not exist; Kustomization/pre/decrypt cannot be decrypted without it",
		"kubectl -n pre create secret generic sops-age --from-file=identity.agekey=FILE --context test")
	mustSay(t, mustFind(t, all, "decryption-secret-missing", "kids-key"), finding.Error, true, "Kustomization/pre/kid is not on the cluster yet")

	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pre", Name: "sops-age"}, StringData: map[string]string{"key.txt": "hidden-value"}}
	if err := s.c.Client().Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	mustSay(t, mustFind(t, s.report(t, 3), "decryption-secret-without-key", "sops-age"), finding.Error, true, "its fields are key.txt")

	key.StringData = map[string]string{"identity.agekey": "hidden-value"}
	if err := s.c.Client().Update(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	all = s.report(t, 3)
	mustNotFind(t, all, "decryption-secret-without-key", "sops-age")
	mustNotFind(t, all, "decryption-secret-missing", "sops-age")
	s.remove(t, "decrypt", "parent")
}

func preflightVariables(t *testing.T, s *preflightScene) {
	apply(t, s.c, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-vars, namespace: pre}\ndata: {CLUSTER_NAME: staging, BACKUP_ENDPOINT: TBD-backup}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: cluster-secrets, namespace: pre}\nstringData: {TOKEN: hidden-value}\n")
	s.add(t, s.manifest("substituted", "suspend: true", "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster-vars}, {kind: Secret, name: cluster-secrets}]}"),
		s.manifest("plain", "suspend: true"),
		s.manifest("small", "suspend: true", "postBuild: {substituteFrom: [{kind: ConfigMap, name: not-there}]}"))
	all := s.report(t, 3, "variables:",
		"- {name: CLUSTER_NAME, required: true, forbid: ['stag*']}",
		"- {name: TOKEN, forbid: ['hidden-*']}",
		"- {name: BACKUP_ENDPOINT, placeholder: 'TBD-*', blocks: [small, nobody], degrades: [ks/substituted]}")
	mustSay(t, mustFind(t, all, "variables-absent", "not-there"), finding.Error, true, "ConfigMap/pre/not-there, which Kustomization/pre/small is substituted from, does not exist")
	mustSay(t, mustFind(t, all, "variable-forbidden", "cluster-vars"), finding.Error, true, `variable CLUSTER_NAME is "staging" in ConfigMap/pre/cluster-vars, which standup.yaml forbids (stag*)`)
	mustSay(t, mustFind(t, all, "variable-forbidden", "cluster-secrets"), finding.Error, true, "variable TOKEN has a value in Secret/pre/cluster-secrets that standup.yaml forbids (hidden-*)")
	mustSay(t, mustFind(t, all, "variable-unresolved", "small"), finding.Error, true, "variable CLUSTER_NAME is required")
	mustSay(t, mustFind(t, all, "variable-placeholder", "cluster-vars"), finding.Warning, false,
		"it blocks Kustomization/pre/small; it degrades Kustomization/pre/substituted", "no tier is called nobody")
	mustSay(t, mustFind(t, all, "variable-literal", "plain"), finding.Warning, false, "so ${CLUSTER_NAME} ships as it stands", "ConfigMap/pre/literal")

	// What is as standup.yaml says is no finding.
	s.remove(t, "small", "plain")
	all = s.report(t, 3, "variables:", "- {name: CLUSTER_NAME, required: true, forbid: ['prod*']}", "- {name: TOKEN, required: true}")
	for _, f := range all {
		if f.Rule != "tier-suspended" {
			t.Errorf("found %+v", f)
		}
	}
	s.remove(t, "substituted")
}

func preflightDeadlock(t *testing.T, s *preflightScene) {
	install, err := s.c.CDIInstall()
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(install, "\n---\n") {
		if strings.Contains(document, "kind: CustomResourceDefinition\n") {
			apply(t, s.c, document)
		}
	}
	s.add(t, s.manifest("storage", "suspend: true"))
	all := s.report(t, 3, "crds: {expect: [storageprofiles.cdi.kubevirt.io]}")
	f := mustFind(t, all, "crd-deadlock", "storage")
	mustSay(t, f, finding.Error, false, "deadlock: CDI/cdi would create StorageProfile, but both are in storage", "it has not failed by it yet: suspended",
		"no operator of KubeVirt CDI was seen", "kubectl standup crds --context test")
	mustSay(t, mustFind(t, all, "crd-expected", "storageprofiles.cdi.kubevirt.io"), finding.Info, false, "it does not exist; KubeVirt CDI creates it", "it comes with Kustomization/pre/storage")
	s.remove(t, "storage")
}

func preflightObjects(t *testing.T, s *preflightScene) {
	s.add(t, s.manifest("one"), s.manifest("two", "suspend: false"), s.manifest("names", "suspend: true"),
		s.manifest("sealed", "suspend: true"), s.manifest("sealed-map", "suspend: true"), s.manifest("homeless", "suspend: true"))
	for _, name := range []string{"one", "two"} {
		tier := tierOf("pre", name)
		until(t, s.c, tier, func() bool { return condition(tier).Status == metav1.ConditionTrue })
	}
	all := s.report(t, 3)
	mustSay(t, mustFind(t, all, "object-in-two-tiers", "one"), finding.Error, false,
		"Kustomization/pre/one, Kustomization/pre/two have the same objects in their inventories", "ConfigMap/pre/shared")
	mustSay(t, mustFind(t, all, "name-outside-domain", "web"), finding.Warning, false,
		"Ingress/pre/web of Kustomization/pre/names claims web.staging.example.org, outside of prod.example.org")
	mustSay(t, mustFind(t, all, "encrypted-secret-rejected", "s"), finding.Error, false, "Kustomization/pre/sealed is not applied at all", "add spec.decryption")
	mustSay(t, mustFind(t, all, "encrypted-not-decrypted", "ciphertext"), finding.Error, false, "Kustomization/pre/sealed-map has no spec.decryption, so it ships the ciphertext of ConfigMap/pre/ciphertext")
	mustSay(t, mustFind(t, all, "namespace-missing", "media"), finding.Error, false,
		"Namespace/media does not exist, and no tier builds it", "ConfigMap/media/lost of Kustomization/pre/homeless is in it") // CRD-15
	s.remove(t, "one", "two", "names", "sealed", "sealed-map", "homeless")
}

func preflightDeadAPI(t *testing.T, s *preflightScene) {
	apply(t, s.c, `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.dead.example.com}
spec: {group: dead.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, service: {namespace: pre, name: nobody}, insecureSkipTLSVerify: true}
`)
	service := thing("apiregistration.k8s.io/v1", "APIService", "", "v1.dead.example.com")
	until(t, s.c, service, func() bool { return strings.HasPrefix(conditionText(service, "Available"), "False") })
	s.add(t, s.manifest("metrics", "suspend: true"))
	all := s.report(t, 3)
	mustSay(t, mustFind(t, all, "kind-undecided", "metrics"), finding.Error, false, "Reading may be served or not: discovery of dead.example.com/v1 fails",
		"APIService/v1.dead.example.com is not Available", "kubectl standup unwedge apiservice/v1.dead.example.com")
	mustSay(t, mustFind(t, all, "wedged-api-unavailable", "v1.dead.example.com"), finding.Error, false, "kubectl standup unwedge")
	remove(t, s.c, service)
	untilGone(t, s.c, service)
	s.remove(t, "metrics")
}

// preflightForbidden: what may not be looked at is said, and is never silently
// well.
func preflightForbidden(t *testing.T, s *preflightScene) {
	apply(t, s.c, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: preflight-viewer}
rules:
- {apiGroups: [source.toolkit.fluxcd.io, kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io], resources: ['*'], verbs: [get, list]}
- {apiGroups: [''], resources: [namespaces, configmaps], verbs: [get, list]}
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: preflight-viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: preflight-viewer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
`)
	kubeconfig, err := s.c.KubeconfigFor("viewer")
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, s.manifest("decrypt", "suspend: true", "decryption: {provider: sops, secretRef: {name: sops-age}}",
		"postBuild: {substituteFrom: [{kind: Secret, name: cluster-secrets}]}"))
	viewer := &preflightScene{&scene{s.c, s.ns, newShell(t, kubeconfig)}}
	all := viewer.report(t, 3, "nodes: {count: 1}", "variables: [{name: TOKEN, required: true}]")
	mustSay(t, mustFind(t, all, "nodes-unseen", ""), finding.Warning, false, "nodes could not be looked at: list nodes: ", "forbidden")
	mustSay(t, mustFind(t, all, "flux-controllers-unseen", ""), finding.Error, true, "deployments")
	mustSay(t, mustFind(t, all, "decryption-secret-unseen", "sops-age"), finding.Error, true, "could not be looked at")
	mustSay(t, mustFind(t, all, "variables-unread", "cluster-secrets"), finding.Error, true, "could not be read")
	mustSay(t, mustFind(t, all, "variable-unresolved", "decrypt"), finding.Error, true, "variable TOKEN is required")
	mustFind(t, all, "tier-suspended", "decrypt") // and the rest of the report is there
	s.remove(t, "decrypt")
}

func preflightRequests(t *testing.T, s *preflightScene) {
	counts := map[int]int{}
	for _, span := range [][2]int{{0, 10}, {10, 60}} {
		var all []string
		for i := span[0]; i < span[1]; i++ {
			text := s.manifest(fmt.Sprintf("small-%02d", i), "suspend: true", "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster-vars}]}",
				"decryption: {provider: sops, secretRef: {name: sops-age}}")
			all = append(all, strings.Replace(text, fmt.Sprintf("path: ./small-%02d", i), "path: ./small", 1))
		}
		s.add(t, all...)
		mark, began := s.c.Mark(), time.Now()
		s.report(t, 3, "variables: [{name: CLUSTER_NAME, required: true}]")
		events := sent(t, s.c, mark, "kubectl-standup")
		counts[span[1]] = len(events)
		t.Logf("%d tiers: %d requests, %s", span[1], len(events), time.Since(began).Round(time.Millisecond))
		if span[1] == 10 {
			t.Logf("\n%s", events)
		}
	}
	if counts[10] != counts[60] || counts[10] == 0 {
		t.Errorf("it sent %d requests for 10 tiers, and %d for 60", counts[10], counts[60])
	}
}
