// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// kindCause is why a kind is not served, and what will become of it. text goes
// on from the names of the kinds.
type kindCause struct {
	rule      string
	severity  finding.Severity
	text, fix string
	createdBy string
	seen      []string
	// awaits is set where an operator decides: how it is belongs to the cause.
	awaits *knowledge.Relation
}

// cause is the first that explains why tier f lacks a kind. What comes by
// itself, because a tier that is applied first brings it, goes before what is
// in the way.
func (k *kindsLook) cause(f *build.Followed, d *crds.Diagnosis, m *crds.Missing) kindCause {
	for _, find := range []func(*build.Followed, *crds.Diagnosis, *crds.Missing) (kindCause, bool){
		k.byDefinition, k.byOtherTrigger, k.byDeadlock, k.byVersion, k.byStatus, k.byTrigger, k.byRelation, k.byStep, k.byRelease,
	} {
		if cause, ok := find(f, d, m); ok {
			return cause
		}
	}
	c := kindCause{
		rule: "kind-unknown", severity: finding.Error, createdBy: installer(m.Kind.GroupKind()),
		text: "is not served, and nothing that is known registers it: no tier builds its CRD",
		fix:  "add its CRD, or the HelmRelease that brings it, to a tier that these depend on",
	}
	if c.createdBy != "" {
		c.text = fmt.Sprintf("is not served: installing %s registers it, and no tier builds its CRD", c.createdBy)
	}
	return c
}

// from is the cause where another tier brings the kind, by its order.
func (k *kindsLook) from(f *build.Followed, by flux.Ref, how string) kindCause {
	switch {
	case k.earlier.than(f.Tier, by):
		return kindCause{
			rule: "kind-later", severity: finding.Info, createdBy: by.String(),
			text: fmt.Sprintf("is not served yet: it comes with %s%s", by, how), fix: "wait for that tier",
		}
	case k.earlier.than(by, f.Tier):
		return kindCause{
			rule: "kind-too-late", severity: finding.Error, createdBy: by.String(),
			text: fmt.Sprintf("is not served, and comes with %s%s, which is applied only after what needs it: it never is", by, how),
			fix:  "turn the edge round in git, or move what needs the kind to a later tier",
		}
	}
	return kindCause{
		rule: "kind-race", severity: finding.Warning, createdBy: by.String(),
		text: fmt.Sprintf("is not served yet: it comes with %s%s, and no edge says that this is applied first", by, how),
		fix:  fmt.Sprintf("add dependsOn: [{name: %s, namespace: %s}] in git; without it Flux fails, and succeeds at a retry", by.Name, by.Namespace),
	}
}

// best is the cause by the tier that is applied first of all that bring a kind.
func (k *kindsLook) best(f *build.Followed, by []built, how func(built) string) (kindCause, bool) {
	var found kindCause
	for _, o := range by {
		if bare(o.tier.Tier) == bare(f.Tier) {
			continue
		}
		c := k.from(f, o.tier.Tier, how(o))
		if found.rule == "" || rank(c.severity) > rank(found.severity) {
			found = c
		}
	}
	return found, found.rule != ""
}

func rank(s finding.Severity) int {
	return slices.Index([]finding.Severity{finding.Error, finding.Warning, finding.Info}, s)
}

// byDefinition: another tier builds the CRD.
func (k *kindsLook) byDefinition(f *build.Followed, _ *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	return k.best(f, k.defined[m.Kind], func(built) string { return "" })
}

// byOtherTrigger: a tier that is not applied after this one builds the trigger,
// so that there is no deadlock if this one builds it too.
func (k *kindsLook) byOtherTrigger(f *build.Followed, d *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	if len(live(d, m)) > 0 {
		return kindCause{}, false // it is applied already
	}
	c, ok := k.best(f, k.triggers(m), withTrigger)
	return c, ok && c.severity != finding.Error
}

