// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

const rev = "main@sha1:90379a0b1f2a3b4c5d6e7f8091a2b3c4d5e6f708"

func now() time.Time { return time.Date(2026, 11, 30, 2, 0, 30, 0, time.UTC) }

func tier(kind, namespace, name string, ready metav1.ConditionStatus, reason, message string) flux.Tier {
	t := flux.Tier{
		Ref:        flux.Ref{Kind: kind, Namespace: namespace, Name: name},
		Source:     flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"},
		Generation: 1, ObservedGeneration: 1, LastAppliedRevision: rev, RetryInterval: time.Minute,
	}
	t.Conditions = []metav1.Condition{{
		Type: "Ready", Status: ready, Reason: reason, Message: message, ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(now().Add(-30 * time.Second)),
	}}
	return t
}

func needs(t flux.Tier, names ...string) flux.Tier {
	for _, n := range names {
		t.DependsOn = append(t.DependsOn, flux.Dependency{Ref: flux.Ref{Kind: t.Ref.Kind, Namespace: t.Ref.Namespace, Name: n}})
	}
	return t
}

// incident is the graph of incident 2, with two releases below platform.
func incident() *tiers.Graph {
	const missing = `StorageProfile/longhorn-vm dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"` + "\nNamespace/cdi created"
	ks, blocked := flux.KustomizationKind, "DependencyNotReady"
	own := func(t flux.Tier) flux.Tier {
		t.Owner = flux.Ref{Kind: ks, Namespace: "flux-system", Name: "platform"}
		return t
	}
	all := []flux.Tier{
		tier(ks, "flux-system", "platform", "True", "", ""),
		needs(tier(ks, "flux-system", "platform-config", "False", "ReconciliationFailed", missing), "platform"),
		needs(tier(ks, "flux-system", "vms", "False", blocked, ""), "platform-config"),
		needs(tier(ks, "flux-system", "wave-1", "False", blocked, ""), "vms"),
		tier(ks, "apps", "vms", "True", "", ""),
		own(tier(flux.HelmReleaseKind, "flux-system", "good", "True", "", "")),
		own(tier(flux.HelmReleaseKind, "flux-system", "vms", "False", "InstallFailed", "boom")),
	}
	return tiers.Build(&flux.Snapshot{
		Tiers:   all,
		Served:  []flux.Resource{{Kind: ks}, {Kind: "GitRepository"}},
		Sources: []flux.Source{{Ref: all[0].Source, Artifact: &flux.Artifact{Revision: rev}}},
	}, tiers.Options{})
}

func TestFind(t *testing.T) {
	tests := map[string]struct {
		in, arg, want string
		code          int
		says          string
	}{
		"a name":                       {arg: "platform", want: "Kustomization/flux-system/platform"},
		"with its kind":                {arg: "ks/platform", want: "Kustomization/flux-system/platform"},
		"kubectl's name":               {arg: "kustomization.kustomize.toolkit.fluxcd.io/platform", want: "Kustomization/flux-system/platform"},
		"a release":                    {arg: "hr/vms", want: "HelmRelease/flux-system/vms"},
		"with namespace and kind":      {arg: "ks/apps/vms", want: "Kustomization/apps/vms"},
		"with namespace":               {arg: "apps/vms", want: "Kustomization/apps/vms"},
		"narrowed: the Kustomization":  {in: "flux-system", arg: "vms", want: "Kustomization/flux-system/vms"},
		"ambiguous":                    {arg: "ks/vms", code: 2, says: "ks/apps/vms or ks/flux-system/vms"},
		"DEP-04 the other kind's name": {arg: "ks/good", code: 1, says: "hr/flux-system/good"},
		"misspelt":                     {arg: "platform-confi", code: 1, says: "did you mean ks/flux-system/platform"},
		"nothing like it":              {arg: "zzz", code: 1, says: `tier "zzz" does not exist`},
		"too many parts":               {arg: "a/b/c/d", code: 2, says: "names no tier"},
		"empty":                        {arg: "", code: 2, says: "names no tier"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := find(incident(), tc.in, tc.arg)
			if tc.want != "" {
				if err != nil || n.Ref.String() != tc.want {
					t.Fatalf("got %v, %v; want %s", n, err, tc.want)
				}
				return
			}
			if err == nil || util.ExitCode(err) != tc.code || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v (exit %d), want exit %d and %q", err, util.ExitCode(err), tc.code, tc.says)
			}
		})
	}
}

