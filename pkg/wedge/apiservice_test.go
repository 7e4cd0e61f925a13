// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func metrics() schema.GroupVersion {
	return schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
}

func metricsAPI(available *metav1.Condition) func(*World) {
	return func(w *World) {
		w.APIServices = append(w.APIServices, &APIService{
			Observed: Observed{
				Ref: flux.Ref{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: "v1beta1.metrics.k8s.io"},
				UID: "uid-api", ResourceVersion: "3",
			},
			GroupVersion: metrics(), Service: svcName("kube-system", "metrics-server"), Available: available,
		})
	}
}

// TestCRD13 is an aggregated API that does not answer: what is told of it, and
// that it is only deleted when its Service does not exist.
func TestCRD13(t *testing.T) {
	gone := isNot("Available", "ServiceNotFound", `service/metrics-server in "kube-system" is not present`)
	empty := isNot("Available", "MissingEndpoints", `endpoints for service/metrics-server in "kube-system" have no addresses`)
	labels := map[string]string{"k8s-app": "metrics-server"}
	name := svcName("kube-system", "metrics-server")
	for what, c := range map[string]struct {
		world    []func(*World)
		state    string
		resolves Resolves
		actions  []string
		says     []string
	}{
		"the Service does not exist": {
			[]func(*World){metricsAPI(&gone), service(Backend{Service: name})},
			"no-service", Never,
			[]string{"wait Service/kube-system/metrics-server", "delete APIService/v1beta1.metrics.k8s.io!"},
			[]string{"ServiceNotFound", "does not exist"},
		},
		"its Pods are not Ready": {
			[]func(*World){
				metricsAPI(&empty), service(Backend{Service: name, Exists: true, Selector: labels}),
				func(w *World) {
					w.Pods = []Pod{{flux.Ref{Kind: "Pod", Namespace: "kube-system", Name: "metrics-server-0"}, labels, "ImagePullBackOff: no such image"}}
				},
			},
			"waiting", When, nil,
			[]string{"ImagePullBackOff: no such image", "0 ready, 0 not ready"},
		},
		"its Deployment is coming up": {
			[]func(*World){
				metricsAPI(&empty), service(Backend{Service: name, Exists: true, Selector: labels}),
				has(deployment("kube-system", "metrics-server", 2, 0, labels)),
			},
			"waiting", When, nil,
			[]string{"0 of 2"},
		},
		"its Deployment is scaled to zero": {
			[]func(*World){
				metricsAPI(&empty), service(Backend{Service: name, Exists: true, Selector: labels}),
				has(deployment("kube-system", "metrics-server", 0, 0, labels)),
			},
			"no-workload", Never, nil,
			[]string{"is scaled to zero", "not deleted while its Service exists"},
		},
		"nothing is behind the Service": {
			[]func(*World){metricsAPI(&empty), service(Backend{Service: name, Exists: true, Selector: labels})},
			"no-workload", Never, nil,
			[]string{"MissingEndpoints"},
		},
		"it answers wrong": {
			[]func(*World){metricsAPI(&empty), service(Backend{Service: name, Ready: 1})},
			"answers-wrong", When, nil,
			[]string{"caBundle"},
		},
		"the Service may not be read": {
			[]func(*World){metricsAPI(&gone), service(Backend{Service: name, Unknown: "services is forbidden"})},
			"unknown", When, nil,
			[]string{"services is forbidden"},
		},
		"the Deployments may not be read": {
			[]func(*World){metricsAPI(&gone), service(Backend{Service: name}), func(w *World) { w.Unread[PartWorkloads] = "deployments is forbidden" }},
			"unknown", When, nil,
			[]string{"deployments is forbidden"},
		},
		"the API server has not looked yet": {
			[]func(*World){metricsAPI(nil), service(Backend{Service: name, Exists: true, NotReady: 1})},
			"waiting", When, nil,
			[]string{"has not looked yet"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, deadAPIs(apiWorld(c.world...)))
			does(t, v, c.resolves, c.actions...)
			mentions(t, v, append(c.says, "metrics.k8s.io/v1beta1")...)
			if v.State != c.state || v.Cause != APIUnavailable {
				t.Errorf("state %s, cause %s", v.State, v.Cause)
			}
		})
	}
}

func TestCRD13Breaks(t *testing.T) {
	gone := isNot("Available", "ServiceNotFound", "not present")
	v := one(t, deadAPIs(apiWorld(
		metricsAPI(&gone), service(Backend{Service: svcName("kube-system", "metrics-server")}),
		func(w *World) {
			w.Served = discovered(t, []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}, metrics())
		},
		terminates(
			goingNamespace("old", isSo("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: stale GroupVersion discovery")),
			goingNamespace("other", isSo("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", "Discovery failed for some groups, 1 failing: custom.metrics.k8s.io/v1: stale")),
		),
	)))
	mentions(t, v, "Namespace/old cannot be deleted because of it", "unknown, which is not the same as absent", "stale GroupVersion discovery")
	for _, e := range v.Evidence {
		if e.Object.Name == "other" {
			t.Error("it is blamed for another group's failure")
		}
	}
}

func TestAvailableAPIIsLeftAlone(t *testing.T) {
	yes := isSo("Available", "Passed", "all checks passed")
	none(t, deadAPIs(apiWorld(metricsAPI(&yes), service(Backend{Service: svcName("kube-system", "metrics-server")}))))
}
