// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"

	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/test/cluster"
)

const guardAgent = "kubectl-standup/guard-test"

// guardServer connects as a plugin would. now may be nil.
func guardServer(t *testing.T, kubeconfig string, now func() time.Time) *guard.Server {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	*flags.KubeConfig = kubeconfig
	return guardConnect(t, flags, now)
}

func guardConnect(t *testing.T, flags *genericclioptions.ConfigFlags, now func() time.Time) *guard.Server {
	t.Helper()
	s, err := guard.Connect(flags, guard.Options{UserAgent: guardAgent, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.CloseIdleConnections)
	return s
}

// controlPlane is etcd and an API server: enough to be the right one, or the
// wrong one.
func controlPlane(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	o.Components = []cluster.Component{}
	return cluster.New(t, o)
}

// takeOver stops the API server of a and starts another cluster on its port.
func takeOver(t *testing.T, a *cluster.Cluster, credentials *cluster.Credentials) *cluster.Cluster {
	t.Helper()
	a.Kill(cluster.APIServer)
	return controlPlane(t, cluster.Options{Port: a.Port(), Credentials: credentials})
}

func uidOf(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	uid, err := c.UID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return uid
}

// arrivedMutations are those of ours in a cluster's audit log, after a mark.
func arrivedMutations(t *testing.T, c *cluster.Cluster, since cluster.Mark) cluster.Events {
	t.Helper()
	events, err := c.Since(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	return events.By("kubectl-standup").Mutating()
}

func wantExit5(t *testing.T, err error, text string) {
	t.Helper()
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 5 || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want exit 5 and %q", err, text)
	}
}

// guardCall is one way to change a cluster.
type guardCall struct {
	name string
	run  func(context.Context, *rest.Config) error
	// upgraded is true when it needs a connection that Server.Config does not
	// offer at all.
	upgraded bool
}

func typed(run func(context.Context, kubernetes.Interface) error) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		client, err := kubernetes.NewForConfig(c)
		if err != nil {
			return err
		}
		return run(ctx, client)
	}
}

func second[T any](_ T, err error) error { return err }

func onConfigMaps(run func(context.Context, dynamic.ResourceInterface) error) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		client, err := dynamic.NewForConfig(c)
		if err != nil {
			return err
		}
		return run(ctx, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default"))
	}
}

// mutatingCalls is every kind of call that changes a cluster, through typed and
// dynamic clients and upgraded connections. pkg/guard walks all of client-go's
// typed clients; here the API server says what arrived.
func mutatingCalls() []guardCall {
	configMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}}
	}
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "guard"},
		}}
	}
	calls := []guardCall{
		{name: "create", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().ConfigMaps("default").Create(ctx, configMap(), metav1.CreateOptions{}))
		})},
		{name: "update", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().ConfigMaps("default").Update(ctx, configMap(), metav1.UpdateOptions{}))
		})},
		{name: "patch", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().ConfigMaps("default").Patch(ctx, "guard", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{}))
		})},
		{name: "status", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().Pods("default").UpdateStatus(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}}, metav1.UpdateOptions{}))
		})},
		{name: "scale", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.AppsV1().Deployments("default").UpdateScale(ctx, "guard",
				&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}}, metav1.UpdateOptions{}))
		})},
		{name: "dry scale", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.AppsV1().Deployments("default").Patch(ctx, "guard", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "scale"))
		})},
		{name: "eviction", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return c.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}})
		})},
		{name: "token", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		})},
		{name: "binding", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
			}, metav1.CreateOptions{})
		})},
		{name: "finalize", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "guard"}}, metav1.UpdateOptions{}))
		})},
		{name: "proxy", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return second(c.CoreV1().Services("default").ProxyGet("http", "kubernetes", "443", "/", nil).DoRaw(ctx))
		})},
		{name: "dynamic create", run: onConfigMaps(func(ctx context.Context, r dynamic.ResourceInterface) error {
			return second(r.Create(ctx, object(), metav1.CreateOptions{}))
		})},
		{name: "dynamic update", run: onConfigMaps(func(ctx context.Context, r dynamic.ResourceInterface) error {
			return second(r.Update(ctx, object(), metav1.UpdateOptions{}))
		})},
		{name: "dynamic apply", run: onConfigMaps(func(ctx context.Context, r dynamic.ResourceInterface) error {
			return second(r.Apply(ctx, "guard", object(), metav1.ApplyOptions{FieldManager: "kubectl-standup", Force: true}))
		})},
		{name: "delete", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps("default").Delete(ctx, "guard", metav1.DeleteOptions{})
		})},
		{name: "dynamic delete", run: onConfigMaps(func(ctx context.Context, r dynamic.ResourceInterface) error {
			return r.Delete(ctx, "guard", metav1.DeleteOptions{})
		})},
		{name: "deletecollection", run: typed(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "guard=none"})
		})},
		{name: "dynamic deletecollection", run: onConfigMaps(func(ctx context.Context, r dynamic.ResourceInterface) error {
			return r.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "guard=none"})
		})},
	}
	for _, sub := range []string{"exec", "attach"} {
		calls = append(calls, guardCall{name: sub + " over SPDY", upgraded: true, run: stream(sub, remotecommand.NewSPDYExecutor)},
			guardCall{name: sub + " over WebSocket", upgraded: true, run: stream(sub, overWebSocket)})
	}
	return append(calls,
		guardCall{name: "portforward over SPDY", upgraded: true, run: upgrade(func(c *rest.Config) (http.RoundTripper, error) {
			rt, _, err := spdy.RoundTripperFor(c)
			return rt, err
		})},
		guardCall{name: "portforward over WebSocket", upgraded: true, run: upgrade(func(c *rest.Config) (http.RoundTripper, error) {
			rt, _, err := websocket.RoundTripperFor(c)
			return rt, err
		})})
}

const guardPod = "/api/v1/namespaces/default/pods/guard/"

func podURL(c *rest.Config, sub string) string { return c.Host + guardPod + sub }

func overWebSocket(c *rest.Config, _ string, u *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(c, http.MethodGet, u.String())
}

func stream(sub string, executor func(*rest.Config, string, *url.URL) (remotecommand.Executor, error)) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		u, err := url.Parse(podURL(c, sub) + "?stdout=true&command=true")
		if err != nil {
			return err
		}
		e, err := executor(c, http.MethodPost, u)
		if err != nil {
			return err
		}
		return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard})
	}
}

func upgrade(roundTripper func(*rest.Config) (http.RoundTripper, error)) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		rt, err := roundTripper(c)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, podURL(c, "portforward"), nil)
		if err != nil {
			return err
		}
		_, err = rt.RoundTrip(r)
		return err
	}
}

// tryAll runs every mutating call and wants each refused.
func tryAll(t *testing.T, s *guard.Server, text string) {
	t.Helper()
	for _, call := range mutatingCalls() {
		err := call.run(t.Context(), s.Config())
		if call.upgraded {
			// client-go's SPDY dialer keeps the words of an error and loses the error.
			if err == nil || !strings.Contains(err.Error(), " was refused and not sent: ") || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %v, want a refusal", call.name, err)
			}
			continue
		}
		var refused *guard.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a refusal", call.name, err)
			continue
		}
		wantExit5(t, err, text)
	}
}
