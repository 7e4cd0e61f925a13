// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// put adds a piece that was judged.
func (v *verify) put(tier int, apiVersion, kind, name string, p proof) {
	ref := flux.Ref{APIVersion: apiVersion, Kind: kind, Namespace: "ns", Name: name}
	v.pieces[identityOf(ref)] = &piece{ref: ref, tiers: v.graph.Tiers()[tier : tier+1], proof: p}
}

// TestFailuresAreGrouped: two hundred Pods that fail alike are one line.
func TestFailuresAreGrouped(t *testing.T) {
	v := verifying(t, nil, tier("a", "True", "", ""), tier("b", "True", "", ""))
	for i := range 9 {
		v.put(0, "v1", "ConfigMap", fmt.Sprintf("cm-%d", i), proof{class: absent})
	}
	v.put(1, "v1", "ConfigMap", "other", proof{class: absent})
	v.put(0, "apps/v1", "Deployment", "web", proof{class: late, why: "Available: 0/1\nand more"})
	v.put(0, "apps/v1", "Deployment", "api", proof{class: broken, why: "Progress deadline exceeded"})
	v.put(0, "apps/v1", "Deployment", "old", proof{class: goingAway, why: "is being deleted since 2026"})
	v.put(0, "cdi.kubevirt.io/v1beta1", "StorageProfile", "fast", proof{class: unservedKind})
	v.put(0, "example.org/v1", "Thing", "x", proof{class: refuted, why: "verify.checks[0] of standup.yaml is not true: a"})
	v.put(0, "v1", "Secret", "fine", proof{class: wellApplied})
	v.put(0, "v1", "Pod", "fine", proof{class: wellSaid})
	v.put(0, "example.org/v1", "Thing", "quiet", proof{class: mute})
	said, applied := v.count()
	if want := (Counts{Proved: 2, Unproved: 1, Failed: 15}); v.counts != want || said != 1 || applied != 1 {
		t.Errorf("got %+v, %d, %d", v.counts, said, applied)
	}
	var got []string
	all := v.failures()
	for _, f := range all {
		got = append(got, fmt.Sprintf("%s %s: %s", f.Severity, f.Rule, f.Message))
		if f.Fix == "" || f.Tier == nil {
			t.Errorf("nothing to do about %+v", f)
		}
	}
	want := []string{
		"error kind-not-served: StorageProfile/ns/fast, which Kustomization/flux-system/a has applied, is of a kind that the cluster does not serve now",
		"error object-missing: 9 ConfigMap, which Kustomization/flux-system/a has applied, are not there",
		"error object-missing: ConfigMap/ns/other, which Kustomization/flux-system/b has applied, is not there",
		"error object-terminating: Deployment/ns/old, which Kustomization/flux-system/a has applied, is being deleted since 2026",
		"error check-false: Thing/ns/x, which Kustomization/flux-system/a has applied, is not well: verify.checks[0] of standup.yaml is not true: a",
		"error object-failed: Deployment/ns/api, which Kustomization/flux-system/a has applied, has failed: Progress deadline exceeded",
		"warning object-not-ready: Deployment/ns/web, which Kustomization/flux-system/a has applied, is not ready yet: Available: 0/1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if c := all[1].Causes; len(c) != 6 || c[0] != "ConfigMap/ns/cm-0" || c[5] != "and 4 more" {
		t.Errorf("causes %q", c)
	}
	if m := all[0].Missing; len(m) != 1 || m[0].CreatedBy != "KubeVirt CDI" {
		t.Errorf("missing %+v", m)
	}
	if v.next() != "kubectl standup crds" {
		t.Errorf("next %s", v.next())
	}
	if all[0].Fix != "kubectl standup crds" {
		t.Errorf("got %q", all[0].Fix)
	}
	// Of a kind that nobody is known to create, and of a suspended tier.
	v = verifying(t, nil, suspended(tier("a", "True", "", "")))
	v.put(0, "example.org/v1", "Thing", "x", proof{class: unservedKind})
	v.put(0, "v1", "ConfigMap", "x", proof{class: absent})
	if all = v.failures(); !strings.HasPrefix(all[0].Fix, "let Flux apply again what holds its CRD") || all[1].Fix != "let Flux apply it again: kubectl standup resume" {
		t.Errorf("got %+v", all)
	}
}

