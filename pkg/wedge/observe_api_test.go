// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// answers serves lists, each of them in pages of one item, and single objects.
// What it does not know is forbidden where the path says so, else not found.
type answers struct {
	lists     map[string]string // path → items, in YAML
	objects   map[string]string
	forbidden []string
	expire    string // the list whose token runs out once

	mu    sync.Mutex
	asked []string
}

func (a *answers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	first := !slices.Contains(a.asked, r.URL.String())
	a.asked = append(a.asked, r.URL.String())
	a.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason metav1.StatusReason, message string) {
		rw.WriteHeader(code)
		_ = json.NewEncoder(rw).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
		})
	}
	if slices.Contains(a.forbidden, r.URL.Path) {
		fail(http.StatusForbidden, metav1.StatusReasonForbidden, r.URL.Path+" is forbidden to you")
		return
	}
	if text, ok := a.objects[r.URL.Path]; ok {
		raw, _ := yaml.YAMLToJSON([]byte(text))
		_, _ = rw.Write(raw)
		return
	}
	text, ok := a.lists[r.URL.Path]
	if !ok && slices.Contains([]string{"/apis/apps/v1/statefulsets", "/apis/apps/v1/daemonsets"}, r.URL.Path) {
		text, ok = "[]", true // the tests' workloads are Deployments
	}
	if !ok {
		fail(http.StatusNotFound, metav1.StatusReasonNotFound, "no such thing")
		return
	}
	var items []any
	if err := yaml.Unmarshal([]byte(text), &items); err != nil {
		fail(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	at := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		if r.URL.Path == a.expire && first {
			fail(http.StatusGone, metav1.StatusReasonExpired, "the token is too old")
			return
		}
		_, _ = fmt.Sscan(token, &at)
	}
	page := map[string]any{"metadata": map[string]any{}, "items": []any{}}
	if at < len(items) {
		page["items"] = items[at : at+1]
	}
	if at+1 < len(items) {
		page["metadata"] = map[string]any{"continue": fmt.Sprint(at + 1)}
	}
	_ = json.NewEncoder(rw).Encode(page)
}

func (a *answers) observe(t *testing.T) (*World, []Gap) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	book, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := apiWorld()
	gaps := (&Cluster{cfg: cfg, book: book, discovery: client}).observeAPI(t.Context(), w)
	return w, gaps
}

const (
	pathCRDs       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	pathAPIs       = "/apis/apiregistration.k8s.io/v1/apiservices"
	pathValidating = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	pathMutating   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	pathNamespaces = "/api/v1/namespaces"
)

func quiet() *answers {
	return &answers{lists: map[string]string{pathCRDs: "[]", pathAPIs: "[]", pathValidating: "[]", pathMutating: "[]", pathNamespaces: "[]"}}
}

func TestObserveNothingWrong(t *testing.T) {
	a := quiet()
	a.lists[pathNamespaces] = `[{metadata: {name: a}, status: {phase: Active}}, {metadata: {name: b}}]`
	a.lists[pathAPIs] = `
- {metadata: {name: v1.apps}, spec: {group: apps, version: v1}}
- {metadata: {name: v1.x}, spec: {group: x, version: v1, service: {namespace: ops, name: x}}, status: {conditions: [{type: Available, status: "True"}]}}`
	a.lists["/apis/discovery.k8s.io/v1/namespaces/ops/endpointslices"] = `
- {metadata: {name: x-1, labels: {kubernetes.io/service-name: x}}, endpoints: [{conditions: {ready: false}}, {conditions: {}}]}`
	w, gaps := a.observe(t)
	if len(gaps) > 0 || len(w.Terminating) > 0 || len(w.APIServices) != 1 {
		t.Errorf("gaps %v, world %+v", gaps, w.API)
	}
	if b := w.Backends[svcName("ops", "x")]; b == nil || !b.Exists || b.Ready != 1 || b.NotReady != 1 {
		t.Errorf("backend %+v", b)
	}
	for _, asked := range a.asked {
		if strings.Contains(asked, "deployments") || strings.Contains(asked, "pods") || strings.Contains(asked, "services/") {
			t.Errorf("nothing is wrong, and %s was asked", asked)
		}
	}
	if len(a.asked) != 8 { // the five kinds, of two of them two pages, and one namespace's slices
		t.Errorf("%d requests:\n%s", len(a.asked), strings.Join(a.asked, "\n"))
	}
}

