// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

const (
	// bundleCRDs of bundleSize bytes together are as many as a policy engine's.
	bundleCRDs = 12
	bundleSize = 5600 << 10
)

// chartScene is a namespace with a HelmRelease that is called web, whose chart
// runs with its CRDs switched off.
type chartScene struct {
	*scene
	named []string
}

// TestIncident3_ChartCRDs: nobody installs the CRDs of a chart that runs with
// them switched off. The step does, from wherever Flux has the chart, and
// nothing else.
func TestIncident3_ChartCRDs(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{
		cluster.SourceController, cluster.KustomizeController, cluster.HelmController,
	}})
	named := expect(t, c)
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *cluster.Cluster, []string)
	}{
		{"a bundle of a chart in git, from cold", bundleFromGit},
		{"a Helm repository", fromHelmRepository},
		{"a registry", fromRegistry},
		{"values out of a Secret", secretsStaySecret},
		{"CRDs that others manage", othersAreLeft},
		{"a version that objects are stored in", storedVersionIsKept},
		{"what cannot be applied", cannotBeApplied},
		{"nothing to apply", nothingToApply},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, c, named)
		})
	}
}

func newChartScene(t *testing.T, c *cluster.Cluster, named []string, ns string, files cluster.Files) *chartScene {
	t.Helper()
	return &chartScene{newScene(t, c, ns, files), named}
}

// config writes a standup.yaml, and returns the flag that names it.
func (s *chartScene) config(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(s.sh.dir, "standup.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config=" + file
}

// crds runs the step with an entry for the release, whose override are the
// values.
func (s *chartScene) crds(t *testing.T, code int, values string, flags ...string) outcome {
	t.Helper()
	config := s.config(t, fmt.Sprintf("crds: {fromCharts: [{helmRelease: %s/web, values: %s}]}\n", s.ns, values))
	return s.sh.want(t, code, slices.Concat([]string{"standup", "crds", config}, s.named, flags)...)
}

// again runs the step once more and wants it to change nothing.
func (s *chartScene) again(t *testing.T, says string) {
	t.Helper()
	mark := s.c.Mark()
	o := s.crds(t, 0, switchedOn)
	o.holds(t, o.stdout, says)
	s.mutatedNothing(t, mark)
}

// mutatedNothing fails the test when the step changed a CRD of the scene, or
// anything in its namespace, or tried to. Other scenes go on beside it.
func (s *chartScene) mutatedNothing(t *testing.T, mark cluster.Mark) {
	t.Helper()
	got := sent(t, s.c, mark, "kubectl-standup").Mutating().Where(func(e cluster.Event) bool {
		return e.Namespace == s.ns || strings.HasSuffix(e.Name, "."+s.group())
	})
	if len(got) != 0 {
		t.Errorf("arrived:\n%s", got)
	}
}

// switchedOn is the override.
const switchedOn = "{crds: {install: true}}"

// group is the API group of the scene's own.
func (s *chartScene) group() string { return s.ns + ".example.com" }

func (s *chartScene) crd(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.c.Client().Get(t.Context(), client.ObjectKey{Name: plural + "." + s.group()}, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// ours wants the CRD to be Established, and its spec to be managed by us alone.
func (s *chartScene) ours(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := s.crd(t, plural)
	if !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		t.Errorf("CRD %s is not Established", crd.Name)
	}
	for _, f := range crd.ManagedFields {
		if f.Subresource == "" && f.Manager != "standup" {
			t.Errorf("CRD %s is managed by %s too", crd.Name, f.Manager)
		}
	}
	return crd
}

func (s *chartScene) hr() *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"}}
}

func (s *chartScene) untilReleased(t *testing.T) *helmv2.HelmRelease {
	t.Helper()
	hr := s.hr()
	if err := s.c.Until(t.Context(), hr, func() bool {
		return hr.Status.ObservedGeneration == hr.Generation && meta.IsStatusConditionTrue(hr.Status.Conditions, "Ready")
	}); err != nil {
		t.Fatal(err)
	}
	return hr
}

// patch changes the spec of an object.
func (s *chartScene) patch(t *testing.T, o client.Object, spec string) {
	t.Helper()
	if err := s.c.Client().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`))); err != nil {
		t.Fatal(err)
	}
}

// release is the manifest of the HelmRelease, whose chart lies in git.
func (s *chartScene) release(more ...string) string {
	return s.releaseOf("chart: {spec: {chart: ./chart, interval: 1h, sourceRef: {kind: GitRepository, name: source}}}", more...)
}

func (s *chartScene) releaseOf(chart string, more ...string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: %s}
spec:
  interval: 1h
  timeout: 1m
  %s
`, s.ns, strings.Join(append([]string{chart}, more...), "\n  "))
}

