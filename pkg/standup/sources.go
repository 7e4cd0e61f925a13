// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// bare drops the API version, in which references to one object differ.
func bare(r flux.Ref) flux.Ref {
	r.APIVersion = ""
	return r
}

// sources reports those that tiers are built from and that cannot be fetched:
// by Flux, as their status says, or by us.
func (p *preflight) sources(ctx context.Context) (Check, error) {
	var c Check
	used, static, err := p.usedSources(ctx)
	if err != nil {
		return c, err
	}
	var good []string
	bad := map[flux.Ref]bool{}
	for i := range p.snapshot.Sources {
		s := &p.snapshot.Sources[i]
		count := used[bare(s.Ref)]
		if count == 0 || static[bare(s.Ref)] {
			continue
		}
		if f, is := p.sourceFinding(s, count); is {
			bad[bare(s.Ref)] = true
			c.Findings = append(c.Findings, f)
			continue
		}
		if len(good) < 3 {
			good = append(good, fmt.Sprintf("%s at %s", s.Ref, s.Artifact.Revision))
		} else if len(good) == 3 {
			good = append(good, "and others")
		}
	}
	c.Message = strings.Join(good, ", ")
	if c.Findings, err = p.withoutCharts(ctx, c.Findings); err != nil {
		return c, err
	}
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	c.Findings = append(c.Findings, p.missingSources(b)...)
	for _, ref := range sorted(b.unfetched) {
		if bad[ref] {
			continue // Flux has no better one itself
		}
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "source-artifact-unfetched", Severity: finding.Error, Blocks: true, Object: &ref,
			Message: fmt.Sprintf("the artifact of %s could not be fetched, so nothing is known of what is built from it: %v", ref, b.unfetched[ref]),
			Fix:     "make source-controller run, and its Pods reachable by port-forward; then: " + p.env.Command("standup", "preflight"),
		})
	}
	return c, nil
}

func sorted(m map[flux.Ref]error) []flux.Ref {
	refs := make([]flux.Ref, 0, len(m))
	for ref := range m {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, flux.Ref.Compare)
	return refs
}

// usedSources counts the tiers that are built from each source, through the
// HelmChart where there is one. static are those that source-controller does
// nothing with (source-controller internal/controller
// helmrepository_controller.go, v1.9.6: of type oci).
func (p *preflight) usedSources(ctx context.Context) (used map[flux.Ref]int, static map[flux.Ref]bool, err error) {
	used, static = map[flux.Ref]int{}, map[flux.Ref]bool{}
	charts := false
	for _, n := range p.graph.Tiers() {
		if n.Origin != nil {
			used[bare(n.Origin.Ref)]++
			charts = charts || n.Source.Kind == "HelmChart"
		}
	}
	if !charts {
		return used, static, nil
	}
	all, err := p.objects(ctx, "HelmChart")
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		chart := flux.Ref{Kind: "HelmChart", Namespace: o.GetNamespace(), Name: o.GetName()}
		used[sourceOfChart(o)] += used[chart]
	}
	if all, err = p.objects(ctx, "HelmRepository"); err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind == "oci" {
			static[flux.Ref{Kind: "HelmRepository", Namespace: o.GetNamespace(), Name: o.GetName()}] = true
		}
	}
	return used, static, nil
}

// missingSources are those that tiers name and that do not exist. One that a
// tier builds is on its way.
func (p *preflight) missingSources(b *builds) []finding.Finding {
	var order []flux.Ref
	wanted := map[flux.Ref][]flux.Ref{}
	for _, n := range p.graph.Tiers() {
		ref := bare(n.Source)
		// helm-controller makes the HelmChart itself.
		if n.Origin != nil || ref.Name == "" || ref.Kind == "HelmChart" {
			continue
		}
		if wanted[ref] == nil {
			order = append(order, ref)
		}
		wanted[ref] = append(wanted[ref], n.Ref)
	}
	var found []finding.Finding
	for _, ref := range order {
		f := finding.Finding{
			Rule: "source-missing", Severity: finding.Error, Blocks: true, Object: &ref, Tier: &wanted[ref][0],
			Message: fmt.Sprintf("%s does not exist; %s", ref, neededBy(len(wanted[ref]))),
			Fix:     "create it, or correct spec.sourceRef of what names it in git",
		}
		if by := b.bringer(ref); by != nil {
			f.Severity, f.Blocks = finding.Info, false
			f.Message += fmt.Sprintf("; it comes with %s", by.Tier)
			f.Fix = "wait for that tier"
		}
		found = append(found, f)
	}
	return found
}

