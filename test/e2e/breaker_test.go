// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// breaker is one deadlocked tier, on a cluster of which the other parts of CDI
// come one after the other.
type breaker struct {
	c     *cluster.Cluster
	sh    *shell
	named []string
}

// TestBreaker: when the breaker refuses, what it says while it waits, and that
// it goes on as soon as it can.
func TestBreaker(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	b := &breaker{c, shellFor(t, c), expect(t, c)}
	tree := cluster.Files{"tier/cdi.yaml": incidentTree(t, c)["platform-config/cdi.yaml"]}
	if _, err := c.Push(t.Context(), "breaker", tree, "the trigger and a StorageProfile"); err != nil {
		t.Fatal(err)
	}
	root := cluster.Root{Repo: "breaker", Path: "./tier", Name: "storage"}
	if err := c.InstallRoot(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	b.untilBlocked(t, "no matches for kind")
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the CRD of the trigger is not there", b.withoutTriggersCRD},
		{"the namespace is not there", b.withoutNamespace},
		{"the namespace is being deleted", b.withNamespaceTerminating},
		{"the wrong server", b.onTheWrongServer},
		{"an artifact that is not what it should be", b.withBrokenArtifact},
		{"a dead aggregated API", b.withDeadAPIService},
		{"a rehearsal", b.rehearsed},
		{"no operator", b.withoutOperator},
		{"a slow operator", b.withSlowOperator},
		{"an operator that starts late", b.withLateOperator},
	} {
		if !t.Run(step.name, step.run) {
			return // what follows stands on it
		}
	}
}

// untilBlocked waits until the controller has failed with the text. What is
// asked of the tier then, no attempt comes in between.
func (b *breaker) untilBlocked(t *testing.T, text string) {
	t.Helper()
	atRest(t, b.c, tierOf("flux-system", "storage"), text)
}

// crds runs the breaker.
func (b *breaker) crds(t *testing.T, code int, flags ...string) outcome {
	t.Helper()
	return b.sh.want(t, code, append(append([]string{"standup", "crds"}, b.named...), flags...)...)
}

// refused runs the breaker and wants it to refuse for the reason, and to do
// nothing.
func (b *breaker) refused(t *testing.T, reason string) {
	t.Helper()
	mark := b.c.Mark()
	o := b.crds(t, 6, "--timeout", "5s")
	o.holds(t, o.stderr, "error: CDI/cdi is not applied: "+reason)
	unwedge := b.sh.want(t, 6, append([]string{"unwedge", "--apply", "--timeout", "5s"}, b.named...)...)
	unwedge.holds(t, unwedge.stderr, reason)
	mutatedNothing(t, b.c, mark)
	b.notApplied(t)
}

func (b *breaker) notApplied(t *testing.T) {
	t.Helper()
	cdi := cdiResource()
	err := b.c.Client().Get(t.Context(), client.ObjectKeyFromObject(cdi), cdi)
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Errorf("CDI/cdi is there: %v", err)
	}
}

// removeTrigger makes the cluster cold again. It has no finalizer as long as no
// operator has seen it.
func (b *breaker) removeTrigger(t *testing.T) {
	t.Helper()
	if err := b.c.Client().Delete(t.Context(), cdiResource()); err != nil {
		t.Fatal(err)
	}
	if err := b.c.UntilGone(t.Context(), cdiResource()); err != nil {
		t.Fatal(err)
	}
}

