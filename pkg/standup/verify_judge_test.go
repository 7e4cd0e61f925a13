// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parsed is an object out of YAML, with the numbers as a client decodes them.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 1, progressDeadlineSeconds: 600}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, "
	available  = "conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}, {type: Available, status: 'True'}]}}"
	custom     = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a, generation: 2}, "
	service    = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}"
)

func TestJudge(t *testing.T) {
	tests := map[string]struct {
		object string
		class  class
		why    string
	}{
		"a Deployment that is available":  {deployment + "readyReplicas: 1, availableReplicas: 1, " + available, wellSaid, ""},
		"a Deployment that is not":        {deployment + available, late, "Available: 0/1"},
		"a Deployment past its deadline":  {deployment + "conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", broken, "Progress deadline exceeded"},
		"a Deployment of no Pods":         {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}, {type: Available, status: 'True'}]}}", mute, "scaled to zero"},
		"something that is being deleted": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x/y]}}", goingAway, "held by finalizers [x/y]"},
		"a ConfigMap":                     {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", wellApplied, ""},
		"a ClusterRole":                   {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}", wellApplied, ""},
		"a repository of type oci":        {"{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: a}, spec: {type: oci}}", wellApplied, ""},
		"a repository without a status":   {"{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: a}, spec: {}}", mute, ""},
		"an Alert":                        {"{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Alert, metadata: {name: a}}", wellApplied, ""},
		"an Alert of an older Flux":       {"{apiVersion: notification.toolkit.fluxcd.io/v1beta2, kind: Alert, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False', message: no provider}]}}", late, "no provider"},
		"a CronJob":                       {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}}", wellApplied, ""},
		"a Job that runs":                 {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: '2026-01-01T00:00:00Z', active: 1}}", late, "Job in progress"},
		"a Job that is complete":          {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: 'True'}]}}", wellSaid, ""},
		"a Job that failed":               {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Failed, status: 'True'}]}}", broken, ""},
		"a claim that is not bound":       {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}", late, ""},
		"a Namespace":                     {"{apiVersion: v1, kind: Namespace, metadata: {name: a}, status: {phase: Active}}", wellSaid, ""},
		"a Namespace without a phase":     {"{apiVersion: v1, kind: Namespace, metadata: {name: a}}", late, `phase is ""`},
		"a volume that failed":            {"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Failed}}", late, `phase is "Failed"`},
		"a Service inside":                {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}", wellApplied, ""},
		"a load balancer":                 {service + ", status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}", wellSaid, ""},
		"one without an address":          {service + "}", late, "its load balancer has no address"},
		"an Ingress":                      {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}", mute, ""},
		"an Ingress with an address":      {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}", wellSaid, ""},

		"no status":                          {custom + "spec: {}}", mute, ""},
		"a status without conditions":        {custom + "status: {phase: Deploying}}", mute, ""},
		"Ready":                              {custom + "status: {conditions: [{type: Ready, status: 'True'}]}}", wellSaid, ""},
		"not Ready":                          {custom + "status: {conditions: [{type: Ready, status: 'False', message: no disk}]}}", late, "no disk"},
		"Stalled":                            {custom + "status: {conditions: [{type: Stalled, status: 'True', message: given up}]}}", broken, "given up"},
		"observed, and no complaint":         {custom + "status: {observedGeneration: 2}}", wellSaid, ""},
		"an older generation was observed":   {custom + "status: {observedGeneration: 1}}", late, "latest observed generation is 1"},
		"not Available, which kstatus skips": {custom + "status: {observedGeneration: 2, conditions: [{type: Available, status: 'False', reason: Down}]}}", late, "Available is False: Down"},
		"Degraded, which kstatus skips":      {custom + "status: {conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'True', message: one of three}]}}", broken, "Degraded is True: one of three"},
		"Available":                          {custom + "status: {conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'False'}]}}", wellSaid, ""},
		"a condition that may mean anything": {custom + "status: {conditions: [{type: Progressing, status: 'True'}]}}", mute, ""},
		"conditions of another form":         {custom + "status: {conditions: green}}", mute, ""},
	}
	for name, tt := range tests {
		p := judge(t.Context(), parsed(t, tt.object), nil)
		if p.class != tt.class || !strings.Contains(p.why, tt.why) {
			t.Errorf("%s: got class %d, %q; want %d, %q", name, p.class, p.why, tt.class, tt.why)
		}
	}
}

// TestTheExampleHolds: what is suggested as a check is true of the object.
func TestTheExampleHolds(t *testing.T) {
	for object, want := range map[string]string{
		custom + "spec: {}}":                                "true",
		custom + "status: {}}":                              "true",
		custom + "status: {phase: Deployed, a: 1}}":         "status.phase == 'Deployed'",
		custom + "status: {state: \"it's\", b: 1, a: 2}}":   "has(status.a)",
		custom + "status: {\"a-b\": 1, claimSets: [1, 2]}}": "has(status.claimSets)",
	} {
		u := parsed(t, object)
		if got := example(u); got != want {
			t.Errorf("%s: got %s, want %s", object, got, want)
			continue
		}
		c := checkOf(t, "example.org/v1", "Thing", want)
		if p := judge(t.Context(), u, []objectCheck{c}); p.class != wellSaid {
			t.Errorf("%s: %s says %+v", object, want, p)
		}
	}
}