// byDeadlock: the tier itself would apply the trigger, beside the kind.
func (k *kindsLook) byDeadlock(_ *build.Followed, d *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	if d.Verdict != crds.Deadlock {
		return kindCause{}, false
	}
	kept := slices.ContainsFunc(d.Kept(), func(t crds.Trigger) bool { return slices.Contains(t.Creates, m.Kind) })
	return kindCause{rule: ruleDeadlock}, kept
}

// byVersion: it is served, otherwise.
func (k *kindsLook) byVersion(_ *build.Followed, _ *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	return kindCause{
		rule: "kind-version", severity: finding.Error,
		text: fmt.Sprintf("is served as %s and not as %s", strings.Join(m.OtherVersions, ", "), m.Kind.Version),
		fix:  "write the manifest in a version that is served, or update the CRD: " + k.env.Command("standup", "crds"),
	}, len(m.OtherVersions) > 0
}

// byStatus: its CRD is there, and is not served.
func (k *kindsLook) byStatus(_ *build.Followed, _ *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	if k.world == nil {
		return kindCause{}, false
	}
	i := slices.IndexFunc(k.world.Definitions, func(d *wedge.Definition) bool { return d.Defines == m.Kind.GroupKind() })
	if i < 0 {
		return kindCause{}, false
	}
	d := k.world.Definitions[i]
	c := kindCause{rule: "kind-not-established", severity: finding.Error, fix: "see why: " + k.command("kubectl describe crd "+d.Ref.Name)}
	for _, condition := range d.Conditions {
		if (condition.Type == "NamesAccepted" || condition.Type == "Established") && condition.Status != metav1.ConditionTrue {
			c.text = fmt.Sprintf("is not served: %s is not %s: %s", d.Ref, condition.Type, strings.TrimSuffix(condition.Reason+": "+condition.Message, ": "))
			return c, true
		}
	}
	switch {
	case !d.Deleted.IsZero():
		c.text = fmt.Sprintf("is not served: %s is being deleted", d.Ref)
	case len(d.Conditions) == 0:
		c.text = fmt.Sprintf("is not served: the API server has not looked at %s yet", d.Ref)
	default:
		c.rule, c.severity = "kind-stale-discovery", finding.Warning
		c.text = fmt.Sprintf("is not listed by discovery yet, although %s is Established", d.Ref)
		c.fix = "wait a moment, then: " + k.env.Command("standup", "preflight")
	}
	return c, true
}

// live are the triggers of the kind that are on the cluster.
func live(d *crds.Diagnosis, m *crds.Missing) []crds.Trigger {
	return slices.DeleteFunc(slices.Clone(d.Triggers), func(t crds.Trigger) bool {
		return len(t.Live) == 0 || !slices.Contains(t.Creates, m.Kind)
	})
}

// byTrigger: the trigger is there and its operator is not done, or the trigger
// comes with a tier that is not applied first.
func (k *kindsLook) byTrigger(f *build.Followed, d *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	if on := live(d, m); len(on) > 0 {
		t := &on[0]
		return kindCause{
			rule: "kind-awaited", severity: finding.Warning, awaits: &t.Relation, createdBy: t.Relation.System,
			text: fmt.Sprintf("is not served yet: %s is on the cluster, and its operator has not created it", t.Live[0]),
			fix:  "make the operator run and wait, or see what it says of " + t.Live[0].String(),
		}, true
	}
	return k.best(f, k.triggers(m), withTrigger)
}

// byRelation: it is known who creates the kind, and that is not there.
func (k *kindsLook) byRelation(_ *build.Followed, _ *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	if len(m.CreatedBy) == 0 {
		return kindCause{}, false
	}
	r := &m.CreatedBy[0]
	c := kindCause{rule: "kind-untriggered", severity: finding.Error, awaits: r, createdBy: r.System}
	if len(r.Triggers) == 0 {
		c.rule, c.severity = "kind-awaited", finding.Warning
		c.text = fmt.Sprintf("is not served yet: %s registers it when it starts", r.System)
		c.fix = "make it run"
		return c, true
	}
	kind := r.Triggers[0].Kind
	c.text = fmt.Sprintf("is not served: %s creates it when it reconciles a %s, and there is none: neither on the cluster nor in any tier that was built", r.System, kind)
	c.fix = fmt.Sprintf("add a %s to a tier that these depend on", kind)
	return c, true
}

