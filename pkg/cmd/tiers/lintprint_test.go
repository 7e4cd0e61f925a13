// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
)

var update = flag.Bool("update", false, "write the golden files anew")

func kustomization(name string) *flux.Ref {
	return &flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: flux.KustomizationKind, Namespace: "flux-system", Name: name}
}

// deadlocked is the report of the incident.
func deadlocked() *lint.Report {
	cdi := &flux.Ref{APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "CDI", Name: "cdi"}
	const gv = "cdi.kubevirt.io/v1beta1"
	return &lint.Report{
		TypeMeta: printers.TypeMeta("LintReport"),
		Entries: []lint.Entry{{
			Entry: "clusters/prod", Tiers: 14, Objects: 1312,
			Verdicts: lint.Counts{AtOnce: 10, ByRetry: 1, Never: 1, Blocked: 1, Unknown: 1, Unready: 1},
			Outcomes: []lint.Outcome{
				{Tier: *kustomization("flux-system"), Verdict: coldstart.AtOnce, Ready: true},
				{Tier: *kustomization("platform"), Verdict: coldstart.ByRetry, Ready: true},
				{Tier: *kustomization("platform-config"), Verdict: coldstart.Never},
				{Tier: *kustomization("vms"), Verdict: coldstart.Blocked},
				{Tier: *kustomization("apps"), Verdict: coldstart.Unknown},
				{Tier: *kustomization("web"), Verdict: coldstart.AtOnce},
			},
			Kinds: lint.KindCounts{InTime: 12, Missing: 1, Perhaps: 2},
			Outside: []lint.Outside{{
				Source: flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "apps"}, Tiers: []flux.Ref{*kustomization("apps")},
			}},
			Opaque: []lint.Opaque{{Object: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "obs", Name: "loki"}, Chart: "loki", Version: "6.x", Why: "it is not in the cache"}, {
				Object: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "net", Name: "cilium"}, Why: "its source is outside of this repository",
			}, {Object: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "obs", Name: "tempo"}, Why: "it is not in the cache"}},
		}},
		Loose:   []lint.Loose{{Tier: *kustomization("old"), File: "attic/old.yaml", Line: 7}},
		Summary: lint.Summary{Tiers: 14, Objects: 1312, Errors: 1, Warnings: 1, Infos: 1, Suppressed: 2},
		Findings: []finding.Finding{
			{
				Rule: "BUILD001", Severity: finding.Error, Tier: kustomization("platform-config"), Object: cdi,
				File: "infrastructure/platform-config/cdi.yaml", Line: 3,
				Message: "StorageProfile is created by cdi-operator when it reconciles CDI/cdi, which is in the same stage of platform-config: no retry heals it, and 7 tiers below stay down",
				Causes: []string{
					"StorageProfile/longhorn-vm (infrastructure/platform-config/profiles.yaml:1) is dry-run together with CDI/cdi, before anything of the stage is applied",
					"CDI/cdi (infrastructure/platform-config/cdi.yaml:3) is never applied, so that cdi-operator never creates the kind",
				},
				Missing: []finding.Missing{{APIVersion: gv, Kind: "StorageProfile", CreatedBy: "KubeVirt CDI, when it reconciles CDI/cdi"}},
				Fix: "move infrastructure/platform-config/profiles.yaml into a tier of its own, below platform-config\n" +
					"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: platform-config-profiles\nspec:\n  dependsOn:\n    - name: platform-config\n" +
					"Kustomization/flux-system/platform-config (clusters/prod/platform-config.yaml:1):\nspec:\n  healthCheckExprs:\n    - apiVersion: cdi.kubevirt.io/v1beta1\n      kind: CDI\n      inProgress: \x1b]0;title\x07\n      current: status.phase == 'Deployed' && has(status.observedVersion) && status.observedVersion == status.targetVersion",
				Suggestion: "--- a/x\n+++ b/x\n",
			},
			{
				Rule: "SUP001", Severity: finding.Warning, Tier: kustomization("web"), Object: kustomization("web"), File: "clusters/prod/web.yaml",
				Message: "It is \x1b[31mred\x1b[0m.",
			},
			{Rule: "XX999", Severity: finding.Info, Tier: kustomization("generated"), Message: "StorageProfile's status is proved by no Ready"},
		},
		Kinds: []lint.Kind{
			{
				Tier: *kustomization("platform"), APIVersion: gv, Kind: "CDI", Order: lint.FirstOrder, Confidence: lint.ByBuild, When: coldstart.InTime,
				Known: "stage 1 of platform", RegisteredBy: lint.Registrar{
					How: lint.ViaGit, Object: &flux.Ref{Kind: "CustomResourceDefinition", Name: "cdis.cdi.kubevirt.io"}, File: "infrastructure/platform/cdi-operator.yaml", Line: 12,
				},
			},
			{
				Tier: *kustomization("platform-config"), APIVersion: gv, Kind: "StorageProfile", Order: lint.SecondOrder, Confidence: lint.BySource, When: coldstart.Missing,
				RegisteredBy: lint.Registrar{How: lint.ViaTrigger, Object: cdi, File: "infrastructure/platform-config/cdi.yaml", Line: 3, System: "KubeVirt CDI"},
			},
			{
				Tier: *kustomization("web"), APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute", Order: lint.FirstOrder, When: coldstart.Perhaps,
				RegisteredBy: lint.Registrar{How: lint.ViaPerhaps, Object: &flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "net", Name: "cilium"}},
			},
			{
				Tier: *kustomization("web"), APIVersion: "example.com/v1", Kind: "Thing", Order: lint.FirstOrder, When: coldstart.Missing,
				RegisteredBy: lint.Registrar{How: lint.ViaNobody, System: "Things"},
			},
			{
				Tier: *kustomization("web"), APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshotClass", Order: lint.FirstOrder, When: coldstart.InTime, Known: "before",
				RegisteredBy: lint.Registrar{How: lint.ViaBefore}, Confidence: lint.BySource,
			},
			{
				Tier: *kustomization("web"), APIVersion: "stores.example.com/v1", Kind: "Store", Order: lint.FirstOrder, When: coldstart.Late, Known: "after stage 4 of stores, when HelmRelease/x/stores is installed",
				RegisteredBy: lint.Registrar{How: lint.ViaChart, Object: &flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "x", Name: "stores"}, System: "stores@1.2", File: "stores/release.yaml", Line: 1},
			},
			{
				Tier: *kustomization("web"), APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Order: lint.FirstOrder, When: coldstart.InTime, Known: "before",
				RegisteredBy: lint.Registrar{How: lint.ViaBefore, System: "Flux"},
			},
		},
	}
}