// chartFiles is a chart with a ConfigMap, and these templates behind the switch.
func chartFiles(folder string, templates map[string]string) cluster.Files {
	files := cluster.Files{
		folder + "/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		folder + "/values.yaml":       "crds: {install: false}\n",
		folder + "/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
	}
	for name, text := range templates {
		files[folder+"/templates/"+name+".yaml"] = "{{- if .Values.crds.install }}\n" + text + "{{- end }}\n"
	}
	return files
}

// chartCRD is a CRD of one or more versions, the first of which is stored.
func chartCRD(group, plural, description string, versions ...string) string {
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  labels: {helm.sh/chart: {{ printf "%%s-%%s" .Chart.Name .Chart.Version | replace "+" "_" }}}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
`, plural, group, strings.ToUpper(plural[:1])+plural[1:])
	for i, v := range versions {
		text += fmt.Sprintf("  - name: %s\n    served: true\n    storage: %t\n    schema: {openAPIV3Schema: {type: object, description: %q, x-kubernetes-preserve-unknown-fields: true}}\n",
			v, i == 0, description)
	}
	return text
}

// bundleFromGit: on a cold cluster the HelmRelease is in git alone; the CRDs are
// too large for kubectl apply; Flux then installs the release, and takes it
// away again, and the CRDs stay.
func bundleFromGit(t *testing.T, c *cluster.Cluster, named []string) {
	s := &chartScene{&scene{c, "bundle", nil}, named}
	templates := map[string]string{}
	var plurals []string
	for i := range bundleCRDs {
		plural := fmt.Sprintf("kind%02ds", i)
		plurals = append(plurals, plural)
		templates[plural] = chartCRD(s.group(), plural, strings.Repeat("what it is for. ", bundleSize/bundleCRDs/16), "v1")
	}
	files := chartFiles("chart", templates)
	files["apps/release.yaml"] = s.release()
	s.scene = newScene(t, c, s.ns, files)
	s.add(t, s.manifest("apps", "suspend: true"))

	mark := c.Mark()
	o := s.crds(t, 0, switchedOn, "--dry-run")
	o.holds(t, o.stdout, "bundle/web: 12 would be created")
	s.mutatedNothing(t, mark)

	o = s.crds(t, 0, switchedOn)
	t.Logf("%d CRDs in %s\n%s", bundleCRDs, o.took, o.stderr)
	o.holds(t, o.stdout, "bundle/web: 12 created")
	o.holds(t, o.stderr, "HelmRelease/bundle/web: chart web 1.0.0 has 12 CRDs; it is from path ./chart of GitRepository/bundle/source at main@sha1:")
	size := 0
	for _, plural := range plurals {
		size += len(s.ours(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema.Description)
	}
	if size < bundleSize*9/10 {
		t.Errorf("the CRDs are %d bytes, which is no bundle", size)
	}
	s.again(t, "bundle/web: 12 unchanged")

	s.patch(t, tierOf(s.ns, "apps"), `{"suspend":false}`)
	s.untilReleased(t)
	s.again(t, "bundle/web: 12 unchanged")

	hr := s.hr()
	s.patch(t, tierOf(s.ns, "apps"), `{"suspend":true}`)
	if err := c.Client().Delete(t.Context(), hr); err != nil {
		t.Fatal(err)
	}
	if err := c.UntilGone(t.Context(), hr); err != nil {
		t.Fatal(err)
	}
	for _, plural := range plurals {
		s.ours(t, plural)
	}
}

// secretsStaySecret: what values hold is in no output, whatever goes wrong.
func secretsStaySecret(t *testing.T, c *cluster.Cluster, named []string) {
	const marker = "s3cr3t-marker-0815"
	s := &chartScene{&scene{c, "secretive", nil}, named}
	files := chartFiles("chart", map[string]string{
		"crd": chartCRD(s.group(), "widgets", "{{ .Values.password }}", "v1"),
		"bad": "{{ if .Values.fails }}{{ fail .Values.password }}{{ end }}\n{{ if .Values.invalid }}\n" +
			strings.Replace(chartCRD(s.group(), "gadgets", "", "v1"), "scope: Namespaced", "scope: {{ .Values.password }}", 1) + "{{ end }}\n",
	})
	s.scene = newScene(t, c, s.ns, files)
	s.add(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: values, namespace: secretive}\nstringData: {values.yaml: \"password: "+marker+"\"}\n",
		s.release("suspend: true", "valuesFrom: [{kind: Secret, name: values}]"))
	for values, code := range map[string]int{
		"{crds: {install: true}, fails: true}":   1,
		"{crds: {install: true}, invalid: true}": 6,
		switchedOn:                               0,
	} {
		for _, flags := range [][]string{nil, {"-o", "json"}} {
			o := s.crds(t, code, values, flags...)
			if code != 0 {
				o.holds(t, o.stdout, "*****")
				o.holds(t, o.stderr, "*****")
			}
			if strings.Contains(o.stdout+o.stderr, marker) {
				t.Errorf("%s\nthis is secret", o)
			}
		}
	}
	if got := s.ours(t, "widgets").Spec.Versions[0].Schema.OpenAPIV3Schema.Description; got != marker {
		t.Errorf("the chart was rendered with %q", got)
	}
	s.again(t, "secretive/web: 1 unchanged")
}

// othersAreLeft: what somebody else manages is compared, and not touched.
func othersAreLeft(t *testing.T, c *cluster.Cluster, named []string) {
	s := &chartScene{&scene{c, "others", nil}, named}
	plain := func(plural, description string, versions ...string) string {
		text := chartCRD(s.group(), plural, description, versions...)
		head, rest, _ := strings.Cut(text, "  labels:")
		_, spec, _ := strings.Cut(rest, "spec:")
		return head + "spec:" + spec
	}
	s.scene = newScene(t, c, s.ns, chartFiles("chart", map[string]string{
		"same": plain("sames", "", "v1"), "other": plain("others", "", "v1", "v2"), "new": plain("news", "", "v1"), "injected": plain("injecteds", "", "v1"),
	}))
	s.add(t, s.release("suspend: true"))
	s.add(t, plain("sames", "", "v1"), plain("others", "older", "v1"))
	before := s.crd(t, "others")

	o := s.crds(t, 3, switchedOn)
	o.holds(t, o.stdout,
		"others/web: 2 created, 2 left",
		"CRD sames.others.example.com is left as it is: test manages its spec. It is as the chart has it",
		"CRD others.others.example.com is left as it is: test manages its spec. It is not as the chart has it: schema of version v1 differs, version v2 is missing")
	if after := s.crd(t, "others"); after.ResourceVersion != before.ResourceVersion {
		t.Error("what others manage has changed")
	}
	s.ours(t, "news")
	mark := c.Mark()
	s.crds(t, 3, switchedOn)
	s.mutatedNothing(t, mark)

	// From here on somebody else manages ours with us.
	mine := s.crd(t, "news")
	if err := c.Client().Patch(t.Context(), mine, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"names":{"shortNames":["nw"]}}}`)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	o = s.crds(t, 3, switchedOn)
	o.holds(t, o.stdout, "CRD news.others.example.com is left as it is: somebody manages its spec. It is as the chart has it")
}