// byStep: standup.yaml names charts whose CRDs the step crds applies, and
// expects this one.
func (k *kindsLook) byStep(_ *build.Followed, _ *crds.Diagnosis, m *crds.Missing) (kindCause, bool) {
	file := k.env.File.CRDs
	plural, _ := meta.UnsafeGuessKindToResource(m.Kind)
	if len(file.FromCharts) == 0 || !slices.Contains(file.Expect, plural.GroupResource().String()) {
		return kindCause{}, false
	}
	return kindCause{
		rule: "kind-by-step", severity: finding.Info,
		text: "is not served yet; the step crds brings it, says " + k.env.file(), fix: k.env.Command("standup", "crds"),
	}, true
}

// byRelease: a HelmRelease that is not installed yet may bring it. Which CRDs a
// chart has is not known from here.
func (k *kindsLook) byRelease(f *build.Followed, d *crds.Diagnosis, _ *crds.Missing) (kindCause, bool) {
	before, beside := k.uninstalled(f)
	switch {
	case len(before) > 0:
		return kindCause{
			rule: "kind-later", severity: finding.Info, seen: shorten(before),
			text: "is not served yet; a HelmRelease that is installed before may bring it", fix: "wait for these releases",
		}, true
	case len(d.Bringers) > 0:
		return kindCause{
			rule: "kind-perhaps-deadlock", severity: finding.Error, createdBy: d.Bringers[0].String(),
			text: fmt.Sprintf("is not served; if %s brings it, this is a deadlock: both are in one stage of %s, of which nothing is applied", d.Bringers[0], f.Tier),
			fix:  fmt.Sprintf("move what uses the kind to a tier of its own that depends on %s, with wait: true there", f.Tier.Name),
		}, true
	case len(beside) > 0:
		return kindCause{
			rule: "kind-race", severity: finding.Warning, seen: shorten(beside),
			text: "is not served yet; a HelmRelease may bring it, and no edge says that it is installed first",
			fix:  "add the edge in git; without it Flux fails, and succeeds at a retry",
		}, true
	}
	return kindCause{}, false
}

// uninstalled are the HelmReleases that are not Ready: those of tiers that are
// applied before, and those of others. What their charts bring is not known.
func (k *kindsLook) uninstalled(f *build.Followed) (before, others []string) {
	for at, objects := range k.b.objects {
		if at.group != flux.HelmGroup || at.kind != flux.HelmReleaseKind {
			continue
		}
		n := k.graph.Node(flux.Ref{Kind: at.kind, Namespace: at.namespace, Name: at.name})
		by := objects[0]
		switch {
		case n != nil && n.State == tiers.Ready:
		case k.earlier.than(f.Tier, by.tier.Tier):
			before = append(before, by.Ref().String())
		case bare(by.tier.Tier) != bare(f.Tier):
			others = append(others, by.Ref().String())
		}
	}
	slices.Sort(before)
	slices.Sort(others)
	return before, others
}

// undecided is for a kind whose group cannot be discovered.
func (k *kindsLook) undecided(gvk schema.GroupVersionKind) kindCause {
	name := gvk.Version + "." + gvk.Group
	c := kindCause{
		rule: "kind-undecided", severity: finding.Error,
		text: fmt.Sprintf("may be served or not: discovery of %s fails", gvk.GroupVersion()),
		fix:  "make the aggregated API answer: " + k.env.Command("standup", "unwedge apiservice/"+name),
	}
	if k.world == nil {
		return c
	}
	for _, a := range k.world.APIServices {
		if a.GroupVersion == gvk.GroupVersion() && a.Available != nil && a.Available.Status != metav1.ConditionTrue {
			c.seen = append(c.seen, fmt.Sprintf("%s is not Available: %s: %s", a.Ref, a.Available.Reason, a.Available.Message))
		}
	}
	return c
}