// proven is the report of a repository that has nothing wrong.
func proven(clusters ...string) *lint.Report {
	r := &lint.Report{Findings: []finding.Finding{}}
	for _, c := range clusters {
		r.Entries = append(r.Entries, lint.Entry{
			Entry: c, Tiers: 14, Objects: 312, Verdicts: lint.Counts{AtOnce: 14}, Kinds: lint.KindCounts{InTime: 23},
		})
		r.Summary.Tiers += 14
		r.Summary.Objects += 312
	}
	return r
}

func TestWhatPeopleSee(t *testing.T) {
	quiet := proven("clusters/dev", "clusters/prod")
	perhaps := proven("clusters/dev")
	perhaps.Entries[0].Kinds.Perhaps = 1
	trusting := proven("clusters/dev")
	trusting.Entries[0].Outside = []lint.Outside{{
		Source: flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "lost"}, Undefined: true, Tiers: []flux.Ref{*kustomization("apps")},
	}}
	trusting.Entries[0].Trust = lint.Trust{
		ByName:  &lint.ByName{Kinds: 3, Charts: []string{"cert-manager@1.x", "cilium"}},
		Assumed: []flux.Ref{{Kind: "ConfigMap", Namespace: "flux-system", Name: "vars"}, {Kind: "Secret", Namespace: "obs", Name: "values"}},
		Before:  []lint.InstalledBefore{{File: "bootstrap/helmfile.yaml", Charts: []string{"cilium", "coredns"}}},
	}
	reserved := proven("clusters/dev")
	reserved.Entries[0].Verdicts = lint.Counts{AtOnce: 9, Never: 3, Blocked: 2}
	reserved.Entries[0].Outcomes = []lint.Outcome{
		{Tier: *kustomization("meant"), Verdict: coldstart.Never, Suppressed: true},
		{Tier: *kustomization("routes"), Verdict: coldstart.Never, UnlessOutside: true},
		{Tier: *kustomization("vms"), Verdict: coldstart.Never, UnlessOutside: true},
		{Tier: *kustomization("apps"), Verdict: coldstart.Blocked, BlockedBy: []flux.Ref{*kustomization("vms")}},
		{Tier: *kustomization("web"), Verdict: coldstart.Blocked, BlockedBy: []flux.Ref{*kustomization("apps")}},
	}
	reserved.Findings = []finding.Finding{{Rule: "CS002", Severity: finding.Warning, Message: "m", Causes: []string{"a reason", "found in both clusters"}}}
	unfetched := proven("clusters/dev")
	unfetched.Entries[0].Trust = lint.Trust{
		ByName: &lint.ByName{Kinds: 1, Charts: []string{"cert-manager@1.x"}},
		Unfetched: []lint.Unfetched{{
			Object: flux.Ref{Kind: flux.HelmReleaseKind, Namespace: "x", Name: "cert-manager"}, Chart: "cert-manager", Version: "1.x", Why: "dial tcp: lookup charts.jetstack.io: no such host",
		}},
	}
	quiet.Entries[0] = lint.Entry{Entry: "clusters/dev", Tiers: 1, Verdicts: lint.Counts{AtOnce: 1}}
	for name, tt := range map[string]struct {
		report *lint.Report
		kinds  bool
		table  printers.TableOptions
	}{
		"findings-80":    {report: deadlocked(), table: printers.TableOptions{Width: 80}},
		"findings-140":   {report: deadlocked(), table: printers.TableOptions{Width: 140}},
		"findings-piped": {report: deadlocked()},
		"findings-color": {report: deadlocked(), table: printers.TableOptions{Width: 80, Color: true}},
		"kinds-80":       {report: deadlocked(), kinds: true, table: printers.TableOptions{Width: 80}},
		"kinds-60":       {report: deadlocked(), kinds: true, table: printers.TableOptions{Width: 60}},
		"kinds-piped":    {report: deadlocked(), kinds: true},
		"kinds-140":      {report: deadlocked(), kinds: true, table: printers.TableOptions{Width: 140}},
		"nothing":        {report: quiet, table: printers.TableOptions{Width: 80}},
		"no-kinds":       {report: quiet, kinds: true, table: printers.TableOptions{Width: 80}},
		"reserved":       {report: reserved, table: printers.TableOptions{Width: 100}},
		"trust":          {report: trusting, table: printers.TableOptions{Width: 100}},
		"unfetched":      {report: unfetched, table: printers.TableOptions{Width: 100}},
		"perhaps":        {report: perhaps, table: printers.TableOptions{Width: 80}},
		"nothing-at-all": {report: proven("clusters/dev"), table: printers.TableOptions{Width: 140}},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "kinds") {
				tt.report.Findings = nil
			}
			var out bytes.Buffer
			if err := writeLint(&out, tt.report, tt.kinds, tt.table); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "lint", name+".txt"), out.Bytes())
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if strings.TrimRight(line, " ") != line {
					t.Errorf("spaces end %q", line)
				}
			}
			if !tt.table.Color && strings.Contains(out.String(), "\x1b") {
				t.Errorf("an escape sequence reached the terminal:\n%q", out.String())
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestNoLineIsFoldedThatIsCopied: manifests and addresses stay whole, and
// everything else fits.
func TestNoLineIsFoldedThatIsCopied(t *testing.T) {
	const width = 60
	var out bytes.Buffer
	if err := writeLint(&out, deadlocked(), false, printers.TableOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		whole := strings.Contains(line, "https://") || strings.HasPrefix(line, "error ") || strings.Contains(line, "current: ")
		if n := printers.TextWidth(strings.TrimSuffix(line, "\n")); n > width && !whole && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(out.String(), "      current: status.phase == 'Deployed' && has(status.observedVersion) && status.observedVersion == status.targetVersion\n") {
		t.Errorf("the expression is not whole:\n%s", out.String())
	}
}
