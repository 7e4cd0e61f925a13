// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func resource(t testing.TB, kind string) Resource {
	t.Helper()
	r, ok := ResourceOf(resources(), kind)
	if !ok {
		t.Fatalf("no resource of kind %s", kind)
	}
	return r
}

// read decodes one object as a list does.
func read(t *testing.T, kind, raw string) *Snapshot {
	t.Helper()
	var it item
	if err := json.Unmarshal([]byte(raw), &it); err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{}
	s.add(resource(t, kind), &it)
	return s
}

func TestDurationsAreResolvedAsFluxDoes(t *testing.T) {
	tests := map[string]struct {
		kind, spec     string
		timeout, retry time.Duration
	}{
		"interval alone":       {"Kustomization", `{"interval":"10m"}`, 9*time.Minute + 30*time.Second, 10 * time.Minute},
		"retryInterval":        {"Kustomization", `{"interval":"1h","retryInterval":"2m","timeout":"5m"}`, 5 * time.Minute, 2 * time.Minute},
		"the floor":            {"Kustomization", `{"interval":"40s"}`, 30 * time.Second, 40 * time.Second},
		"below the floor":      {"Kustomization", `{"interval":"10m","timeout":"5s"}`, 30 * time.Second, 10 * time.Minute},
		"not a duration":       {"Kustomization", `{"interval":"soon"}`, 30 * time.Second, 0},
		"release":              {"HelmRelease", `{"interval":"1h"}`, 5 * time.Minute, 0},
		"release that retries": {"HelmRelease", `{"interval":"1h","timeout":"2m","install":{"strategy":{"name":"RetryOnFailure","retryInterval":"90s"}}}`, 2 * time.Minute, 90 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tier := read(t, tc.kind, `{"metadata":{"name":"x","namespace":"ns"},"spec":`+tc.spec+`}`).Tiers[0]
			if tier.Timeout != tc.timeout || tier.RetryInterval != tc.retry {
				t.Errorf("timeout %s, retry %s; want %s, %s", tier.Timeout, tier.RetryInterval, tc.timeout, tc.retry)
			}
		})
	}
}

func TestReferencesAreResolved(t *testing.T) {
	tier := read(t, "Kustomization", `{
		"metadata":{"name":"x","namespace":"ns","labels":{"kustomize.toolkit.fluxcd.io/name":"root","kustomize.toolkit.fluxcd.io/namespace":"flux-system"}},
		"spec":{"sourceRef":{"kind":"GitRepository","name":"repo"},"kubeConfig":{"secretRef":{"name":"k"}},
			"dependsOn":[{"name":"a"},{"name":"b","namespace":"other","readyExpr":"true"}],
			"healthChecks":[{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}]}}`).Tiers[0]
	if want := (Ref{Kind: "GitRepository", Namespace: "ns", Name: "repo"}); tier.Source != want {
		t.Errorf("source %v, want %v", tier.Source, want)
	}
	if d := tier.DependsOn; d[0].Ref.Key() != "ns/a" || d[1].Ref.Key() != "other/b" || d[1].ReadyExpr != "true" || d[0].Ref.Kind != "Kustomization" {
		t.Errorf("dependencies %+v", d)
	}
	if tier.HealthChecks[0] != (Ref{"apps/v1", "Deployment", "ns", "d"}) || tier.Owner.Key() != "flux-system/root" || !tier.Remote {
		t.Errorf("got %+v", tier)
	}
}

