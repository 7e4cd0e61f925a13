// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const (
	helmDeployment = `{"metadata":{"name":"helm-controller","namespace":"flux-system","uid":"u1","generation":4,"resourceVersion":"77",
"labels":{"app.kubernetes.io/component":"helm-controller","app.kubernetes.io/part-of":"flux"}},
"spec":{"replicas":1,"selector":{"matchLabels":{"app":"helm-controller"}},"template":{"spec":{"containers":[
{"name":"istio-proxy","image":"istio/proxyv2:1.30.0"},
{"name":"manager","image":"ghcr.io:443/fluxcd/helm-controller:v1.6.4@sha256:abcd","args":["--concurrent=20"],"resources":{"limits":{"memory":"1Gi"}}}]}}},
"status":{"readyReplicas":1}}`
	shardDeployment = `{"metadata":{"name":"helm-controller-shard1","namespace":"flux-system",
"labels":{"app.kubernetes.io/component":"helm-controller"}},
"spec":{"selector":{"matchLabels":{"app":"helm-controller-shard1"}},"template":{"spec":{"containers":[{"name":"manager","image":"registry:5000/helm-controller"}]}}},"status":{}}`
	// helmPods: the one that runs, an older one that goes, and another
	// controller's.
	helmPods = `{"metadata":{"name":"a","labels":{"app":"helm-controller","pod-template-hash":"x"}},"status":{"phase":"Running","startTime":"2026-11-30T08:00:00Z",
"containerStatuses":[{"name":"manager","restartCount":7,"lastState":{"terminated":{"reason":"OOMKilled","finishedAt":"2026-11-30T10:05:00Z","exitCode":137}}},
{"name":"istio-proxy","restartCount":1,"lastState":{"terminated":{"reason":"Completed","finishedAt":"2026-11-30T09:00:00Z"}}}]}},
{"metadata":{"name":"b","deletionTimestamp":"2026-11-30T10:00:00Z","labels":{"app":"helm-controller"}},"status":{"phase":"Running","startTime":"2026-11-30T09:00:00Z"}},
{"metadata":{"name":"c","labels":{"app":"source-controller"}},"status":{"phase":"Running","startTime":"2026-11-30T10:10:00Z","containerStatuses":[{"restartCount":99}]}}`
)

// fluxObserved observes the controllers behind an API server's answers, by
// path. What has no answer is forbidden.
func fluxObserved(t *testing.T, answers map[string]string) (w *World, gaps []Gap, asked []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		asked = append(asked, in.URL.Path+"?"+in.URL.RawQuery)
		out.Header().Set("Content-Type", "application/json")
		answer, known := answers[in.URL.Path]
		if !known {
			out.WriteHeader(http.StatusForbidden)
			answer = `"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"`
		}
		_, _ = out.Write([]byte("{" + answer + "}")) // a test's answer
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w = fluxWorld()
	w.Controllers = nil
	gaps = c.observeFlux(t.Context(), w)
	return w, gaps, asked
}

