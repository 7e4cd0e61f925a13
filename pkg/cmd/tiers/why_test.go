// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// TestADiagnosisEndsInItsRemedy: each verdict with what is to be done about it.
func TestADiagnosisEndsInItsRemedy(t *testing.T) {
	missing := []crds.Missing{{
		Kind:          schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"},
		Objects:       []flux.Ref{{Kind: "StorageProfile", Name: "a"}, {Kind: "StorageProfile", Name: "b"}, {Kind: "StorageProfile", Name: "c"}, {Kind: "StorageProfile", Name: "d"}},
		OtherVersions: []string{"v1alpha1", "v1"},
	}}
	const breaker = "  fix      kubectl standup crds --context prod --expect-server https://api.example.org:6443"
	for verdict, want := range map[crds.Verdict]string{
		crds.Deadlock:  breaker + "\n",
		crds.NowServed: breaker + "   (a nudge is enough)\n",
		crds.Heals:     "",
	} {
		_, target, _ := shell(t)
		var out bytes.Buffer
		w := &whyWriter{w: &out, now: now()}
		w.diagnosis(&crds.Diagnosis{Verdict: verdict, Why: "because\x1b", Missing: missing}, []crds.Operator{{System: "KubeVirt CDI"}}, target)
		text := out.String()
		for _, line := range []string{
			"\nBecause",
			"  missing  StorageProfile cdi.kubevirt.io/v1beta1 (served as v1alpha1, v1), needed by StorageProfile/a, StorageProfile/b, StorageProfile/c, 1 more\n",
			"  seen     no operator of KubeVirt CDI was seen on this cluster\n", want,
		} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: %q is not in\n%s", verdict, line, text)
			}
		}
		if want == "" && strings.Contains(text, "fix") || strings.Contains(text, "\x1b") {
			t.Errorf("%s:\n%s", verdict, text)
		}
	}
}

func TestTheRootOfATier(t *testing.T) {
	g := incident()
	for name, want := range map[string]string{"platform": "platform", "wave-1": "platform-config", "platform-config": "platform-config"} {
		n, err := find(g, "flux-system", name)
		if err != nil {
			t.Fatal(err)
		}
		if got := rootOf(n).Name; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestAReadyTier has no cause, but a revision.
func TestAReadyTier(t *testing.T) {
	g := incident()
	n, err := find(g, "flux-system", "platform")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	(&whyWriter{w: &out}).chain(g, n)
	want := "Kustomization/flux-system/platform: ready\n  Ready at " + rev + ", the revision that GitRepository/flux-system/flux-system has now\n"
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}

// TestAFailedWriteIsReported: the first error of several.
func TestAFailedWriteIsReported(t *testing.T) {
	full := errors.New("no space left")
	w := &whyWriter{w: failing{full}}
	w.say("one")
	w.say("two")
	if !errors.Is(w.err, full) {
		t.Errorf("got %v", w.err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
