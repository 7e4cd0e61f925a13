// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const usedUp = "Failed to install after 1 attempt(s)"

// saying gives a tier conditions, as "Type Status Reason Message".
func saying(t flux.Tier, conditions ...string) flux.Tier {
	t.Conditions = nil
	for _, c := range conditions {
		f := strings.SplitN(c+" ", " ", 4)
		t.Conditions = append(t.Conditions, metav1.Condition{
			Type: f[0], Status: metav1.ConditionStatus(f[1]), Reason: f[2], Message: strings.TrimSpace(f[3]),
			ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(fluxNow()),
		})
	}
	return t
}

// TestHidden: as the controllers write them (helm-controller v1.6.4,
// kustomize-controller v1.9.6).
func TestHidden(t *testing.T) {
	const (
		begins   = "Reconciling True Progressing Fulfilling prerequisites"
		installs = "Reconciling True Progressing Running 'install' action with timeout of 5m0s"
		applies  = "Reconciling True Progressing Building manifests for revision main@sha1:bbbb with a timeout of 5m0s"
		unknown  = "Ready Unknown Progressing Reconciliation in progress"
	)
	hr, ks := fluxHR("db"), fluxKS("app")
	ks.LastOutcome = "ReconciliationFailed"
	healthy := ks
	healthy.LastOutcome = "ReconciliationSucceeded"
	for name, tt := range map[string]struct {
		tier flux.Tier
		says []string
		want bool
	}{
		"out of retries, at rest":                  {hr, []string{"Ready False InstallFailed x", "Released False InstallFailed x", "Stalled True RetriesExceeded x"}, false},
		"out of retries, looked at again":          {hr, []string{"Ready False InstallFailed x", "Released False InstallFailed x", begins}, true},
		"rolled back, looked at again":             {hr, []string{"Ready False RollbackSucceeded x", "Released False UpgradeFailed x", "Remediated True RollbackSucceeded x", begins}, true},
		"uninstalled for good, looked at again":    {hr, []string{"Ready False UninstallFailed x", "Remediated False UninstallFailed x", begins}, true},
		"its target changed, and cannot go":        {hr, []string{"Ready False UninstallFailed x", "Released False UninstallFailed x", begins}, false},
		"may not use its chart, looked at again":   {hr, []string{"Ready False AccessDenied x", begins}, true},
		"tries again":                              {hr, []string{unknown, "Released False InstallFailed x", installs}, false},
		"failed with nothing stored, between two":  {hr, []string{"Ready False InstallFailed x", "Released False InstallFailed x", installs}, false},
		"waits for its dependency, between two":    {hr, []string{"Ready False DependencyNotReady x", "Released False InstallFailed x", begins}, false},
		"its state is unclear, between two":        {hr, []string{"Ready False StateError x", "Released False InstallFailed x", begins}, false},
		"is Ready, looked at again":                {hr, []string{"Ready True InstallSucceeded x", "Released True InstallSucceeded x", begins}, false},
		"is suspended":                             {fluxSuspended(hr, "me"), []string{"Ready False InstallFailed x", "Released False InstallFailed x", begins}, false},
		"never looked at":                          {hr, nil, false},
		"not applied, looked at again":             {ks, []string{unknown, applies}, true},
		"not applied, between two":                 {ks, []string{"Ready False ReconciliationFailed x", "Reconciling True ProgressingWithRetry x"}, false},
		"not applied last time, health is checked": {ks, []string{unknown, "Reconciling True Progressing Running health checks for revision x"}, false},
		"applied, looked at again":                 {healthy, []string{unknown, applies}, false},
	} {
		if tier := saying(tt.tier, tt.says...); hidden(&tier) != tt.want {
			t.Errorf("%s: hidden is %v", name, !tt.want)
		}
	}
}