// storedVersionIsKept: an update of ours comes through, and one that would make
// objects unreadable does not.
func storedVersionIsKept(t *testing.T, c *cluster.Cluster, named []string) {
	s := &chartScene{&scene{c, "stored", nil}, named}
	of := func(versions ...string) cluster.Files {
		return chartFiles("chart", map[string]string{"crd": chartCRD(s.group(), "widgets", strings.Join(versions, "+"), versions...)})
	}
	s.scene = newScene(t, c, s.ns, of("v1alpha1"))
	s.add(t, s.release("suspend: true"))
	s.crds(t, 0, switchedOn)

	s.push(t, of("v1", "v1alpha1"))
	o := s.crds(t, 0, switchedOn, "--dry-run")
	o.holds(t, o.stdout, "stored/web: 1 would be updated")
	o = s.crds(t, 0, switchedOn)
	o.holds(t, o.stdout, "stored/web: 1 updated")
	if stored := s.ours(t, "widgets").Status.StoredVersions; !slices.Equal(stored, []string{"v1alpha1", "v1"}) {
		t.Fatalf("stored in %v", stored)
	}
	s.again(t, "stored/web: 1 unchanged")

	s.push(t, of("v1"))
	mark := c.Mark()
	o = s.crds(t, 6, switchedOn)
	o.holds(t, o.stderr, "error: CustomResourceDefinition/widgets.stored.example.com is not applied: objects are stored in v1alpha1")
	o.holds(t, o.stdout, "crd-stored-version")
	s.mutatedNothing(t, mark)
}

