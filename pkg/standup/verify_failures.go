// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// sorted are the pieces, by kind and name.
func (v *verify) sorted() []*piece {
	return slices.SortedFunc(maps.Values(v.pieces), func(a, b *piece) int {
		return cmp.Or(strings.Compare(a.ref.Kind, b.ref.Kind), strings.Compare(a.ref.Group(), b.ref.Group()), a.ref.Compare(b.ref))
	})
}

// failures are one finding for all objects of a tier that are of one kind and
// fail alike.
func (v *verify) failures() []finding.Finding {
	type alike struct {
		class class
		tier  flux.Ref
		kind  schema.GroupKind
	}
	var order []alike
	at := map[alike][]*piece{}
	for _, p := range v.sorted() {
		if p.class < late {
			continue
		}
		key := alike{p.class, p.tiers[0].Ref, p.ref.GroupVersionKind().GroupKind()}
		if at[key] == nil {
			order = append(order, key)
		}
		at[key] = append(at[key], p)
	}
	slices.SortStableFunc(order, func(a, b alike) int { return cmp.Or(cmp.Compare(b.class, a.class), a.tier.Compare(b.tier)) })
	var all []finding.Finding
	for _, key := range order {
		all = append(all, v.failure(at[key]))
	}
	return all
}

func (v *verify) failure(pieces []*piece) finding.Finding {
	p := pieces[0]
	tier := p.tiers[0].Ref
	f := finding.Finding{Severity: finding.Error, Tier: &tier}
	refs := make([]flux.Ref, len(pieces))
	for i := range pieces {
		refs[i] = pieces[i].ref
	}
	what, is := refs[0].String(), "is"
	if len(pieces) == 1 {
		f.Object = &refs[0]
	} else {
		what, is = fmt.Sprintf("%d %s", len(pieces), p.ref.Kind), "are"
		f.Causes = append(f.Causes, causes(pieces)...)
	}
	applied := fmt.Sprintf("which %s has applied", tier)
	tail := ""
	if len(pieces) == 1 && p.why != "" {
		tail = ": " + firstLine(p.why)
	}
	see := "see why: " + v.describe(&p.ref)
	switch p.class {
	case unservedKind:
		v.left.unserved = true
		f.Rule = "kind-not-served"
		f.Missing = []finding.Missing{{APIVersion: p.ref.APIVersion, Kind: p.ref.Kind, CreatedBy: v.creator(&p.ref)}}
		f.Message = fmt.Sprintf("%s, %s, %s of a kind that the cluster does not serve now", what, applied, is)
		f.Fix = v.env.Command("standup", "crds")
		if f.Missing[0].CreatedBy == "" {
			f.Fix = "let Flux apply again what holds its CRD; where that is a chart of crds.fromCharts: " + f.Fix
		}
	case absent:
		f.Rule = "object-missing"
		f.Message = fmt.Sprintf("%s, %s, %s not there", what, applied, is)
		f.Fix = "let Flux apply it again: " + v.reconcile(tier)
		if p.tiers[0].Suspended { // Flux would refuse to
			f.Fix = "let Flux apply it again: " + v.env.Command("standup", "resume")
		}
	case goingAway:
		v.left.wedged = true
		f.Rule = "object-terminating"
		f.Message = fmt.Sprintf("%s, %s, %s being deleted", what, applied, is)
		if len(pieces) == 1 {
			f.Message = fmt.Sprintf("%s, %s, %s", what, applied, firstLine(p.why))
		}
		f.Fix = v.env.Command("unwedge", "")
	case refuted:
		f.Rule = "check-false"
		f.Message = fmt.Sprintf("%s, %s, %s not well%s", what, applied, is, tail)
		f.Fix = see
	case broken:
		f.Rule = "object-failed"
		f.Message = fmt.Sprintf("%s, %s, %s failed%s", what, applied, hasHave(len(pieces)), tail)
		f.Fix = see
	default:
		v.left.lateObjects = true
		f.Rule, f.Severity = "object-not-ready", finding.Warning
		f.Message = fmt.Sprintf("%s, %s, %s not ready yet%s", what, applied, is, tail)
		f.Fix = "it may only take time; " + see
	}
	return f
}

func hasHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// causes names a few of the objects, each with what is the matter.
func causes(pieces []*piece) []string {
	const few = 5
	var out []string
	for i, p := range pieces {
		if i == few && len(pieces) > few+1 {
			return append(out, fmt.Sprintf("and %d more", len(pieces)-few))
		}
		text := p.ref.String()
		if p.why != "" {
			text += ": " + firstLine(p.why)
		}
		out = append(out, text)
	}
	return out
}

// describe is a command that looks at an object of the same cluster.
func (v *verify) describe(r *flux.Ref) string {
	what := strings.ToLower(r.Kind)
	if g := r.Group(); g != "" {
		what += "." + g
	}
	text := "kubectl describe " + what + " " + r.Name
	if r.Namespace != "" {
		text += " -n " + r.Namespace
	}
	return strings.TrimSpace(text + " " + v.env.KubectlArgs)
}

// reconcile is the command of the Flux CLI that applies a tier once more. A
// release that has not changed is installed again only when forced.
func (v *verify) reconcile(tier flux.Ref) string {
	text := fmt.Sprintf("flux reconcile %s %s -n %s", strings.ToLower(tier.Kind), tier.Name, tier.Namespace)
	if tier.Kind == flux.HelmReleaseKind {
		text += " --force"
	}
	return strings.TrimSpace(text + " " + v.env.KubectlArgs)
}

func (v *verify) creator(r *flux.Ref) string {
	for _, relation := range v.base.Creators(r.GroupVersionKind().GroupKind()) {
		return relation.System
	}
	return ""
}

func (v *verify) blindFinding(b blind) finding.Finding {
	return finding.Finding{
		Rule: "kind-unseen", Severity: finding.Warning,
		Message: fmt.Sprintf("%s could not be looked at: %s", counted(len(b.kind.pieces), b.kind.Kind), firstLine(b.why)),
		Fix:     "that nothing is known of them is no health: run it again as somebody who may list them in all namespaces",
	}
}

func counted(n int, kind string) string { return fmt.Sprintf("%d %s", n, kind) }
