// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// objectCheck is CEL over objects of one kind, as kustomize-controller
// evaluates healthCheckExprs.
type objectCheck struct {
	// from is who says so, as a sentence names it.
	from string
	// current is the expression that has to be true.
	current string
	// configured is true for a check of standup.yaml.
	configured bool

	group, kind     string // no kind is every kind of the group, as in Flux
	namespace, name string // empty for any
	version         string
	evaluator       *cel.StatusEvaluator
}

// judge evaluates the check.
func (c *objectCheck) judge(ctx context.Context, u *unstructured.Unstructured) proof {
	result, err := c.evaluator.Evaluate(ctx, u)
	p := proof{class: wellSaid}
	switch {
	case err != nil: // a field that is not there yet, as a rule
		p = proof{class: late, why: fmt.Sprintf("%s cannot be evaluated: %s", c.from, firstLine(err.Error()))}
	case result.Status == status.FailedStatus:
		p = proof{class: broken, why: fmt.Sprintf("%s says that it has failed", c.from)}
	case result.Status != status.CurrentStatus:
		p = proof{class: late, why: fmt.Sprintf("%s is not true: %s", c.from, firstLine(c.current))}
	}
	if p.class != wellSaid && c.configured {
		p.class = refuted
	}
	return p
}

func (c *objectCheck) isFor(gk schema.GroupKind) bool {
	return c.group == gk.Group && (c.kind == gk.Kind || c.kind == "")
}

func isSecret(gk schema.GroupKind) bool { return gk == schema.GroupKind{Kind: "Secret"} }

func objectRef(u *unstructured.Unstructured) flux.Ref {
	return flux.Ref{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (c *objectCheck) isAbout(r flux.Ref) bool {
	return c.isFor(r.GroupVersionKind().GroupKind()) &&
		(c.namespace == "" || c.namespace == r.Namespace) && (c.name == "" || c.name == r.Name)
}

// checkBook knows the checks of standup.yaml, of the tiers, and those that
// belong to what is known of second-order kinds.
type checkBook struct {
	configured, known []objectCheck
	ofTier            map[string][]objectCheck // by tierArg
	evaluators        map[kustomize.HealthCheckExpressions]*cel.StatusEvaluator
}

// book reads all checks. broken says of each that cannot be used why; the
// others are not affected.
func (v *verify) book(ctx context.Context) (book *checkBook, broken []error, err error) {
	b := &checkBook{ofTier: map[string][]objectCheck{}, evaluators: map[kustomize.HealthCheckExpressions]*cel.StatusEvaluator{}}
	for i := range v.env.File.Verify.Checks {
		if err := b.configure(i, &v.env.File.Verify.Checks[i]); err != nil {
			broken = append(broken, err)
		}
	}
	for _, kind := range []string{flux.KustomizationKind, flux.HelmReleaseKind} {
		raw, err := v.objects(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range raw {
			broken = append(broken, b.addTier(o)...)
		}
	}
	for _, r := range v.base.Relations() {
		for _, t := range r.Triggers {
			if t.Ready == nil || slices.ContainsFunc(b.known, func(c objectCheck) bool { return c.isFor(t.GroupKind()) }) {
				continue
			}
			from := "what is known of " + r.System
			c, err := b.check(from, t.Ready.APIVersion, t.Kind, kustomize.HealthCheckExpressions{
				Current: t.Ready.Current, InProgress: t.Ready.InProgress, Failed: t.Ready.Failed,
			})
			if err != nil {
				return nil, nil, err // it is ours, and tested
			}
			b.known = append(b.known, c)
		}
	}
	return b, broken, nil
}

func (b *checkBook) configure(i int, h *config.HealthCheck) error {
	from := "verify.checks[" + strconv.Itoa(i) + "] of standup.yaml"
	c, err := b.check(from, h.APIVersion, h.Kind, kustomize.HealthCheckExpressions{Current: h.Current, InProgress: h.InProgress, Failed: h.Failed})
	if err != nil {
		return err
	}
	if c.group == "" && c.kind == "Secret" {
		return fmt.Errorf("%s is about Secrets, and what they hold is never read", from)
	}
	c.configured, c.namespace, c.name = true, h.Namespace, h.Name
	b.configured = append(b.configured, c)
	return nil
}

// addTier reads spec.healthCheckExprs.
func (b *checkBook) addTier(tier *unstructured.Unstructured) (broken []error) {
	list, _, _ := unstructured.NestedSlice(tier.Object, "spec", "healthCheckExprs")
	at := tierArg(objectRef(tier))
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(field string) string { s, _ := m[field].(string); return s }
		c, err := b.check("healthCheckExprs of "+objectRef(tier).String(), text("apiVersion"), text("kind"), kustomize.HealthCheckExpressions{
			Current: text("current"), InProgress: text("inProgress"), Failed: text("failed"),
		})
		if err != nil {
			broken = append(broken, err)
			continue
		}
		b.ofTier[at] = append(b.ofTier[at], c)
	}
	return broken
}

// check parses expressions, each text once: five hundred tiers tend to have the
// same.
func (b *checkBook) check(from, apiVersion, kind string, e kustomize.HealthCheckExpressions) (objectCheck, error) {
	evaluator := b.evaluators[e]
	if evaluator == nil {
		var err error
		if evaluator, err = cel.NewStatusEvaluator(&e); err != nil {
			return objectCheck{}, fmt.Errorf("%s cannot be used: %w", from, err)
		}
		b.evaluators[e] = evaluator
	}
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	return objectCheck{
		from: from, current: e.Current, group: gvk.Group, kind: gvk.Kind, version: gvk.Version, evaluator: evaluator,
	}, nil
}

// about are the checks that an object has to pass: those of standup.yaml, and
// those of its tiers or, where these have none, what is known of its kind. None
// looks into a Secret.
func (b *checkBook) about(p *piece) []objectCheck {
	if isSecret(p.ref.GroupVersionKind().GroupKind()) {
		return nil
	}
	var checks []objectCheck
	add := func(all []objectCheck) {
		for i := range all {
			if all[i].isAbout(p.ref) {
				checks = append(checks, all[i])
			}
		}
	}
	for _, n := range p.tiers {
		add(b.ofTier[tierArg(n.Ref)])
	}
	if len(checks) == 0 {
		add(b.known)
	}
	own := checks
	checks = nil
	add(b.configured)
	return append(checks, own...)
}

// versions are those that the checks of a kind are written for, those of
// standup.yaml first.
func (b *checkBook) versions(gk schema.GroupKind) []string {
	var all []string
	add := func(checks []objectCheck) {
		for i := range checks {
			if checks[i].isFor(gk) && !slices.Contains(all, checks[i].version) {
				all = append(all, checks[i].version)
			}
		}
	}
	add(b.configured)
	var ofTiers []objectCheck
	for _, checks := range b.ofTier {
		ofTiers = append(ofTiers, checks...)
	}
	slices.SortFunc(ofTiers, func(x, y objectCheck) int { return strings.Compare(x.version, y.version) })
	add(ofTiers)
	add(b.known)
	return all
}