func (b *breaker) withoutTriggersCRD(t *testing.T) {
	b.refused(t, "its own CRD is not Established; the tier that installs KubeVirt CDI has not run yet: see `kubectl tiers`")

	// For what follows: of CDI's own install the CRD alone.
	install, err := b.c.CDIInstall()
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(install, "\n---\n") {
		if strings.Contains(document, "kind: CustomResourceDefinition\n") {
			if err := b.c.Apply(t.Context(), document); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.untilBlocked(t, `no matches for kind "StorageProfile"`)
}

func (b *breaker) withoutNamespace(t *testing.T) {
	b.refused(t, "namespace cdi does not exist; the tier that makes it has not run yet: see `kubectl tiers`")
}

func (b *breaker) withNamespaceTerminating(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cdi"}}
	holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cdi", Name: "holder", Finalizers: []string{"test.example.com/hold"}}}
	for _, obj := range []client.Object{ns, holder} {
		if err := b.c.Client().Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.c.Client().Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "namespace cdi is being deleted")

	holder.Finalizers = nil
	if err := b.c.Client().Update(t.Context(), holder); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(b.c.Client().Patch(t.Context(), holder, patch)); err != nil {
		t.Fatal(err)
	}
	if err := b.c.UntilGone(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := b.c.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cdi"}}); err != nil {
		t.Fatal(err)
	}
}

// onTheWrongServer: from here on the breaker would act, were it sure where.
func (b *breaker) onTheWrongServer(t *testing.T) {
	uid := uidOf(t, b.c)
	for name, tt := range map[string]struct {
		expect  []string
		says    string
		unasked bool
	}{
		"another URL with this UID": {
			[]string{"--expect-server", "https://api.prod.example.org:6443", "--expect-uid", uid},
			"server is not the expected one, so nothing was done: the URL differs", true,
		},
		"another UID": {
			[]string{"--expect-server", b.c.URL(), "--expect-uid", "00000000-58a1-4b0e-9c57-2d1f7a8e4b11"}, "another cluster is behind it", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{
				{"standup", "crds"},
				{"standup", "preflight"},
				{"unwedge", "--apply"},
				{"unwedge"},
				{"tiers", "--wait", "--nudge"},
				{"tiers"},
				{"tiers", "why", "storage"},
			} {
				mark := b.c.Mark()
				o := b.sh.want(t, 5, append(command, tt.expect...)...)
				o.holds(t, o.stderr, tt.says, "expected", "found", b.c.URL())
				arrived, err := b.c.Since(t.Context(), mark)
				if err != nil {
					t.Fatal(err)
				}
				arrived = arrived.By("kubectl-")
				if tt.unasked && len(arrived) != 0 {
					t.Errorf("%s\narrived:\n%s", o, arrived)
				}
				// The identity is read; nothing else is asked of a wrong cluster.
				for _, e := range arrived {
					if e.Verb != "get" || e.Resource != "namespaces" || e.Name != "kube-system" {
						t.Errorf("%s\narrived: %s", o, e)
					}
				}
			}
		})
	}
	b.notApplied(t)
}

// withBrokenArtifact: what arrives is held against the digest that the source
// states, and is not built when it differs.
func (b *breaker) withBrokenArtifact(t *testing.T) {
	// Else it would fail on the artifact as well.
	if err := b.c.Stop(t.Context(), cluster.KustomizeController); err != nil {
		t.Fatal(err)
	}
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "storage"}}
	if err := b.c.Client().Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(filepath.Dir(b.c.LogFile(cluster.SourceController))), "artifacts", repository.Status.Artifact.Path)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"truncated": good[:len(good)/2],
		"empty":     {},
		"changed":   append(bytes.Clone(good), 0),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			o := b.sh.want(t, 1, "tiers", "why", "storage")
			o.holds(t, o.stderr, "error: whether a retry will heal Kustomization/flux-system/storage could not be found out: "+
				"source GitRepository/flux-system/storage: its artifact cannot be fetched ("+repository.Status.Artifact.Digest+")")
			oneSentence(t, o, 2)
			mark := b.c.Mark()
			b.crds(t, 1)
			mutatedNothing(t, b.c, mark)
			if o := b.sh.run(t, append([]string{"standup", "preflight"}, b.named...)...); o.code != 3 || !strings.Contains(o.stdout, "its artifact cannot be fetched") {
				t.Errorf("%s\nwant a finding", o)
			}
		})
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.c.Start(t.Context(), cluster.KustomizeController); err != nil {
		t.Fatal(err)
	}
	b.untilBlocked(t, `no matches for kind "StorageProfile"`)
}

// withDeadAPIService: discovery that fails for one group says nothing of the
// others. (CRD-13)
func (b *breaker) withDeadAPIService(t *testing.T) {
	const name = "v1beta1.metrics.example.com"
	if err := b.c.Apply(t.Context(), `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: `+name+`}
spec:
  group: metrics.example.com
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nobody}
`); err != nil {
		t.Fatal(err)
	}
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName(name)
	if err := b.c.Until(t.Context(), service, func() bool {
		conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			available, _ := c.(map[string]any)
			return available["type"] == "Available" && available["status"] == "False"
		})
	}); err != nil {
		t.Fatal(err)
	}
	o := b.sh.want(t, 0, "tiers", "why", "storage")
	o.holds(t, o.stdout, "Deadlock: CDI/cdi would create StorageProfile")
	b.crds(t, 0, "--dry-run")
	if err := b.c.Client().Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if err := b.c.UntilGone(t.Context(), service); err != nil {
		t.Fatal(err)
	}
}