// bringer is the tier whose build holds the source, whatever the version of
// its API; nil when none does.
func (b *builds) bringer(source flux.Ref) *build.Followed {
	for at, objects := range b.objects {
		if at.group == flux.SourceGroup && at.kind == source.Kind && at.namespace == source.Namespace && at.name == source.Name {
			return objects[0].tier
		}
	}
	return nil
}

func neededBy(count int) string {
	if count == 1 {
		return "one tier is built from it"
	}
	return fmt.Sprintf("%d tiers are built from it", count)
}

// lateAfter is how many intervals a source may go without a fetch.
const lateAfter = 3

func (p *preflight) sourceFinding(s *flux.Source, count int) (finding.Finding, bool) {
	f := finding.Finding{Severity: finding.Error, Blocks: true, Object: &s.Ref}
	ready := meta.FindStatusCondition(s.Conditions, "Ready")
	failed := ready != nil && ready.Status == metav1.ConditionFalse
	f.Fix = p.sourceFix(s, ready)
	if refused(s.Conditions) {
		f.Fix = "renew the credentials in the Secret that it names: " + p.command(fmt.Sprintf(
			"kubectl -n %s get %s %s -o jsonpath={.spec.secretRef.name}", s.Ref.Namespace, strings.ToLower(s.Ref.Kind)+"."+flux.SourceGroup, s.Ref.Name))
	}
	if s.Suspended {
		f.Fix = "if it is meant to run: " + p.command(fmt.Sprintf("flux resume source %s %s -n %s", fluxSource(s.Ref.Kind), s.Ref.Name, s.Ref.Namespace))
	}
	switch {
	case s.Suspended && s.Artifact != nil:
		f.Rule, f.Severity, f.Blocks = "source-suspended", finding.Warning, false
		f.Message = fmt.Sprintf("%s is suspended, so no new revision arrives; %s", s.Ref, neededBy(count))
		return f, true
	case s.Suspended:
		f.Rule = "source-without-artifact"
		f.Message = fmt.Sprintf("%s is suspended and has no artifact; %s", s.Ref, neededBy(count))
	case s.Artifact == nil:
		f.Rule = "source-without-artifact"
		f.Message = fmt.Sprintf("%s has no artifact; %s", s.Ref, neededBy(count))
	case failed:
		f.Rule = "source-not-ready"
		f.Message = fmt.Sprintf("%s cannot be fetched, and is still at %s; %s", s.Ref, s.Artifact.Revision, neededBy(count))
	default:
		return f, false
	}
	if refused(s.Conditions) && !s.Suspended {
		f.Rule = "source-not-authenticated"
	}
	f.Message += p.since(s, ready) + because(ready)
	return f, true
}

// since says for how long the source was not fetched, where that is longer than
// a few failures in a row.
func (p *preflight) since(s *flux.Source, ready *metav1.Condition) string {
	if ready == nil || ready.Status != metav1.ConditionFalse || s.Interval <= 0 {
		return ""
	}
	at := ready.LastTransitionTime.Time
	if n := p.snapshot.Taken.Sub(at) / s.Interval; n > lateAfter {
		return fmt.Sprintf("; it has failed since %s, for %d intervals", at.UTC().Format(time.RFC3339), n)
	}
	return ""
}

// refused is true where the server wants other credentials. source-controller
// says so by a reason of its own only for those that it could not read
// (api/v1 AuthenticationFailedReason); else the server's words tell.
func refused(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		// FetchFailed is bad when it is True, Ready when it is False.
		if c.Type != "FetchFailed" && (c.Type != "Ready" || c.Status != metav1.ConditionFalse) {
			return false
		}
		text := strings.ToLower(c.Message)
		return c.Reason == "AuthenticationFailed" || slices.ContainsFunc([]string{
			"authentication required", "authorization failed", "authentication failed", "unable to authenticate",
			"unauthorized", "status code: 401", "401 unauthorized", "403 forbidden", "permission denied (publickey", "invalid credentials",
		}, func(word string) bool { return strings.Contains(text, word) })
	})
}

func because(c *metav1.Condition) string {
	if c == nil || c.Message == "" || c.Status == metav1.ConditionTrue {
		return ""
	}
	return ": " + c.Message
}

// fluxSource is what the Flux CLI calls a kind of source.
func fluxSource(kind string) string {
	switch kind {
	case "GitRepository":
		return "git"
	case "OCIRepository":
		return "oci"
	case "HelmRepository":
		return "helm"
	case "HelmChart":
		return "chart"
	}
	return strings.ToLower(kind)
}