// TestUnprovedIsOneLineForEachKind: and that is what fits on a page.
func TestUnprovedIsOneLineForEachKind(t *testing.T) {
	v := verifying(t, nil, tier("a", "True", "", ""))
	for i := range 12 {
		v.put(0, "cdi.kubevirt.io/v1beta1", "StorageProfile", fmt.Sprintf("p-%d", i), proof{class: mute, example: "has(status.a)"})
	}
	v.put(0, "example.org/v1", "Thing", "one", proof{class: mute, example: "status.phase == 'Up'"})
	v.put(0, "example.org/v1", "Thing", "two", proof{class: mute, example: "true"})
	v.put(0, "batch/v1", "Job", "setup", proof{class: mute, why: "it is gone"})
	v.put(0, "example.org/v1", "Odd", "one", proof{class: mute, why: "its status is odd"})
	v.put(0, "example.org/v1", "Odd", "two", proof{class: mute})
	got := v.muteFindings(emptyBook())
	want := []finding.Finding{
		{Message: "Job/ns/setup: nothing says whether it works; it is gone"},
		{Message: "2 Odd: nothing says whether they work"},
		{Message: "12 StorageProfile: nothing says whether they work", Suggestion: `- {apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, current: "has(status.a)"}`},
		{Message: "2 Thing: nothing says whether they work", Suggestion: `- {apiVersion: example.org/v1, kind: Thing, current: "has(status)"}`},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i].Severity != finding.Info || got[i].Message != want[i].Message || got[i].Suggestion != want[i].Suggestion || (got[i].Fix == "") != (want[i].Suggestion == "") {
			t.Errorf("got %+v\nwant %+v", got[i], want[i])
		}
	}
}

// TestACheckDoesNotSilenceOthers: it replaces what a status says, so it is for
// those alone whose status says nothing.
func TestACheckDoesNotSilenceOthers(t *testing.T) {
	v := verifying(t, nil, tier("a", "True", "", ""))
	v.put(0, "example.org/v1", "Thing", "quiet", proof{class: mute, example: "true"})
	v.put(0, "example.org/v1", "Thing", "sick", proof{class: late, why: "its condition Ready is False"})
	got := v.muteFindings(emptyBook())
	if want := `- {apiVersion: example.org/v1, kind: Thing, namespace: ns, name: "quiet", current: "true"}`; len(got) != 1 || got[0].Suggestion != want {
		t.Fatalf("got %+v", got)
	}
	for i := range 9 {
		v.put(0, "example.org/v1", "Thing", fmt.Sprintf("quiet-%d", i), proof{class: mute, example: "true"})
	}
	if got = v.muteFindings(emptyBook()); strings.Count(got[0].Suggestion, "\n") != mostNamed-1 {
		t.Errorf("got %q", got[0].Suggestion)
	}
}

