// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// chartCRDs applies the CRDs of the charts that standup.yaml names: each chart
// is the one that Flux reconciles for its HelmRelease, rendered with the values
// of that and the override of the file. Nothing else of the chart is applied.
//
// All that was not done is in the findings. The error is that of the first
// chart that could not be helped, after all others were: a *crds.RefusedError
// (exit 6), a *crds.ServedDeadlineError (exit 4), or one of the cluster.
func (l *look) chartCRDs(ctx context.Context) (Check, error) {
	c := Check{Name: "chart-crds"}
	wanted := l.env.File.CRDs.FromCharts
	if len(wanted) == 0 {
		c.Message = "standup.yaml names no chart (crds.fromCharts)"
		return c, nil
	}
	server, err := l.chartServer(ctx)
	if err != nil {
		return c, err
	}
	charts, err := chart.New(l.env.Config, l.env.CRDs.Artifacts(), l.snapshot.Served, l.wouldBe)
	if err != nil {
		return c, err
	}
	var errs []error
	var said []string
	seen := map[string]string{}
	for _, want := range wanted {
		message, found, err := l.chartCRDsOf(ctx, charts, server, want, seen)
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		c.Findings = append(c.Findings, found...)
		if message != "" {
			said = append(said, message)
		}
		errs = append(errs, err)
		if isRunning(err) {
			break
		}
	}
	c.Message = strings.Join(said, "; ")
	return c, errors.Join(errs...)
}

// isRunning is true where a template goes on although nobody waits for it any
// more: it takes memory until this program ends.
func isRunning(err error) bool {
	var still interface{ Running() bool }
	return errors.As(err, &still) && still.Running()
}

// wouldBe is what a tier would apply that has not run yet: on a cold cluster
// the HelmRelease and its source are still in git alone.
func (l *look) wouldBe(ctx context.Context, r flux.Ref) (*unstructured.Unstructured, error) {
	b, err := l.builds(ctx)
	if err != nil {
		return nil, err
	}
	if o, ok := b.authored(r); ok {
		return o.Unstructured, nil
	}
	return nil, nil
}

func (l *look) chartServer(ctx context.Context) (chart.Server, error) {
	var s chart.Server
	client, err := discovery.NewDiscoveryClientForConfig(l.env.Config)
	if err != nil {
		return s, err
	}
	version, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerVersionWithContext(ctx)
	if err != nil {
		return s, fmt.Errorf("version of the server: %w", err)
	}
	served, err := l.served(ctx)
	if err != nil {
		return s, err
	}
	s.Version = version.GitVersion
	for _, kind := range served.Served.Kinds() {
		s.Kinds = append(s.Kinds, kind.Kind)
	}
	return s, nil
}

// chartCRDsOf is one chart. seen holds which release a CRD was applied for.
func (l *look) chartCRDsOf(ctx context.Context, charts *chart.Charts, server chart.Server, want config.FromChart, seen map[string]string,
) (message string, found []finding.Finding, err error) {
	namespace, name, _ := strings.Cut(want.HelmRelease, "/")
	release := flux.Ref{APIVersion: flux.HelmGroup + "/v2", Kind: flux.HelmReleaseKind, Namespace: namespace, Name: name}
	about := finding.Finding{Severity: finding.Error, Object: &release, Tier: &release}
	loaded, err := charts.Load(ctx, namespace, name)
	if err != nil {
		about.Rule, about.Message = "chart-not-found", err.Error()
		about.Fix = "correct crds.fromCharts in standup.yaml, or let Flux reconcile what stands above, then run this again"
		return "", []finding.Finding{about}, err
	}
	for _, note := range loaded.Notes {
		l.env.Say("Warning: " + note)
	}
	limited, cancel := context.WithTimeout(ctx, l.env.Timeout)
	definitions, err := loaded.Definitions(limited, server, want.Values)
	cancel()
	if err != nil {
		about.Rule, about.Message = "chart-not-rendered", err.Error()
		about.Fix = "correct the values in git, or those of crds.fromCharts in standup.yaml"
		return "", []finding.Finding{about}, err
	}
	if len(definitions) == 0 {
		return "", []finding.Finding{noDefinitions(about, loaded, loaded.Switches())}, nil
	}
	l.env.Say(fmt.Sprintf("%s: chart %s %s has %s; it is from %s", release, loaded.Name, loaded.Version, plural(len(definitions), "CRD", "CRDs"), loaded.Origin))
	definitions, found = firstOnly(definitions, release, seen)
	all, err := l.env.CRDs.ApplyDefinitions(ctx, definitions, crds.Apply{
		DryRun: l.env.DryRun, Timeout: l.env.Timeout, Say: l.env.Say, Redact: loaded.Redact,
	})
	for _, one := range all {
		if f, ok := definitionFinding(one, release); ok {
			found = append(found, f)
		}
	}
	var refused *crds.RefusedError
	if err != nil && !errors.As(err, &refused) {
		about.Rule, about.Message = "chart-crds-failed", fmt.Sprintf("%s: %v", release, err)
		about.Fix = "run this again; it does only what is left"
		found = append(found, about)
	}
	if acts := countActs(all, l.env.DryRun); acts != "" {
		message = fmt.Sprintf("%s: %s", want.HelmRelease, acts)
	}
	return message, found, err
}