func TestObserveForbidden(t *testing.T) {
	a := quiet()
	a.forbidden = []string{pathCRDs, pathNamespaces, "/apis/discovery.k8s.io/v1/namespaces/ops/endpointslices", "/api/v1/namespaces/kube/services/q", "/apis/apps/v1/deployments"}
	a.lists[pathAPIs] = `
- {metadata: {name: v1.x}, spec: {group: x, version: v1, service: {namespace: ops, name: x}}}
- {metadata: {name: v1.q}, spec: {group: q, version: v1, service: {namespace: kube, name: q}}}
- {metadata: {name: v1.z}, spec: {group: z, version: v1, service: {namespace: kube, name: z}}}`
	a.lists["/apis/discovery.k8s.io/v1/namespaces/kube/endpointslices"] = "[]"
	w, gaps := a.observe(t)
	var what []string
	for _, g := range gaps {
		what = append(what, g.What)
		if !strings.Contains(g.Why, "is forbidden to you") {
			t.Errorf("gap %+v does not say why", g)
		}
	}
	slices.Sort(what)
	want := []string{"CustomResourceDefinitions in all namespaces", "EndpointSlices in namespace ops", "Namespaces in all namespaces", "Service/kube/q", "workloads in all namespaces"}
	if !slices.Equal(what, want) {
		t.Errorf("gaps %q, want %q", what, want)
	}
	if w.Unread[PartDefinitions] == "" || w.Unread[PartNamespaces] == "" || w.Unread[PartAPIServices] != "" || w.Data.Unknown == "" {
		t.Errorf("unread %v, data %+v", w.Unread, w.Data)
	}
	for _, v := range deadAPIs(w) {
		if len(v.Actions) > 0 {
			t.Errorf("%s is acted on though not all could be read: %+v", v.Object, v.Actions)
		}
	}
}

func TestObserveDefinitions(t *testing.T) {
	a := quiet()
	a.expire = pathCRDs
	a.lists[pathCRDs] = `
- metadata:
    name: widgets.obs.example.com
    uid: u1
    generation: 3
    labels: {helm.toolkit.fluxcd.io/name: obs, helm.toolkit.fluxcd.io/namespace: apps}
    annotations: {meta.helm.sh/release-name: obs, meta.helm.sh/release-namespace: apps, other: "1"}
    ownerReferences: [{apiVersion: v1, kind: Boss, name: b, uid: u9, controller: true}]
    managedFields: [{manager: helm-controller, fieldsV1: {}}, {manager: kube-apiserver, subresource: status}]
  spec:
    group: obs.example.com
    names: {kind: Widget, plural: widgets}
    scope: Namespaced
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v1beta1, served: false}]
    conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: aGVsbG8=, service: {namespace: ops, name: hook, port: 443}}}}
  status:
    storedVersions: [v1beta1, v1]
    conditions: [{type: Established, status: "True", reason: x, lastTransitionTime: "2026-01-01T00:00:00Z"}]
- metadata: {name: things.example.com, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [customresourcecleanup.apiextensions.k8s.io]}
  spec: {group: example.com, names: {kind: Thing, plural: things}, scope: Cluster, versions: [{name: v1, served: true, storage: true}], conversion: {strategy: None}}`
	a.lists["/apis/discovery.k8s.io/v1/namespaces/ops/endpointslices"] = "[]"
	a.lists["/apis/apps/v1/deployments"] = `
- metadata: {namespace: ops, name: hook, uid: d1, generation: 2}
  spec: {template: {metadata: {labels: {app: hook}, annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z"}},
    spec: {containers: [{name: manager, image: "registry.example:5000/obs/widget-operator:v1@sha256:abc", command: [/usr/bin/run]}]}}}`
	a.objects = map[string]string{"/api/v1/namespaces/ops/services/hook": "{spec: {type: ClusterIP, selector: {app: hook}}}"}
	a.lists["/api/v1/namespaces/ops/pods"] = `
- {metadata: {name: hook-0, labels: {app: hook}}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node}]}}
- {metadata: {name: hook-1, labels: {app: hook}}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}
- {metadata: {name: hook-2, labels: {app: hook}}, status: {phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}}]}}
- {metadata: {name: hook-3, labels: {app: hook}}, status: {phase: Failed, reason: Evicted}}
- {metadata: {name: hook-4, labels: {app: hook}, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Running}}
- {metadata: {name: job-0}, status: {phase: Succeeded}}`
	a.lists["/apis/example.com/v1/things"] = `
- metadata: {name: held, uid: t1, finalizers: [example.com/keep], managedFields: [{manager: maker, fieldsV1: {"f:metadata": {"f:finalizers": {}}}}, {manager: other, fieldsV1: {"f:spec": {}}}]}
- metadata: {name: free, uid: t2}`
	w, gaps := a.observe(t)
	if len(gaps) > 0 {
		t.Errorf("gaps %v", gaps)
	}
	if len(w.Definitions) != 2 {
		t.Fatalf("%d definitions: a list that was begun anew must not hold an item twice", len(w.Definitions))
	}
	d := w.Definitions[0]
	if d.Owner.Tier.String() != "HelmRelease/apps/obs" || d.Owner.Release != "apps/obs" || d.Owner.ControllerUID != "u9" || !slices.Equal(d.Owner.Managers, []string{"helm-controller", "kube-apiserver"}) {
		t.Errorf("owner %+v", d.Owner)
	}
	if d.Conversion == nil || !d.Conversion.CABundle || d.Conversion.Service != svcName("ops", "hook") || d.storage() != "v1" || !d.converts() || d.Generation != 3 || !d.Namespaced {
		t.Errorf("definition %+v", d)
	}
	if len(w.Held) != 1 || w.Held[0].Ref.Name != "held" || !slices.Equal(w.Held[0].SetBy, []string{"maker"}) {
		t.Errorf("held %+v", w.Held)
	}
	if len(w.Workloads) != 1 || !slices.Contains(w.Workloads[0].Names, "widget-operator") || !slices.Contains(w.Workloads[0].Names, "run") || w.Workloads[0].Wanted != 1 || w.Workloads[0].RestartedAt.IsZero() {
		t.Errorf("workloads %+v", w.Workloads)
	}
	var pods []string
	for _, p := range w.Pods {
		pods = append(pods, p.Ref.Name+" "+p.Why)
	}
	if !slices.Equal(pods, []string{"hook-0 Unschedulable: no node", "hook-2 CrashLoopBackOff"}) {
		t.Errorf("pods %q", pods)
	}
	if v := one(t, conversions(w)); v.ResolvesItself != When {
		t.Errorf("%+v", v)
	}
}