func (b *breaker) rehearsed(t *testing.T) {
	mark := b.c.Mark()
	o := b.crds(t, 0, "--dry-run")
	o.holds(t, o.stderr, "CDI/cdi would be applied (server dry run)", "would be nudged")
	mutatedNothing(t, b.c, mark)
	b.notApplied(t)
}

// withoutOperator: it may run elsewhere, so the breaker goes on. The kinds do
// not come.
func (b *breaker) withoutOperator(t *testing.T) {
	o := b.crds(t, 4, "--timeout", "2s")
	o.holds(t, o.stderr, "Warning: no operator of KubeVirt CDI was seen on this cluster; going on, since it may run elsewhere",
		"error: CDI/cdi was applied, but after 2s these are not served: storageprofiles.cdi.kubevirt.io",
		"no operator of KubeVirt CDI was seen on this cluster")
	if strings.Contains(o.stderr, "Deployment") {
		t.Errorf("%s\na missing operator has no Deployment", o)
	}
	// Run again it does not apply the trigger twice, and waits for the rest.
	mark := b.c.Mark()
	o = b.crds(t, 3, "--dry-run")
	o.holds(t, o.stdout, "CDI/cdi is on the cluster, but its operator has not created StorageProfile yet")
	o = b.crds(t, 4, "--timeout", "1s")
	o.holds(t, o.stderr, "error: CDI/cdi was applied, but after 1s these are not served: storageprofiles.cdi.kubevirt.io")
	mutatedNothing(t, b.c, mark)
	b.removeTrigger(t)
}

// withSlowOperator: its Deployment is there, and its Pod does not come up. There
// is no kubelet: the test writes what one would say of the Pod.
func (b *breaker) withSlowOperator(t *testing.T) {
	if err := b.c.InstallCDI(t.Context()); err != nil {
		t.Fatal(err)
	}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cdi", Name: "cdi-operator"}}
	if err := b.c.Until(t.Context(), operator, func() bool { return operator.Status.Replicas == 1 }); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := b.c.Client().List(t.Context(), &pods, client.InNamespace("cdi")); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	pod := &pods.Items[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ImagePullBackOff", Message: "Back-off pulling image \"quay.example.com/cdi-operator\"\x1b[2J",
		}},
	}}
	if err := b.c.Client().Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	o := b.crds(t, 4, "--timeout", "2s")
	o.holds(t, o.stderr, "error: CDI/cdi was applied, but after 2s these are not served: storageprofiles.cdi.kubevirt.io",
		"the operator of KubeVirt CDI, Deployment/cdi/cdi-operator, has 0 of 1 replicas available; Pod "+pod.Name+
			` is not Ready: ImagePullBackOff: Back-off pulling image "quay.example.com/cdi-operator"`)
	if strings.Contains(o.stderr, "no operator") || strings.Contains(o.stderr, "Warning") || strings.Contains(o.stderr, "\x1b") {
		t.Errorf("%s\nthe operator is there and slow, and its text is no escape code", o)
	}
	b.removeTrigger(t)
}

// withLateOperator: the breaker is waiting already when the real cdi-operator
// starts.
func (b *breaker) withLateOperator(t *testing.T) {
	merge(t, b.c, tierOf("flux-system", "storage"), "flux", `{"spec":{"retryInterval":"2s"}}`)
	mark := b.c.Mark()
	breaking := b.sh.start(t, append(append([]string{"standup", "crds"}, b.named...), "--timeout", "15m")...)
	breaking.says(t, "CDI/cdi applied")
	if err := b.c.Start(t.Context(), cluster.CDIOperator); err != nil {
		t.Fatal(err)
	}
	o := breaking.wait(t)
	if o.code != 0 {
		t.Fatal(o)
	}
	o.holds(t, o.stderr, "StorageProfile served after", "Kustomization/flux-system/storage nudged")
	served(t, b.c, "storageprofiles")
	if got := sent(t, b.c, mark, "kubectl-standup").Mutating(); len(got) != 2 {
		t.Errorf("arrived:\n%s\nwant the CDI resource and a nudge", got)
	}
	b.sh.want(t, 0, "tiers", "--wait", "storage")
}
