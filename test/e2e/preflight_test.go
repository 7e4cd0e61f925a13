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
type preflightScene struct {
	*scene
	t *testing.T
}

const sealed = "sops: {mac: 'ENC[x]', version: 3.9.0}\n"

// TestPreflight: everything that stands in the way of a bring-up is found
// before it happens, by one command that sends only reads.
func TestPreflight(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{FluxDeployments: true, Kubelet: true})
	files := preflightTree(t, c)
	s := &preflightScene{newScene(t, c, "pre", files), t}
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
	files["sealed/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: pre}\ndata: {password: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\n" + sealed
	files["sealed-map/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ciphertext, namespace: pre}\ndata: {password: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\n" + sealed
	files["names/ingress.yaml"] = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: pre}
spec:
  rules:
  - host: web.prod.example.org
  - host: web.staging.example.org
  defaultBackend: {service: {name: web, port: {number: 80}}}
`
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

// found is the finding of a rule about an object or a tier, by name.
func found(t *testing.T, all []finding.Finding, rule, name string) finding.Finding {
	t.Helper()
	for _, f := range all {
		if f.Rule == rule && (name == "" || f.Object != nil && f.Object.Name == name || f.Tier != nil && f.Tier.Name == name) {
			return f
		}
	}
	t.Errorf("%s of %q was not found, but\n%s", rule, name, findingsText(all))
	return finding.Finding{}
}

func absent(t *testing.T, all []finding.Finding, rule, name string) {
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

// says fails the test when a finding does not say the texts.
func says(t *testing.T, f finding.Finding, severity finding.Severity, blocks bool, texts ...string) {
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
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime network not ready",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "5.10.0-generic", KubeletVersion: "v1.20.1"}
	node.Status.Capacity = corev1.ResourceList{}
	if err := s.c.Client().Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	all := s.report(t, 3, "nodes: {count: 2, minKernel: '5.15', minKubelet: '1.30', minMemory: 8Gi}")
	says(t, found(t, all, "nodes-too-few", ""), finding.Error, false, "1 nodes are Ready, and nodes.count of standup.yaml asks for 2")
	says(t, found(t, all, "nodes-not-ready", "node-2"), finding.Warning, false, "KubeletNotReady: container runtime network not ready")
	says(t, found(t, all, "nodes-kernel", "node-2"), finding.Error, false, "it has 5.10.0-generic")
	says(t, found(t, all, "nodes-kubelet", "node-2"), finding.Error, false, "it has v1.20.1")
	says(t, found(t, all, "nodes-memory", "node-2"), finding.Error, false, "it does not say what it has")
	says(t, found(t, all, "kubelet-skew", "node-2"), finding.Warning, false, "its kubelet is v1.20.1")

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
	says(t, found(t, all, "decryption-secret-missing", "sops-age"), finding.Error, true,
		"Secret/pre/sops-age does not exist; Kustomization/pre/decrypt cannot be decrypted without it",
		"kubectl -n pre create secret generic sops-age --from-file=identity.agekey=FILE --context test")
	says(t, found(t, all, "decryption-secret-missing", "kids-key"), finding.Error, true, "Kustomization/pre/kid is not on the cluster yet")

	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pre", Name: "sops-age"}, StringData: map[string]string{"key.txt": "hidden-value"}}
	if err := s.c.Client().Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	says(t, found(t, s.report(t, 3), "decryption-secret-without-key", "sops-age"), finding.Error, true, "its fields are key.txt")

	key.StringData = map[string]string{"identity.agekey": "hidden-value"}
	if err := s.c.Client().Update(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	all = s.report(t, 3)
	absent(t, all, "decryption-secret-without-key", "sops-age")
	absent(t, all, "decryption-secret-missing", "sops-age")
	for _, name := range []string{"decrypt", "parent"} {
		remove(t, s.c, tierOf("pre", name))
	}
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
	says(t, found(t, all, "variables-absent", "not-there"), finding.Error, true, "ConfigMap/pre/not-there, which Kustomization/pre/small is substituted from, does not exist")
	says(t, found(t, all, "variable-forbidden", "cluster-vars"), finding.Error, true, `variable CLUSTER_NAME is "staging" in ConfigMap/pre/cluster-vars, which standup.yaml forbids (stag*)`)
	says(t, found(t, all, "variable-forbidden", "cluster-secrets"), finding.Error, true, "variable TOKEN has a value in Secret/pre/cluster-secrets that standup.yaml forbids (hidden-*)")
	says(t, found(t, all, "variable-unresolved", "small"), finding.Error, true, "variable CLUSTER_NAME is required")
	says(t, found(t, all, "variable-placeholder", "cluster-vars"), finding.Warning, false,
		"it blocks Kustomization/pre/small; it degrades Kustomization/pre/substituted", "no tier is called nobody")
	says(t, found(t, all, "variable-literal", "plain"), finding.Warning, false, "so ${CLUSTER_NAME} ships as it stands", "ConfigMap/pre/literal")

	// What is as standup.yaml says is no finding.
	remove(t, s.c, tierOf("pre", "small"))
	remove(t, s.c, tierOf("pre", "plain"))
	all = s.report(t, 3, "variables:", "- {name: CLUSTER_NAME, required: true, forbid: ['prod*']}", "- {name: TOKEN, required: true}")
	for _, f := range all {
		if f.Rule != "tier-suspended" {
			t.Errorf("found %+v", f)
		}
	}
	remove(t, s.c, tierOf("pre", "substituted"))
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
	f := found(t, all, "crd-deadlock", "storage")
	says(t, f, finding.Error, false, "deadlock: CDI/cdi would create StorageProfile, but both are in storage", "it has not failed by it yet: suspended",
		"no operator of KubeVirt CDI was seen", "kubectl standup crds --context test")
	says(t, found(t, all, "crd-expected", "storageprofiles.cdi.kubevirt.io"), finding.Info, false, "it does not exist; KubeVirt CDI creates it", "it comes with Kustomization/pre/storage")
	remove(t, s.c, tierOf("pre", "storage"))
}

func preflightObjects(t *testing.T, s *preflightScene) {
	s.add(t, s.manifest("one"), s.manifest("two", "suspend: false"), s.manifest("names", "suspend: true"),
		s.manifest("sealed", "suspend: true"), s.manifest("sealed-map", "suspend: true"))
	for _, name := range []string{"one", "two"} {
		tier := tierOf("pre", name)
		until(t, s.c, tier, func() bool { return condition(tier).Status == metav1.ConditionTrue })
	}
	all := s.report(t, 3)
	says(t, found(t, all, "object-in-two-tiers", "one"), finding.Error, false,
		"Kustomization/pre/one, Kustomization/pre/two have the same objects in their inventories", "ConfigMap/pre/shared")
	says(t, found(t, all, "name-outside-domain", "web"), finding.Warning, false,
		"Ingress/pre/web of Kustomization/pre/names claims web.staging.example.org, outside of prod.example.org")
	says(t, found(t, all, "encrypted-secret-rejected", "s"), finding.Error, false, "Kustomization/pre/sealed is not applied at all", "add spec.decryption")
	says(t, found(t, all, "encrypted-not-decrypted", "ciphertext"), finding.Error, false, "Kustomization/pre/sealed-map has no spec.decryption, so it ships the ciphertext of ConfigMap/pre/ciphertext")
	for _, name := range []string{"one", "two", "names", "sealed", "sealed-map"} {
		remove(t, s.c, tierOf("pre", name))
		untilGone(t, s.c, tierOf("pre", name))
	}
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
	says(t, found(t, all, "kind-undecided", "metrics"), finding.Error, false, "Reading may be served or not: discovery of dead.example.com/v1 fails",
		"APIService/v1.dead.example.com is not Available", "kubectl standup unwedge apiservice/v1.dead.example.com")
	says(t, found(t, all, "wedged-api-unavailable", "v1.dead.example.com"), finding.Error, false, "kubectl standup unwedge")
	remove(t, s.c, service)
	remove(t, s.c, tierOf("pre", "metrics"))
	untilGone(t, s.c, tierOf("pre", "metrics"))
}

// preflightForbidden: what may not be looked at is said, and is never silently
// well.
func preflightForbidden(t *testing.T, s *preflightScene) {
	t.Skip("see below")
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

var _ client.Object
