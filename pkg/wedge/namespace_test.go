// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"
	"time"
)

// A Namespace that is being deleted is only ever explained: what holds it, and
// which verdict frees that.
func TestNamespaces(t *testing.T) {
	failing := func(kind, message string) *TerminatingNamespace {
		return goingNamespace("apps", isSo(kind, "x", message))
	}
	for what, c := range map[string]struct {
		world []func(*World)
		says  []string
	}{
		"a controller that is gone": {
			[]func(*World){
				terminates(failing("NamespaceFinalizersRemaining", "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances")),
				holding(widget("x", "widget-operator")),
			},
			[]string{"Widget/apps/x by example.com/keep", "see finalizer-held", "Some content in the namespace has finalizers remaining"},
		},
		"CRD-10": {
			[]func(*World){terminates(goingNamespace("kubevirt")), hasTrigger(kubevirt(t, goingAway))},
			[]string{"KubeVirt/kubevirt/kubevirt by foregroundDeleteKubeVirt", "see finalizer-held"},
		},
		"CRD-13": {
			[]func(*World){
				terminates(failing("NamespaceDeletionDiscoveryFailure", "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: stale")),
				metricsAPI(nil),
			},
			[]string{"discovery of metrics.k8s.io/v1beta1 fails", "APIService/v1beta1.metrics.k8s.io: see api-unavailable"},
		},
		"CRD-14": {
			[]func(*World){terminates(failing("NamespaceDeletionContentFailure", "conversion webhook for obs.example.com/v1, Kind=Widget failed: Post"))},
			[]string{"cannot be converted", "see conversion-fails"},
		},
		"CRD-09": {
			[]func(*World){terminates(failing("NamespaceDeletionContentFailure", `Internal error occurred: failed calling webhook "v"`))},
			[]string{"see webhook-without-backend"},
		},
		"HELM-23": {
			[]func(*World){terminates(goingNamespace("apps")), holding(heldObject("helm.toolkit.fluxcd.io/v2", "HelmRelease", "apps", "db", "finalizers.fluxcd.io"))},
			[]string{"HelmRelease/apps/db by finalizers.fluxcd.io", "Never suspend it"},
		},
		"a claim in use": {
			[]func(*World){terminates(goingNamespace("apps")), holding(heldObject("v1", "PersistentVolumeClaim", "apps", "data", "kubernetes.io/pvc-protection"))},
			[]string{"a Pod still uses the claim"},
		},
		"its own finalizer": {
			[]func(*World){terminates(func() *TerminatingNamespace {
				n := goingNamespace("apps")
				n.Spec = []string{"kubernetes", "controller.cattle.io/namespace-auth"}
				return n
			}())},
			[]string{"the Namespace itself by controller.cattle.io/namespace-auth"},
		},
		"nobody acts": {[]func(*World){terminates(goingNamespace("apps"))}, []string{"kube-controller-manager"}},
		"what remains is unreadable": {
			[]func(*World){terminates(func() *TerminatingNamespace {
				n := failing("NamespaceContentRemaining", "Some resources are remaining: widgets.example.com has 1 resource instances")
				n.Unread = []string{"widgets.example.com: forbidden"}
				return n
			}())},
			[]string{"not readable: widgets.example.com: forbidden"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, namespaces(apiWorld(c.world...)))
			if what != "nobody acts" {
				mentions(t, v, "finalize call is never used")
				if len(v.Evidence) == 0 && what != "its own finalizer" {
					t.Error("no evidence")
				}
			}
			mentions(t, v, c.says...)
			if v.ResolvesItself != When || len(v.Actions) > 0 || v.ResolvesWhen == "" {
				t.Errorf("resolves %s, actions %+v", v.ResolvesItself, v.Actions)
			}
		})
	}
	t.Run("a moment ago", func(t *testing.T) {
		n := goingNamespace("apps")
		n.Deleted = noon.Add(-10 * time.Second)
		none(t, namespaces(apiWorld(terminates(n))))
	})
}