// lookedAt serves one HelmRelease of which a look has just begun, and lets the
// watch see how it ends.
func lookedAt(t *testing.T, name string, then ...map[string]any) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		encoder, q := json.NewEncoder(out), in.URL.Query()
		switch {
		case !strings.HasSuffix(in.URL.Path, "/namespaces/flux-system/helmreleases") || q.Get("fieldSelector") != "metadata.name="+name:
			t.Errorf("asked for %s", in.URL)
			out.WriteHeader(http.StatusNotFound)
		case q.Get("sendInitialEvents") != "": // an older API server
			out.WriteHeader(http.StatusUnprocessableEntity)
			_ = encoder.Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case q.Get("watch") == "":
			_ = encoder.Encode(map[string]any{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmReleaseList", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{beginning(name)}})
		default:
			for _, event := range then {
				_ = encoder.Encode(event)
			}
			out.(http.Flusher).Flush()
			<-in.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func conditionSaying(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 3, "lastTransitionTime": "2026-11-30T10:00:00Z"}
}

func helmReleaseSaying(name, version string, conditions ...any) map[string]any {
	return map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "uid": "uid-" + name, "generation": 3, "resourceVersion": version},
		"status": map[string]any{"observedGeneration": 3, "conditions": append(conditions,
			conditionSaying("Ready", "False", "InstallFailed", "boom"), conditionSaying("Released", "False", "InstallFailed", "boom"))},
	}
}

func beginning(name string) map[string]any {
	return helmReleaseSaying(name, "1", conditionSaying("Reconciling", "True", "Progressing", "Fulfilling prerequisites"))
}

// midLook is a world in which db is hidden, and so is other.
func midLook(t *testing.T) *World {
	t.Helper()
	hides := func(name string) flux.Tier {
		return saying(fluxHR(name), "Ready False InstallFailed boom", "Released False InstallFailed boom", "Reconciling True Progressing Fulfilling prerequisites")
	}
	w := fluxWorld(hides("db"), fluxKS("app"), hides("other"))
	w.Flux.Served[1] = flux.Resource{Group: flux.HelmGroup, Version: "v2", Kind: flux.HelmReleaseKind, Plural: "helmreleases"}
	w.asked = &asked{names: []string{"hr/flux-system/db"}}
	return w
}

// TestHELM16WhileItIsLookedAt: what the look has taken away is waited for, of
// what was asked about and of nothing else.
func TestHELM16WhileItIsLookedAt(t *testing.T) {
	stalled := map[string]any{"type": "MODIFIED", "object": helmReleaseSaying("db", "2", conditionSaying("Stalled", "True", "RetriesExceeded", usedUp))}
	w := midLook(t)
	judged := func() []Verdict {
		n := w.Graph.Node(fluxRef(flux.HelmReleaseKind, "db"))
		w.Releases = []*Release{{Node: n}}
		return releaseExhausted(w)
	}
	fluxNone(t, judged()) // a look in the middle of it
	if gaps := lookedAt(t, "db", stalled).untilShown(t.Context(), w); len(gaps) > 0 {
		t.Fatal(gaps)
	}
	fluxHolds(t, fluxOne(t, judged()), "has used up its retries: "+usedUp)
	if n := w.Graph.Node(fluxRef(flux.HelmReleaseKind, "other")); n == nil || !hidden(n.Tier) {
		t.Error("what nobody has asked about was waited for")
	}

	w = midLook(t)
	gone := map[string]any{"type": "DELETED", "object": helmReleaseSaying("db", "2")}
	if gaps := lookedAt(t, "db", gone).untilShown(t.Context(), w); len(gaps) > 0 || w.Graph.Node(fluxRef(flux.HelmReleaseKind, "db")) != nil {
		t.Errorf("it is gone: %v", gaps)
	}
}

// TestALookWithoutEnd is neither health nor a wedge.
func TestALookWithoutEnd(t *testing.T) {
	w := midLook(t)
	w.Choices.Timeout = time.Millisecond
	gaps := lookedAt(t, "db").untilShown(t.Context(), w)
	if len(gaps) != 1 || gaps[0].Object == nil || *gaps[0].Object != fluxRef(flux.HelmReleaseKind, "db") ||
		!strings.Contains(gaps[0].Why, "after 1ms, it is still being reconciled (Fulfilling prerequisites)") {
		t.Errorf("%+v", gaps)
	}
}