func TestWhatAReleaseIsBuiltFrom(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"chart not made yet": {`{"spec":{"chart":{"spec":{"chart":"x"}}}}`, ""},
		"its HelmChart":      {`{"status":{"helmChart":"flux-system/default-x"}}`, "HelmChart/flux-system/default-x"},
		"chartRef":           {`{"spec":{"chartRef":{"kind":"OCIRepository","name":"x","namespace":"charts"}}}`, "OCIRepository/charts/x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, "HelmRelease", tc.raw).Tiers[0].Source
			if got.Name == "" && tc.want == "" {
				return
			}
			if got.String() != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhoSuspended(t *testing.T) {
	tier := read(t, "Kustomization", `{"metadata":{"name":"x","annotations":{"kubestandup.dev/hold":"migration"},"managedFields":[
		{"manager":"kustomize-controller","time":"2026-11-30T01:00:00Z","fieldsV1":{"f:spec":{"f:interval":{}}}},
		{"manager":"flux","time":"2026-11-29T01:00:00Z","fieldsV1":{"f:spec":{"f:suspend":{}}}},
		{"manager":"kubectl-edit","time":"2026-11-30T02:00:00Z","fieldsV1":{"f:spec":{"f:suspend":{}}}}]},
		"spec":{"suspend":true}}`).Tiers[0]
	if tier.SuspendedBy != "kubectl-edit" || tier.SuspendedSince.Hour() != 2 {
		t.Errorf("by %s since %s; the newest manager of the field is meant", tier.SuspendedBy, tier.SuspendedSince)
	}
	if tier.Hold != "migration" {
		t.Errorf("held for %q", tier.Hold)
	}
}

func TestTheLastOutcomeIsTheNewest(t *testing.T) {
	tier := read(t, "Kustomization", `{"status":{"history":[{"lastReconciledStatus":"ReconciliationFailed"},{"lastReconciledStatus":"ReconciliationSucceeded"}]}}`).Tiers[0]
	if tier.LastOutcome != "ReconciliationFailed" {
		t.Errorf("got %q", tier.LastOutcome)
	}
}

func TestSources(t *testing.T) {
	s := read(t, "Bucket", `{"metadata":{"name":"b","namespace":"ns"},"spec":{"endpoint":"s3.example.org"},"status":{"artifact":{"url":"http://x/a.tgz","digest":"sha256:00","revision":"r1"}}}`).Sources[0]
	if s.URL != "s3.example.org" || s.Artifact == nil || s.Artifact.Revision != "r1" || s.Artifact.Digest != "sha256:00" {
		t.Errorf("got %+v", s)
	}
	if s := read(t, "HelmChart", `{"metadata":{"name":"c"},"spec":{"chart":"./chart"}}`).Sources[0]; s.Ref.Name != "c" {
		t.Errorf("got %+v", s) // its spec.chart is not what a HelmRelease's is
	}
	if s := read(t, "GitRepository", `{"metadata":{"name":"g"}}`).Sources[0]; s.Artifact != nil {
		t.Error("an artifact was made up")
	}
}

func TestCacheFollows(t *testing.T) {
	ks := resource(t, "Kustomization")
	object := func(name, expr string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": ks.APIVersion(), "kind": "Kustomization",
			"metadata": map[string]any{"name": name, "namespace": "ns", "managedFields": []any{map[string]any{"manager": "x"}}},
			"spec":     map[string]any{},
		}}
		if expr != "" {
			u.Object["spec"] = map[string]any{"dependsOn": []any{map[string]any{"name": "a", "readyExpr": expr}}}
		}
		return u
	}
	c := NewCache([]Resource{ks})
	names := func() (out string) {
		s, err := c.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Tiers {
			out += s.Tiers[i].Ref.Name
		}
		return out
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Replace(ks, []*unstructured.Unstructured{object("b", ""), object("a", "")}))
	must(c.Upsert(ks, object("c", "true")))
	if got := names(); got != "abc" {
		t.Fatalf("got %s", got)
	}
	s, _ := c.Snapshot()
	if len(s.Objects) != 2 || s.Objects[s.Tiers[0].Ref] == nil || s.Objects[s.Tiers[2].Ref] == nil {
		t.Errorf("the objects of a readyExpr are %v, want those of c and a", s.Objects)
	}
	if meta := s.Objects[s.Tiers[0].Ref]["metadata"].(map[string]any); meta["managedFields"] != nil {
		t.Error("managedFields are kept, which are most of an object")
	}
	c.Delete(ks, object("a", ""))
	if got := names(); got != "bc" {
		t.Errorf("after a delete: %s", got)
	}
	must(c.Replace(ks, []*unstructured.Unstructured{object("z", "")}))
	if got := names(); got != "z" {
		t.Errorf("after a list: %s", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"x"},"spec":{"dependsOn":[{"name":"a"}],"chartRef":null},"status":{"helmChart":"a/b","conditions":[{"type":"Ready"}]}}`))
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":null}]},"spec":{"interval":5,"timeout":null,"suspend":true}}`))
	f.Add([]byte(`{"spec":{"install":{"strategy":{}},"kubeConfig":{}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, r := range resources() {
			var it item
			if json.Unmarshal(raw, &it) != nil {
				return
			}
			s := &Snapshot{}
			s.add(r, &it) // must not panic
			if len(s.Tiers)+len(s.Sources) != 1 {
				t.Errorf("%s: %d tiers and %d sources of one object", r.Kind, len(s.Tiers), len(s.Sources))
			}
		}
	})
}
