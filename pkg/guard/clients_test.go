// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every call of every typed client, so that one which a later client-go brings
// is tried too.
func TestEveryTypedCallUnproved(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	c := s.Config()
	c.QPS = -1
	clients, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	var refused, passed int
	for resource := range typedResources(reflect.ValueOf(clients)) {
		for i := range resource.NumMethod() {
			name := resource.Type().Method(i).Name
			sends, err := callTyped(t.Context(), resource.Method(i))
			if !sends {
				continue
			}
			var r *RefusedError
			switch isRefused := errors.As(err, &r); {
			case harmlessCall(resource, name):
				if passed++; isRefused {
					t.Errorf("%s.%s was refused: %v", resource.Type(), name, err)
				}
			case !isRefused:
				t.Errorf("%s.%s passed, or did not come that far: %v", resource.Type(), name, err)
			default:
				refused++
			}
		}
	}
	if refused < 400 || passed < 150 {
		t.Errorf("only %d calls were refused and %d passed: the walk misses most of client-go", refused, passed)
	}
	for _, line := range w.mutations() {
		if !strings.Contains(line, "reviews") {
			t.Errorf("%s arrived", line)
		}
	}
	t.Logf("%d calls refused, %d passed", refused, passed)
}

// typedResources yields CoreV1().Pods("x") and all its siblings.
func typedResources(clients reflect.Value) func(func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for i := range clients.NumMethod() {
			m := clients.Method(i)
			if m.Type().NumIn() != 0 || m.Type().NumOut() != 1 ||
				!strings.HasPrefix(m.Type().Out(0).PkgPath(), "k8s.io/client-go/kubernetes/typed/") {
				continue
			}
			group := m.Call(nil)[0].Elem()
			for j := range group.NumMethod() {
				name := group.Type().Method(j).Name
				if out := group.Method(j).Type(); name == "RESTClient" || out.NumOut() != 1 || out.Out(0).Kind() != reflect.Interface {
					continue
				}
				var in []reflect.Value
				for range group.Method(j).Type().NumIn() {
					in = append(in, reflect.ValueOf("x"))
				}
				if r := group.Method(j).Call(in)[0].Elem(); r.IsValid() && !yield(r) {
					return
				}
			}
		}
	}
}

// callTyped fills in arguments that get the call past client-go's own checks,
// and runs it. False: the method sends nothing.
func callTyped(ctx context.Context, method reflect.Value) (sends bool, err error) {
	var in []reflect.Value
	variadic := method.Type().IsVariadic()
	for i := range method.Type().NumIn() {
		if variadic && i == method.Type().NumIn()-1 {
			break
		}
		in = append(in, argument(ctx, method.Type().In(i)))
	}
	out := method.Call(in)
	last := out[len(out)-1]
	switch v := last.Interface().(type) {
	case rest.ResponseWrapper:
		return true, sendRaw(ctx, v)
	case error:
		return true, v
	case nil:
		return last.Type().Implements(reflect.TypeFor[error]()), nil
	}
	return false, nil
}

func sendRaw(ctx context.Context, w rest.ResponseWrapper) error {
	stream, err := w.Stream(ctx)
	if err == nil {
		_, _ = io.Copy(io.Discard, stream)
		_ = stream.Close()
	}
	return err
}

func argument(ctx context.Context, kind reflect.Type) reflect.Value {
	switch kind {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(ctx)
	case reflect.TypeFor[types.PatchType]():
		return reflect.ValueOf(types.MergePatchType)
	case reflect.TypeFor[[]byte]():
		return reflect.ValueOf([]byte(`{}`))
	case reflect.TypeFor[metav1.ApplyOptions]():
		return reflect.ValueOf(metav1.ApplyOptions{FieldManager: "m"})
	}
	if kind.Kind() == reflect.String {
		return reflect.ValueOf("n").Convert(kind)
	}
	if kind.Kind() != reflect.Pointer {
		return reflect.Zero(kind)
	}
	v := reflect.New(kind.Elem())
	for setter, value := range map[string]string{"WithName": "n", "SetName": "n", "WithNamespace": "x", "SetNamespace": "x"} {
		if m := v.MethodByName(setter); m.IsValid() {
			m.Call([]reflect.Value{reflect.ValueOf(value)})
		}
	}
	if f := v.Elem(); f.Kind() == reflect.Struct && f.FieldByName("Name").IsValid() && f.FieldByName("Name").Kind() == reflect.String {
		f.FieldByName("Name").SetString("n")
	}
	return v
}