func TestWhatIsShown(t *testing.T) {
	names := func(o Options) string {
		rows, err := o.pick(incident())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range rows {
			out = append(out, displayName(n))
		}
		return strings.Join(out, " ")
	}
	for want, o := range map[string]Options{
		"vms platform hr/vms platform-config vms wave-1":         {},
		"vms platform hr/good hr/vms platform-config vms wave-1": {Releases: true},
		"vms":             {Namespace: "apps"},
		"wave-1 platform": {Names: []string{"wave-1", "platform"}},
	} {
		if got := names(o); got != want {
			t.Errorf("%+v shows %q, want %q", o, got, want)
		}
	}
}

func TestStatusSaysWhatAPersonNeeds(t *testing.T) {
	g := incident()
	status := func(name string) string {
		n, err := find(g, "flux-system", name)
		if err != nil {
			t.Fatal(err)
		}
		return util.TierStatus(n, now())
	}
	if got := status("platform"); got != "ready" {
		t.Errorf("platform: %s", got)
	}
	got := status("platform-config")
	for _, want := range []string{"retrying at ", "(in 30s)", "no matches for kind", "kubectl tiers why platform-config"} {
		if !strings.Contains(got, want) {
			t.Errorf("platform-config: %q does not hold %q", got, want)
		}
	}
	if strings.Contains(got, "Namespace/cdi created") {
		t.Errorf("the change log stands in the table: %q", got)
	}
	if got := status("vms"); got != "blocked by platform-config" {
		t.Errorf("vms: %s", got)
	}
	if got := status("wave-1"); got != "blocked by vms; root cause platform-config" {
		t.Errorf("wave-1: %s", got)
	}
}

func TestWhyLeadsToTheRootCause(t *testing.T) {
	var out bytes.Buffer
	w := &whyWriter{w: &out, now: now()}
	g := incident()
	n, _ := find(g, "flux-system", "wave-1")
	w.chain(g, n)
	want := []string{"wave-1: blocked", "  └ vms is not Ready", "    └ platform-config is not Ready", "Root cause: Kustomization/flux-system/platform-config, retrying", "(in 30s)"}
	at := 0
	for _, line := range want {
		i := strings.Index(out.String()[at:], line)
		if i < 0 {
			t.Fatalf("%q does not follow in\n%s", line, out.String())
		}
		at += i
	}
}

func TestHostileTextDoesNotReachTheTerminal(t *testing.T) {
	var out bytes.Buffer
	w := &whyWriter{w: &out}
	w.say("%s", "a\x1b[2Jb\nc\u202ed")
	if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q", out.String())
	}
}

func TestShortRevision(t *testing.T) {
	for in, want := range map[string]string{
		rev: "main@sha1:90379a0b", "latest@sha256:0123456789abcdef": "latest@sha256:01234567", "1.2.3": "1.2.3", "": "", "main@sha1:short": "main@sha1:short",
	} {
		if got := util.ShortRevision(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	for name, f := range map[string]Flags{
		"nudge without wait": {Nudge: true}, "timeout without wait": {Timeout: time.Second}, "negative": {Wait: true, Timeout: -1},
	} {
		f.Output = util.NewOutput()
		if _, err := f.ToOptions(nil); util.ExitCode(err) != util.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargetsMayNotExistYet(t *testing.T) {
	got, err := (&Options{Names: []string{"platform", "ks/apps/later"}}).targets(incident())
	want := []flux.Ref{{Kind: "Kustomization", Namespace: "flux-system", Name: "platform"}, {Kind: "Kustomization", Namespace: "apps", Name: "later"}}
	if err != nil || !slices.Equal(got.Names, want) {
		t.Errorf("got %v, %v", got.Names, err)
	}
	if _, err := (&Options{Names: []string{"later"}}).targets(incident()); err == nil {
		t.Error("a name without a namespace that nobody has was taken")
	}
}