// TestWhatCannotBeLookedAt: another cluster, and an older helm-controller.
func TestWhatCannotBeLookedAt(t *testing.T) {
	remote, old, held := tier("remote", "True", "", ""), tier("old", "True", "", ""), suspended(tier("held", "True", "", ""))
	remote.Remote = true
	old.Ref.Kind, old.Helm = flux.HelmReleaseKind, &flux.Helm{History: []flux.HelmSnapshot{{Name: "old"}}}
	v := verifying(t, nil, remote, old, held)
	v.aside = map[flux.Ref]string{held.Ref: "on purpose"}
	with := func(name, inventory string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: x/v1, kind: X, metadata: {namespace: flux-system, name: "+name+"}, status: {"+inventory+"}}")
	}
	two := "inventory: {entries: [{id: a_one__ConfigMap, v: v1}, {id: a_two__ConfigMap, v: v1}]}"
	v.raw[flux.KustomizationKind] = []*unstructured.Unstructured{with("remote", two), with("held", two), with("new", two)}
	v.raw[flux.HelmReleaseKind] = []*unstructured.Unstructured{with("old", "")}
	_, served := (&wire{}).serve(t)
	hidden, err := v.collect(t.Context(), served)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.pieces) != 0 || v.counts.Unproved != 2 {
		t.Errorf("pieces %v, counts %+v", v.pieces, v.counts)
	}
	hidden.garbled = []string{"x"}
	var got []string
	for _, f := range hidden.findings() {
		got = append(got, string(f.Severity)+" "+f.Rule)
	}
	if want := []string{"info tier-remote", "info release-without-inventory", "warning inventory-garbled"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestCommandsAboutAnObject(t *testing.T) {
	v := verifying(t, nil)
	v.env.KubectlArgs = "--context prod"
	if got := v.describe(&flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}); got != "kubectl describe deployment.apps web -n ns --context prod" {
		t.Error(got)
	}
	if got := v.describe(&flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: "ns"}); got != "kubectl describe namespace ns --context prod" {
		t.Error(got)
	}
	if got := v.reconcile(flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "ns", Name: "web"}); got != "flux reconcile helmrelease web -n ns --force --context prod" {
		t.Error(got)
	}
}

// TestHollowGates: what others rely on, and what it is worth just now.
func TestHollowGates(t *testing.T) {
	waits := func(ft flux.Tier) flux.Tier { ft.Wait = true; return ft }
	for name, tt := range map[string]struct {
		tier  flux.Tier
		put   func(*verify)
		check string
		says  []string
	}{
		"only applied": {
			tier("gate", "True", "", ""), func(v *verify) { v.put(0, "v1", "ConfigMap", "x", proof{class: wellApplied}) }, "",
			[]string{"neither wait nor healthChecks is set", "Kustomization/flux-system/relying relies on it", "all its objects were proved just now"},
		},
		"and unproved": {
			tier("gate", "True", "", ""), func(v *verify) { v.put(0, "example.org/v1", "Thing", "x", proof{class: mute}) }, "", []string{"unproved just now: 1 of its 1 objects"},
		},
		"and failed": {
			tier("gate", "True", "", ""), func(v *verify) { v.put(0, "example.org/v1", "Thing", "x", proof{class: broken}) }, "", []string{"not well just now: 1 of its 1 objects"},
		},
		"a trigger": {
			waits(tier("gate", "True", "", "")), func(v *verify) { v.put(0, "cdi.kubevirt.io/v1beta1", "CDI", "cdi", proof{class: wellSaid}) }, "",
			[]string{"it is Ready before CDI/ns/cdi has made its kinds, since no healthCheckExprs is about it"},
		},
		"a trigger with its check": {
			waits(tier("gate", "True", "", "")), func(v *verify) { v.put(0, "cdi.kubevirt.io/v1beta1", "CDI", "cdi", proof{class: wellSaid}) }, "status.phase == 'Deployed'", nil,
		},
		"it waits": {waits(tier("gate", "True", "", "")), func(v *verify) { v.put(0, "example.org/v1", "Thing", "x", proof{class: mute}) }, "", nil},
	} {
		v := verifying(t, nil, tt.tier, tier("relying", "True", "", "", "gate"))
		tt.put(v)
		if tt.check != "" {
			v.checks.ofTier["ks/flux-system/gate"] = []objectCheck{checkOf(t, "cdi.kubevirt.io/v1beta1", "CDI", tt.check)}
		}
		v.count()
		c, err := v.gates(t.Context())
		if err != nil || (len(c.Findings) > 0) != (len(tt.says) > 0) || (c.Message == "") != (len(tt.says) > 0) {
			t.Errorf("%s: %+v, %v", name, c, err)
			continue
		}
		for _, text := range tt.says {
			if f := c.Findings[0]; !strings.Contains(f.Message, text) || f.Severity != finding.Info {
				t.Errorf("%s: %s %q does not say %q", name, f.Severity, f.Message, text)
			}
		}
	}
}