func harmlessCall(resource reflect.Value, method string) bool {
	switch method {
	case "Get", "List", "Watch", "GetLogs", "Search", "SearchWithContext":
		return true
	case "Create", "CreateExpansion":
		return strings.HasSuffix(strings.ToLower(resource.Type().String()), "reviews")
	}
	return false
}

func TestEveryDynamicCallUnproved(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "a")
	w := newWire(t, ca, uidA)
	s := connect(t, kubeconfig(t, w.URL, ca.pem), nil)
	ctx := t.Context()
	gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	dyn, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	partial, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	runtime, err := client.New(s.Config(), client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{metav1.DryRunAll}
	for name, call := range map[string]func() error{
		"dynamic patch": func() error {
			_, err := dyn.Resource(gvr).Namespace("x").Patch(ctx, "d", types.ApplyPatchType, nil, metav1.PatchOptions{FieldManager: "m"})
			return err
		},
		"dynamic scale, even dry": func() error {
			_, err := dyn.Resource(gvr).Namespace("x").Patch(ctx, "d", types.MergePatchType, nil, metav1.PatchOptions{DryRun: all}, "scale")
			return err
		},
		"dynamic get of scale": func() error {
			_, err := dyn.Resource(gvr).Namespace("x").Get(ctx, "d", metav1.GetOptions{}, "scale")
			return err
		},
		"dynamic delete": func() error { return dyn.Resource(gvr).Namespace("x").Delete(ctx, "d", metav1.DeleteOptions{}) },
		"dynamic deletecollection": func() error {
			return dyn.Resource(gvr).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"metadata delete": func() error { return partial.Resource(gvr).Namespace("x").Delete(ctx, "d", metav1.DeleteOptions{}) },
		"metadata patch": func() error {
			_, err := partial.Resource(gvr).Namespace("x").Patch(ctx, "d", types.MergePatchType, nil, metav1.PatchOptions{})
			return err
		},
		"runtime create": func() error { return runtime.Create(ctx, configMap()) },
		"runtime update": func() error { return runtime.Update(ctx, configMap()) },
		"runtime patch": func() error {
			return runtime.Patch(ctx, configMap(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"runtime delete":      func() error { return runtime.Delete(ctx, configMap()) },
		"runtime deleteAllOf": func() error { return runtime.DeleteAllOf(ctx, configMap(), client.InNamespace("x")) },
		"runtime status":      func() error { return runtime.Status().Update(ctx, pod()) },
		"runtime eviction, even dry": func() error {
			return runtime.SubResource("eviction").Create(ctx, pod(), &policyv1.Eviction{}, client.DryRunAll)
		},
		"runtime token, even dry": func() error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "d"}}
			return runtime.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{}, client.DryRunAll)
		},
		"raw post": func() error { return disco.RESTClient().Post().AbsPath("/apis/apps/v1").Do(ctx).Error() },
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, call(), "is not proved") })
	}
	// And what the same clients may do.
	if err := dyn.Resource(gvr).Namespace("x").Delete(ctx, "d", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Errorf("dry delete: %v", err)
	}
	if _, err := dyn.Resource(gvr).Namespace("x").Patch(ctx, "d", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: all}); err != nil {
		t.Errorf("dry patch: %v", err)
	}
	if err := runtime.Delete(ctx, configMap(), client.DryRunAll); err != nil {
		t.Errorf("dry runtime delete: %v", err)
	}
	if err := runtime.Create(ctx, configMap(), client.DryRunAll); err != nil {
		t.Errorf("dry runtime create: %v", err)
	}
	want := []string{
		"DELETE /apis/apps/v1/namespaces/x/deployments/d",
		"PATCH /apis/apps/v1/namespaces/x/deployments/d?dryRun=All",
		"DELETE /api/v1/namespaces/x/configmaps/d",
		"POST /api/v1/namespaces/x/configmaps?dryRun=All",
	}
	if got := w.mutations(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q arrived, want %q", got, want)
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "d"}}
}

func pod() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "d"}} }