func TestObserveWebhooks(t *testing.T) {
	a := quiet()
	a.lists[pathValidating] = `
- metadata: {name: v, uid: u, resourceVersion: "3"}
  webhooks:
  - {name: closed, clientConfig: {service: {namespace: ops, name: x}}, rules: [{apiGroups: [apps], resources: [deployments], operations: ["*"]}], namespaceSelector: {}, objectSelector: {}}
  - {name: ignored, clientConfig: {service: {namespace: ops, name: x}}, failurePolicy: Ignore, namespaceSelector: {matchLabels: {a: b}}}
  - {name: by-url, clientConfig: {url: "https://example.com"}, failurePolicy: Fail}`
	a.lists[pathMutating] = `[{metadata: {name: m}, webhooks: [{name: external, failurePolicy: Fail, clientConfig: {service: {namespace: ops, name: far}}, rules: [{apiGroups: [""], resources: [pods], operations: [CREATE]}]}]}]`
	a.lists["/apis/discovery.k8s.io/v1/namespaces/ops/endpointslices"] = "[]"
	a.lists["/apis/apps/v1/deployments"] = "[]"
	a.objects = map[string]string{"/api/v1/namespaces/ops/services/far": "{spec: {type: ExternalName}}"}
	w, gaps := a.observe(t)
	if len(gaps) > 0 || len(w.Webhooks) != 2 {
		t.Fatalf("gaps %v, webhooks %+v", gaps, w.Webhooks)
	}
	h := w.Webhooks[slices.IndexFunc(w.Webhooks, func(c *WebhookConfiguration) bool { return c.Ref.Name == "v" })].Webhooks
	if !h[0].FailClosed || h[0].Narrow || h[1].FailClosed || !h[1].Narrow || h[2].Service.Name != "" {
		t.Errorf("webhooks %+v", h)
	}
	v := one(t, deadWebhooks(w)) // not the one by name of another host
	does(t, v, Never, "wait Service/ops/x", "patch ValidatingWebhookConfiguration/v!")
}