// TestManyHollowGatesAreOneLine: but not those behind which something is wrong.
func TestManyHollowGatesAreOneLine(t *testing.T) {
	for count, want := range map[int]string{
		3: "gate-0 gate-1 gate-2 gate-3", // the fourth has a failed object
		8: "- gate-8",
	} {
		var all []flux.Tier
		for i := range count + 2 { // the last one relies on the one before, and nobody on it
			name, on := fmt.Sprintf("gate-%d", i), fmt.Sprintf("gate-%d", i-1)
			if i == 0 {
				all = append(all, tier(name, "True", "", ""))
				continue
			}
			all = append(all, tier(name, "True", "", "", on))
		}
		v := verifying(t, nil, all...)
		for i := range count + 1 {
			p := proof{class: wellApplied}
			if i == count {
				p.class = absent
			}
			v.put(i, "v1", "ConfigMap", fmt.Sprintf("cm-%d", i), p)
		}
		v.count()
		c, err := v.gates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range c.Findings {
			if f.Object == nil {
				got = append(got, "-")
				if !strings.HasPrefix(f.Message, "8 tiers that others rely on are hollow gates") {
					t.Error(f.Message)
				}
				continue
			}
			got = append(got, f.Object.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: got %q", count, got)
		}
	}
}

func TestWhyACRDIsNotServed(t *testing.T) {
	for object, want := range map[string]string{
		"{apiVersion: v1, kind: X, metadata: {name: x, deletionTimestamp: '2026-01-01T00:00:00Z'}}":                                                                               "is being deleted",
		"{apiVersion: v1, kind: X, status: {conditions: [{type: NamesAccepted, status: 'False', message: taken}, {type: Established, status: 'False', message: not all names}]}}": "is not Established: taken",
		"{apiVersion: v1, kind: X, status: {conditions: [{type: NamesAccepted, status: 'True'}]}}":                                                                                "is not Established",
	} {
		if got := whyNotServed(parsed(t, object)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAKindThatCouldNotBeListed(t *testing.T) {
	v := verifying(t, nil, tier("a", "True", "", ""))
	v.put(0, "apps/v1", "Deployment", "web", proof{})
	f := v.blindFinding(blind{v.kinds()[0], errors.New("deployments.apps is forbidden").Error()})
	if f.Severity != finding.Warning || f.Message != "1 Deployment could not be looked at: deployments.apps is forbidden" {
		t.Errorf("got %+v", f)
	}
	if all := atOnce([]finding.Finding{f}, "kinds"); len(all) != 1 || all[0].Message != f.Message {
		t.Errorf("got %+v", all)
	}
	all := atOnce([]finding.Finding{f, {Rule: f.Rule, Message: "another"}}, "kinds")
	if len(all) != 1 || all[0].Message != "2 kinds" || !slices.Equal(all[0].Causes, []string{f.Message, "another"}) {
		t.Errorf("got %+v", all)
	}
}

// TestChecksAboutNothing: a check whose kind is misspelt proves nothing, and
// says so.
func TestChecksAboutNothing(t *testing.T) {
	v := &verify{look: &look{env: &Env{File: &config.Config{}}}, pieces: map[identity]*piece{}}
	p := &piece{ref: flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}}
	v.pieces[identityOf(p.ref)] = p
	book := &checkBook{configured: []objectCheck{
		{from: "verify.checks[0]", kind: "ConfigMap"},
		{from: "verify.checks[1]", kind: "ConfgMap"},
		{from: "verify.checks[2]", kind: "ConfigMap", namespace: "other"},
	}}
	var said []string
	for _, f := range v.unmatched(book) {
		if f.Severity != finding.Warning || f.Rule != "check-unmatched" {
			t.Errorf("got %+v", f)
		}
		said = append(said, strings.Fields(f.Message)[0])
	}
	if got := strings.Join(said, " "); got != "verify.checks[1] verify.checks[2]" {
		t.Errorf("about nothing: %s", got)
	}
}