func fluxListOf(kind string, items ...string) string {
	return `"kind":"` + kind + `","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + `]`
}

func TestControllersAreObserved(t *testing.T) {
	w, gaps, asked := fluxObserved(t, map[string]string{
		"/apis/apps/v1/deployments":           strings.Replace(fluxListOf("DeploymentList", shardDeployment, helmDeployment), `"v1"`, `"apps/v1"`, 1),
		"/api/v1/namespaces/flux-system/pods": fluxListOf("PodList", helmPods),
	})
	if len(gaps) > 0 || len(asked) != 2 || !strings.Contains(asked[0], "labelSelector=app.kubernetes.io%2Fpart-of%3Dflux") {
		t.Errorf("gaps %v, requests %v", gaps, asked)
	}
	// The shard came first in the list, and the controller has its name all the same.
	c := w.Controllers[helmController]
	if c == nil || w.Controllers["helm-controller-shard1"] == nil {
		t.Fatalf("%v", w.Controllers)
	}
	if c.Deployment.String() != "Deployment/flux-system/helm-controller" || c.Wanted != 1 || c.Ready != 1 || c.Version != "v1.6.4" ||
		!slices.Equal(c.Args, []string{"--concurrent=20"}) || c.MemoryLimit != "1Gi" || c.Restarts != 7 || c.LastTermination != "OOMKilled" ||
		!c.LastTerminatedAt.Equal(time.Date(2026, 11, 30, 10, 5, 0, 0, time.UTC)) || !c.Started.Equal(time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)) ||
		!c.Youngest.Equal(c.Started) {
		t.Errorf("%+v", c)
	}
	if d := w.Deployments[helmController]; d.UID != "u1" || d.Generation != 4 || d.ResourceVersion != "77" || d.Ref != c.Deployment {
		t.Errorf("%+v", d)
	}
	if shard := w.Controllers["helm-controller-shard1"]; shard.Version != "" || shard.Wanted != 1 || shard.Running() {
		t.Errorf("a port is no tag: %+v", shard)
	}
}

// TestControllersStart: an operation is abandoned only when all who may have
// begun it are gone, so the oldest start counts.
func TestControllersStart(t *testing.T) {
	pod := func(app, phase, started, more string) string {
		return `{"metadata":{"labels":{"app":"` + app + `"}` + more + `},"status":{"phase":"` + phase + `","startTime":"2026-11-30T` + started + `:00Z"}}`
	}
	const own, shard, going = "helm-controller", "helm-controller-shard1", `,"deletionTimestamp":"2026-11-30T10:00:00Z"`
	relabelled := strings.Replace(strings.Replace(shardDeployment, `{"app.kubernetes.io/component":"helm-controller"}`, `{"app.kubernetes.io/component":"helm-controller-shard1"}`, 1),
		`"flux-system"`, `"shards"`, 1)
	for name, tt := range map[string]struct {
		pods, shards      []string
		deployment        string
		started, youngest string
	}{
		"a leader that drains":          {pods: []string{pod(own, "Running", "07:00", going), pod(own, "Running", "09:00", "")}, started: "07:00", youngest: "09:00"},
		"a standby that has restarted":  {pods: []string{pod(own, "Running", "09:00", ""), pod(own, "Running", "08:00", "")}, started: "08:00", youngest: "09:00"},
		"what has ended does not count": {pods: []string{pod(own, "Failed", "06:00", ""), pod(own, "Succeeded", "07:00", ""), pod(own, "Running", "09:00", "")}, started: "09:00", youngest: "09:00"},
		"a node that is lost":           {pods: []string{pod(own, "Unknown", "06:00", ""), pod(own, "Running", "09:00", "")}, started: "06:00", youngest: "09:00"},
		"an older shard":                {pods: []string{pod(shard, "Running", "06:00", ""), pod(own, "Running", "09:00", "")}, deployment: shardDeployment, started: "06:00", youngest: "09:00"},
		"a shard without a Pod":         {pods: []string{pod(own, "Running", "09:00", "")}, deployment: shardDeployment, started: "09:00", youngest: "09:00"},
		"a shard with a label of its own": {
			pods: []string{pod(own, "Running", "09:00", "")}, shards: []string{pod(shard, "Running", "05:00", "")},
			deployment: relabelled, started: "05:00", youngest: "09:00",
		},
		"a shard that may not be looked at": {pods: []string{pod(own, "Running", "09:00", "")}, deployment: relabelled, youngest: "09:00"},
		"none":                              {},
	} {
		t.Run(name, func(t *testing.T) {
			deployments := []string{helmDeployment}
			if tt.deployment != "" {
				deployments = append(deployments, tt.deployment)
			}
			answers := map[string]string{
				"/apis/apps/v1/deployments":           strings.Replace(fluxListOf("DeploymentList", deployments...), `"v1"`, `"apps/v1"`, 1),
				"/api/v1/namespaces/flux-system/pods": fluxListOf("PodList", tt.pods...),
			}
			if tt.shards != nil {
				answers["/api/v1/namespaces/shards/pods"] = fluxListOf("PodList", tt.shards...)
			}
			w, _, _ := fluxObserved(t, answers)
			at := func(clock string) (at time.Time) {
				if clock != "" {
					at = time.Date(2026, 11, 30, int(clock[1]-'0'), 0, 0, 0, time.UTC)
				}
				return at
			}
			if c := w.Controllers[helmController]; !c.Started.Equal(at(tt.started)) || !c.Youngest.Equal(at(tt.youngest)) {
				t.Errorf("started %s, youngest %s", c.Started, c.Youngest)
			}
		})
	}
}

func TestWhatMayNotBeListedIsAGap(t *testing.T) {
	w, gaps, _ := fluxObserved(t, nil)
	if len(gaps) != 1 || !strings.Contains(gaps[0].Why, "deployments") || w.Controllers != nil {
		t.Errorf("%v %v", gaps, w.Controllers)
	}
	w, gaps, _ = fluxObserved(t, map[string]string{
		"/apis/apps/v1/deployments": strings.Replace(fluxListOf("DeploymentList", helmDeployment), `"v1"`, `"apps/v1"`, 1),
	})
	if len(gaps) != 1 || !strings.Contains(gaps[0].Why, "pods in namespace flux-system") || !w.Controllers[helmController].Running() {
		t.Errorf("%v %v", gaps, w.Controllers)
	}
}

func TestWithoutFluxNothingIsAsked(t *testing.T) {
	if gaps := (&Cluster{}).observeFlux(t.Context(), &World{}); gaps != nil {
		t.Error(gaps)
	}
}