func TestObserveNamespacesAndTriggers(t *testing.T) {
	a := quiet()
	a.lists[pathNamespaces] = `
- metadata: {name: apps, uid: n1, deletionTimestamp: "2026-01-01T00:00:00Z"}
  spec: {finalizers: [kubernetes]}
  status: {conditions: [{type: NamespaceContentRemaining, status: "True", reason: SomeResourcesRemain, lastTransitionTime: "2026-01-01T00:00:00Z",
    message: "Some resources are remaining: persistentvolumeclaims. has 1 resource instances, ghosts.example.com has 2 resource instances"}]}`
	a.lists[pathCRDs] = `
- {metadata: {name: cdis.cdi.kubevirt.io}, spec: {group: cdi.kubevirt.io, names: {kind: CDI, plural: cdis}, scope: Cluster, versions: [{name: v1beta1, served: true, storage: true}]}}
- {metadata: {name: datavolumes.cdi.kubevirt.io}, spec: {group: cdi.kubevirt.io, names: {kind: DataVolume, plural: datavolumes}, scope: Namespaced, versions: [{name: v1beta1, served: true, storage: true}]}}`
	a.lists["/apis/cdi.kubevirt.io/v1beta1/cdis"] = `
- metadata: {name: cdi, uid: c1, finalizers: [operator.cdi.kubevirt.io]}
  status: {phase: Error, operatorVersion: v1.57.0, conditions: [{type: Degraded, status: "True", reason: ConfigError, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	a.lists["/apis/cdi.kubevirt.io/v1beta1/datavolumes"] = `
- {metadata: {namespace: vms, name: golden}, status: {phase: ImportInProgress}}
- {metadata: {namespace: vms, name: done}, status: {phase: Succeeded}}`
	a.lists["/api/v1/persistentvolumeclaims"] = `
- {metadata: {namespace: vms, name: filling, annotations: {cdi.kubevirt.io/storage.pod.phase: Running}}}
- {metadata: {namespace: vms, name: filled, annotations: {cdi.kubevirt.io/storage.pod.phase: Succeeded}}}`
	a.lists["/api/v1/namespaces/apps/persistentvolumeclaims"] = `[{metadata: {namespace: apps, name: data, uid: p1, finalizers: [kubernetes.io/pvc-protection]}}]`
	a.lists["/apis/apps/v1/deployments"] = `
- {metadata: {namespace: virt, name: cdi-operator, labels: {operator.cdi.kubevirt.io: "", name: cdi-operator}}, spec: {replicas: 1}, status: {availableReplicas: 1}}`
	a.lists["/api/v1/namespaces/virt/pods"] = "[]"
	a.objects = map[string]string{
		"/api/v1/namespaces/virt/configmaps/cdi-config": `{metadata: {namespace: virt, name: cdi-config, ownerReferences: [{kind: CDI, name: cdi, uid: old, controller: true}]}}`,
		"/api":    `{kind: APIVersions, versions: [v1]}`,
		"/apis":   `{kind: APIGroupList, groups: []}`,
		"/api/v1": `{kind: APIResourceList, groupVersion: v1, resources: [{name: persistentvolumeclaims, namespaced: true, kind: PersistentVolumeClaim}]}`,
	}
	w, gaps := a.observe(t)
	if len(gaps) > 0 {
		t.Errorf("gaps %v", gaps)
	}
	if len(w.Terminating) != 1 || len(w.Terminating[0].Unread) != 1 || !strings.Contains(w.Terminating[0].Unread[0], "ghosts.example.com") {
		t.Fatalf("namespaces %+v", w.Terminating)
	}
	if len(w.Held) != 1 || w.Held[0].Ref.String() != "PersistentVolumeClaim/apps/data" {
		t.Errorf("held %+v", w.Held)
	}
	if len(w.Triggers) != 1 || w.Triggers[0].Phase != phaseError || w.Triggers[0].Relation.ID != "cdi" || w.Triggers[0].OperatorVersion != "v1.57.0" {
		t.Fatalf("triggers %+v", w.Triggers)
	}
	var data []string
	for _, d := range w.Data.imports() {
		data = append(data, d.Ref.String())
	}
	if !slices.Equal(data, []string{"DataVolume/vms/golden", "PersistentVolumeClaim/vms/filling"}) || len(w.Data.Objects) != 3 {
		t.Errorf("data in flight %q of %+v", data, w.Data.Objects)
	}
	if w.Lock == nil || !w.Lock.Exists || w.Lock.Owner.ControllerUID != "old" || w.Lock.Ref.Namespace != "virt" {
		t.Errorf("lock %+v", w.Lock)
	}
	v := one(t, cdiErrors(w))
	does(t, v, Never, "restart Deployment/virt/cdi-operator")
}