// cannotBeApplied: one CRD that cannot be does not keep back the others.
func cannotBeApplied(t *testing.T, c *cluster.Cluster, named []string) {
	s := &chartScene{&scene{c, "cannot", nil}, named}
	s.scene = newScene(t, c, s.ns, chartFiles("chart", map[string]string{
		"large": chartCRD(s.group(), "larges", strings.Repeat("too large ", 160<<10), "v1"),
		"small": chartCRD(s.group(), "smalls", "", "v1"),
		"clash": "{{ if .Values.clash }}\n" + strings.Replace(chartCRD(s.group(), "clashes", "", "v1"), "kind: Clashes", "kind: Smalls", 1) + "{{ end }}\n",
	}))
	s.add(t, s.release("suspend: true"))
	for range 2 {
		o := s.crds(t, 6, switchedOn)
		o.holds(t, o.stderr, "error: CustomResourceDefinition/larges.cannot.example.com is not applied: it takes ", "and etcd stores at most 1572864 in one object")
		o.holds(t, o.stdout, "crd-too-big CustomResourceDefinition/larges.cannot.example.com", "1 refused")
		s.ours(t, "smalls")
	}
	o := s.crds(t, 1, "{crds: {install: true}, clash: true}", "--timeout", "3m")
	o.holds(t, o.stderr, `CRD clashes.cannot.example.com will not be Established: `)

	// One that is going away is not applied again, which would bring it back
	// without its objects.
	small := s.crd(t, "smalls")
	small.Finalizers = append(small.Finalizers, "test.example.com/hold")
	if err := c.Client().Update(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	if err := c.Client().Delete(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	o = s.crds(t, 6, switchedOn)
	o.holds(t, o.stdout, "CRD smalls.cannot.example.com is not applied: it is being deleted, with every object of its kind")
	if err := client.IgnoreNotFound(c.Client().Patch(t.Context(), small, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))); err != nil {
		t.Fatal(err)
	}
}

// nothingToApply: an override that switches nothing on is said, with what looks
// like the switch; and so is what cannot be found.
func nothingToApply(t *testing.T, c *cluster.Cluster, named []string) {
	s := &chartScene{&scene{c, "nothing", nil}, named}
	s.scene = newScene(t, c, s.ns, chartFiles("chart", map[string]string{"crd": chartCRD(s.group(), "widgets", "", "v1")}))
	s.add(t, s.release("suspend: true"))
	mark := c.Mark()
	o := s.crds(t, 3, "{crd: {enabled: true}}")
	o.holds(t, o.stdout, "chart web 1.0.0 of HelmRelease/nothing/web renders no CRD, with the values of crds.fromCharts too",
		"these look like it: crd.enabled: true, crds.install: false")

	config := s.config(t, "crds: {fromCharts: [{helmRelease: nothing/none}, {helmRelease: nothing/web, values: {crds: {install: true}}}]}\n")
	o = s.sh.want(t, 1, slices.Concat([]string{"standup", "crds", "--dry-run", config}, s.named)...)
	o.holds(t, o.stderr, "HelmRelease/nothing/none exists neither on the cluster nor in what a tier would apply")
	o.holds(t, o.stdout, "nothing/web: 1 would be created")

	config = s.config(t, "crds: {expect: [widgets.nothing.example.com, cdis.cdi.kubevirt.io]}\n")
	o = s.sh.want(t, 3, slices.Concat([]string{"standup", "crds", config}, s.named)...)
	o.holds(t, o.stdout, "CRD widgets.nothing.example.com is not Established: it does not exist",
		"CRD cdis.cdi.kubevirt.io is not Established: it does not exist; installing KubeVirt CDI registers it")
	s.mutatedNothing(t, mark)
}