// firstOnly leaves out the CRDs that another chart of this run has applied: the two
// would change them back and forth.
func firstOnly(definitions []*unstructured.Unstructured, release flux.Ref, seen map[string]string) ([]*unstructured.Unstructured, []finding.Finding) {
	var found []finding.Finding
	definitions = slices.DeleteFunc(definitions, func(d *unstructured.Unstructured) bool {
		first, twice := seen[d.GetName()]
		if !twice {
			seen[d.GetName()] = release.String()
			return false
		}
		found = append(found, finding.Finding{
			Rule: "crd-in-two-charts", Severity: finding.Warning, Object: &flux.Ref{APIVersion: d.GetAPIVersion(), Kind: d.GetKind(), Name: d.GetName()}, Tier: &release,
			Message: fmt.Sprintf("CRD %s is in the chart of %s as well, and the first was taken", d.GetName(), first),
			Fix:     "switch it off in one of the two, in crds.fromCharts of standup.yaml",
		})
		return true
	})
	return definitions, found
}

func noDefinitions(f finding.Finding, loaded *chart.Chart, switches []string) finding.Finding {
	f.Rule, f.Severity = "chart-crds-none", finding.Warning
	f.Message = fmt.Sprintf("chart %s %s of %s renders no CRD, with the values of crds.fromCharts too", loaded.Name, loaded.Version, loaded.Release)
	f.Fix = "set in crds.fromCharts[].values of standup.yaml what switches the CRDs on"
	if len(switches) > 0 {
		f.Fix += "; these look like it: " + strings.Join(switches, ", ")
	} else {
		f.Fix += ", or take the entry out: nothing in the chart looks like a switch"
	}
	return f
}

// definitionFinding is what has to be said of a CRD that was not applied.
func definitionFinding(one crds.Applied, release flux.Ref) (finding.Finding, bool) {
	ref := one.Ref()
	f := finding.Finding{Severity: finding.Error, Object: &ref, Tier: &release, Causes: one.Differences}
	switch one.Reason {
	case crds.NotOurs:
		f.Rule, f.Severity = "crd-not-ours", finding.Info
		f.Message = fmt.Sprintf("CRD %s is left as it is: %s. It is as the chart has it", one.Name, one.Why)
		if len(one.Differences) > 0 {
			f.Severity = finding.Warning
			f.Message = fmt.Sprintf("CRD %s is left as it is: %s. It is not as the chart has it: %s", one.Name, one.Why, strings.Join(one.Differences, ", "))
			f.Fix = "let who manages it bring it to this version: this step never takes over what others manage"
		}
		return f, true
	case crds.TooBig:
		f.Rule = "crd-too-big"
	case crds.LosesStored:
		f.Rule = "crd-stored-version"
	case crds.Deleting:
		f.Rule = "crd-deleting"
	case crds.NotAccepted:
		f.Rule = "crd-not-accepted"
	default:
		return f, false
	}
	f.Message = fmt.Sprintf("CRD %s is not applied: %s", one.Name, one.Why)
	f.Fix = "the other CRDs of the chart were applied; do what stands above, then run this again"
	return f, true
}

// countActs is what was done, in a few words.
func countActs(all []crds.Applied, dryRun bool) string {
	count := map[crds.Act]int{}
	for _, one := range all {
		count[one.Act]++
	}
	var parts []string
	for _, act := range []crds.Act{crds.Created, crds.Updated, crds.Unchanged, crds.Left, crds.Refused} {
		switch n := count[act]; {
		case n == 0:
		case dryRun && (act == crds.Created || act == crds.Updated):
			parts = append(parts, fmt.Sprintf("%d would be %s", n, act))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, act))
		}
	}
	return strings.Join(parts, ", ")
}

// expectedCRDs reports the CRDs that standup.yaml wants (crds.expect) and that
// are not Established, each with its cause.
func (l *look) expectedCRDs(ctx context.Context) (Check, error) {
	c := Check{Name: "expected-crds"}
	names := l.env.File.CRDs.Expect
	for _, name := range names {
		why, err := l.env.CRDs.Unestablished(ctx, name)
		if err != nil {
			return c, err
		}
		if why == "" {
			continue
		}
		ref := crds.Applied{Name: name}.Ref()
		f := finding.Finding{
			Rule: "crd-missing", Severity: finding.Error, Object: &ref,
			Message: fmt.Sprintf("CRD %s is not Established: %s", name, why),
			Fix:     "see what should create it: " + l.env.Command("standup", "preflight"),
		}
		b, err := l.builds(ctx)
		if err != nil {
			return c, err
		}
		if o, ok := b.authored(ref); ok {
			f.Tier = &o.tier.Tier
			f.Causes = append(f.Causes, fmt.Sprintf("%s applies it", o.tier.Tier))
			f.Fix = "see why that tier has not: " + l.env.Command("tiers", "why "+tierArg(o.tier.Tier))
		}
		c.Findings = append(c.Findings, f)
	}
	if len(names) == 0 {
		c.Message = "standup.yaml names none (crds.expect)"
	} else if len(c.Findings) == 0 {
		c.Message = fmt.Sprintf("%d of %d Established", len(names), len(names))
	}
	return c, nil
}
