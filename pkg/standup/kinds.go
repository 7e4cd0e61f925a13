// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// ruleDeadlock is the rule of a tier that waits for kinds which only it would
// bring. It is repaired by the step crds.
const ruleDeadlock = "crd-deadlock"

// kinds derives from every tier's build which kinds are not served, and says of
// each why: also of tiers that have not tried yet. A tier that has, and lacks
// one, is reported by the check of the tiers.
func (p *preflight) kinds(ctx context.Context) (Check, error) {
	var c Check
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	k := &kindsLook{preflight: p, b: b, earlier: p.earlier(b), defined: b.definitions(), at: map[string]int{}}
	if world, err := p.world(); err == nil { // else the check of the wedges says so
		k.world = world
	}
	built, unknown := 0, 0
	for i := range b.all {
		f := &b.all[i]
		switch {
		case isRemote(f.Kustomization):
		case f.Result != nil:
			built++
			if err := k.tier(ctx, f); err != nil {
				return c, err
			}
		case f.Err != nil:
			k.unbuilt(f)
			unknown++
		default:
			unknown++ // the check of the sources says why
		}
	}
	if err := k.expected(ctx); err != nil {
		return c, err
	}
	there, err := p.namespaceNames()
	if err == nil {
		k.namespaces(there)
	}
	c.Findings = k.findings
	c.Message = fmt.Sprintf("%s built", plural(built, "tier was", "tiers were"))
	if unknown > 0 {
		c.Message += fmt.Sprintf("; of %d nothing is known", unknown)
	}
	return c, err
}

// kindsLook collects the findings about kinds.
type kindsLook struct {
	*preflight
	b       *builds
	earlier *earlier
	// defined are the CRDs that tiers build, by the kinds that these define.
	defined map[schema.GroupVersionKind][]built
	world   *wedge.World

	findings []finding.Finding
	// at finds the finding of a cause: kinds that lack for the same reason are
	// one finding.
	at map[string]int
}

func isRemote(kustomization *unstructured.Unstructured) bool {
	_, remote, _ := unstructured.NestedFieldNoCopy(kustomization.Object, "spec", "kubeConfig")
	return remote
}

// judge says why a tier lacks kinds. Each tier is judged once.
func (p *preflight) judge(ctx context.Context, f *build.Followed) (*crds.Diagnosis, error) {
	look, err := p.served(ctx)
	if err != nil {
		return nil, err
	}
	p.judging.Lock()
	defer p.judging.Unlock()
	if d := p.judged[bare(f.Tier)]; d != nil {
		return d, nil
	}
	d, err := look.Judge(ctx, p.snapshot, f.Result)
	if err != nil {
		return nil, err
	}
	p.judged[bare(f.Tier)] = d
	return d, nil
}

// reportedByTier is true for a tier that failed for want of a kind, and whose
// failure is a root cause: the check of the tiers looks into those.
func (p *preflight) reportedByTier(tier flux.Ref) bool {
	n := p.graph.Node(tier)
	return n != nil && n.MayMissKind() && n.State != tiers.Ready && p.isRoot(n)
}

// tier reports what one tier lacks.
func (k *kindsLook) tier(ctx context.Context, f *build.Followed) error {
	d, err := k.judge(ctx, f)
	if err != nil || k.reportedByTier(f.Tier) {
		return err
	}
	for _, gvk := range d.Undecided {
		k.add(f, gvk, k.undecided(gvk))
	}
	deadlocked := false
	for i := range d.Missing {
		m := &d.Missing[i]
		cause := k.cause(f, d, m)
		if cause.rule == ruleDeadlock {
			deadlocked = true
			continue
		}
		if t := cause.awaits; t != nil {
			operator, err := k.operator(ctx, t)
			if err != nil {
				cause.seen = append(cause.seen, err.Error())
			} else {
				cause.seen = append(cause.seen, operator.Sentence())
				if !operator.Found() || operator.Available == 0 {
					cause.severity = finding.Error
				}
			}
		}
		k.add(f, m.Kind, cause)
	}
	if !deadlocked {
		return nil
	}
	found := finding.Finding{Object: &f.Tier, Tier: &f.Tier, Severity: finding.Error}
	if found, err = k.deadlock(ctx, f.Tier, d, found); err != nil {
		return err
	}
	if n := k.graph.Node(f.Tier); n == nil {
		found.Causes = append(found.Causes, "it is not on the cluster yet")
	} else {
		found.Causes = append(found.Causes, fmt.Sprintf("it has not failed by it yet: %s", n.State))
	}
	k.findings = append(k.findings, found)
	return nil
}

// add enters a missing kind, with those that lack for the same reason.
func (k *kindsLook) add(f *build.Followed, gvk schema.GroupVersionKind, cause kindCause) {
	key := cause.rule + "\n" + cause.text
	i, seen := k.at[key]
	if !seen {
		i = len(k.findings)
		k.at[key] = i
		k.findings = append(k.findings, finding.Finding{
			Rule: cause.rule, Severity: cause.severity, Object: &f.Tier, Tier: &f.Tier,
			Message: cause.text, Causes: cause.seen, Fix: cause.fix,
		})
	}
	found := &k.findings[i]
	missing := finding.Missing{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, CreatedBy: cause.createdBy}
	if !slices.Contains(found.Missing, missing) {
		found.Missing = append(found.Missing, missing)
	}
	needs := fmt.Sprintf("%s applies it", f.Tier)
	if !slices.Contains(found.Causes, needs) {
		found.Causes = append(found.Causes, needs)
	}
	found.Message = kindNames(found.Missing) + " " + cause.text
}

// kindNames are the kinds of one finding, in a sentence.
func kindNames(missing []finding.Missing) string {
	var names []string
	for _, m := range missing {
		if !slices.Contains(names, m.Kind) {
			names = append(names, m.Kind)
		}
	}
	return strings.Join(names, ", ")
}

// operator looks at the controller behind a relation once.
func (p *preflight) operator(ctx context.Context, t *knowledge.Relation) (crds.Operator, error) {
	p.judging.Lock()
	defer p.judging.Unlock()
	if o, ok := p.operators[t.ID]; ok {
		return o, nil
	}
	o, err := p.env.CRDs.Operator(ctx, *t)
	if err == nil {
		p.operators[t.ID] = o
	}
	return o, err
}
