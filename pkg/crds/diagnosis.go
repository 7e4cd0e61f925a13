// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Verdict is what will become of a tier that lacks kinds.
type Verdict string

// The verdicts.
const (
	// Deadlock: what would create the kinds waits, unapplied, for the kinds.
	Deadlock Verdict = "deadlock"
	// Heals: a retry will find the kinds, or nothing shows that none will.
	Heals Verdict = "heals"
	// NowServed: the kinds are there now; the controller has only not looked.
	NowServed Verdict = "served"
)

// Diagnosis is why a tier lacks kinds, from what it builds, what the cluster
// serves and what is known of who creates which kind.
type Diagnosis struct {
	Tier    flux.Ref
	Verdict Verdict
	// Why is one sentence.
	Why string
	// Missing is every kind of the build that is not served. The controller
	// itself names one of them at each attempt, and not always the same.
	Missing []Missing
	// Undecided are the kinds of which discovery could not tell whether they
	// are served: an aggregated API does not answer.
	Undecided []schema.GroupVersionKind
	// Triggers are what creates the missing kinds.
	Triggers []Trigger
	// Kept back beside the missing kinds are HelmReleases and Kustomizations
	// that are not on the cluster: what they would bring is not known.
	Bringers []flux.Ref

	// Rejected is why Flux would apply none of the tier even if every kind
	// were served; nil when it would.
	Rejected error

	served []flux.Resource   // for the nudge
	redact func(error) error // takes the values of Secrets out of an error
}

// Missing is one kind that a tier applies and that the cluster does not serve.
type Missing struct {
	Kind    schema.GroupVersionKind
	Objects []flux.Ref
	// OtherVersions are those in which the kind is served.
	OtherVersions []string
	// CreatedBy are the systems that are known to create it.
	CreatedBy []knowledge.Relation
}

// Trigger is the resource whose reconciliation creates missing kinds.
type Trigger struct {
	Relation knowledge.Relation
	Kind     schema.GroupKind
	// Creates are those of the missing kinds that it creates.
	Creates []schema.GroupVersionKind
	// Object is the trigger that this very tier builds; nil when it builds none.
	Object *build.Object
	// Kept is true when Object is in a stage that the missing kinds keep back.
	Kept bool
	// Served is true when the trigger's own kind is served: its CRD is
	// Established and in discovery.
	Served bool
	// Live are the resources of the trigger's kind on the cluster that create
	// the same kinds.
	Live []flux.Ref
}

// String names the trigger: the resource where there is one, else its kind.
func (t *Trigger) String() string {
	switch {
	case t.Object != nil:
		return t.Object.Ref().String()
	case len(t.Live) > 0:
		return t.Live[0].String()
	}
	return t.Kind.String()
}

// judge compares what a tier builds with what is served. It is pure; live
// tells which resources of a kind exist on the cluster.
func judge(tier flux.Ref, objects []build.Object, served *Served, book *knowledge.Base, live func(schema.GroupKind) []unstructured.Unstructured) *Diagnosis {
	d := &Diagnosis{Tier: tier}
	d.findMissing(objects, served, book)
	switch {
	case len(d.Missing) > 0:
	case len(d.Undecided) > 0:
		d.Verdict = Heals
		d.Why = fmt.Sprintf("whether %s is served cannot be said: discovery of its group fails", d.Undecided[0].GroupVersion())
		return d
	default:
		d.Verdict = NowServed
		d.Why = "every kind that it builds is served now; the controller has only not looked again"
		return d
	}
	first := build.StageRest // the first stage that a missing kind stops
	for _, m := range d.Missing {
		for _, o := range objects {
			if o.GroupVersionKind() == m.Kind {
				first = min(first, o.Stage)
			}
		}
	}
	d.findTriggers(objects, first, served, live)
	d.findBringers(objects, first, live)
	d.conclude()
	return d
}

func (d *Diagnosis) findMissing(objects []build.Object, served *Served, book *knowledge.Base) {
	own := definedBy(objects)
	at := map[schema.GroupVersionKind]int{}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		if _, ok := served.Resource(gvk); ok || o.Ignored || own[gvk] {
			continue
		}
		if served.Unknown(gvk.GroupVersion()) != nil {
			if !slices.Contains(d.Undecided, gvk) {
				d.Undecided = append(d.Undecided, gvk)
			}
			continue
		}
		i, seen := at[gvk]
		if !seen {
			i = len(d.Missing)
			at[gvk] = i
			m := Missing{Kind: gvk, OtherVersions: served.Versions(gvk.GroupKind())}
			if len(m.OtherVersions) == 0 { // else nobody has to create it
				m.CreatedBy = book.Creators(gvk.GroupKind())
			}
			d.Missing = append(d.Missing, m)
		}
		d.Missing[i].Objects = append(d.Missing[i].Objects, o.Ref())
	}
	slices.SortFunc(d.Missing, func(a, b Missing) int { return strings.Compare(a.Kind.String(), b.Kind.String()) })
}

// definedBy are the kinds of the CRDs that the tier itself builds: they are
// applied, and waited for, before anything that uses them is looked at.
func definedBy(objects []build.Object) map[schema.GroupVersionKind]bool {
	own := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" || o.Ignored {
			continue
		}
		for _, kind := range knowledge.DefinitionOf(o.Unstructured).Kinds() {
			own[kind] = true
		}
	}
	return own
}

// findTriggers looks for what creates the missing kinds: in the tier's own
// build, and on the cluster.
func (d *Diagnosis) findTriggers(objects []build.Object, first int, served *Served, live func(schema.GroupKind) []unstructured.Unstructured) {
	for _, r := range d.relations() {
		for _, k := range r.Triggers {
			t := Trigger{Relation: r, Kind: k.GroupKind(), Served: len(served.Versions(k.GroupKind())) > 0}
			onCluster := live(k.GroupKind())
			built := false
			for i := range objects {
				o := &objects[i]
				if o.GroupVersionKind().GroupKind() != t.Kind || o.Ignored {
					continue
				}
				if creates := d.createdFrom(r, o.Unstructured); len(creates) > 0 {
					built = true
					mine := t
					mine.Object, mine.Kept, mine.Creates = o, o.Stage >= first, creates
					mine.Live = d.creators(r, onCluster, creates)
					d.Triggers = append(d.Triggers, mine)
				}
			}
			if !built {
				t.Creates = d.createdBy(r.ID)
				t.Live = d.creators(r, onCluster, t.Creates)
				d.Triggers = append(d.Triggers, t)
			}
		}
	}
}

// findBringers looks for what is kept back and might register any kind.
func (d *Diagnosis) findBringers(objects []build.Object, first int, live func(schema.GroupKind) []unstructured.Unstructured) {
	there := map[schema.GroupKind]map[string]bool{}
	for _, o := range objects {
		gk := o.GroupVersionKind().GroupKind()
		bringer := gk.Group == flux.HelmGroup && gk.Kind == flux.HelmReleaseKind ||
			gk.Group == flux.KustomizeGroup && gk.Kind == flux.KustomizationKind
		if !bringer || o.Ignored || o.Stage < first {
			continue
		}
		if there[gk] == nil {
			there[gk] = map[string]bool{}
			for _, l := range live(gk) {
				there[gk][l.GetNamespace()+"/"+l.GetName()] = true
			}
		}
		if !there[gk][o.GetNamespace()+"/"+o.GetName()] {
			d.Bringers = append(d.Bringers, o.Ref())
		}
	}
}

// creators are those of the live resources that create any of the kinds: one
// ConstraintTemplate is no reason to expect the kind of another.
func (d *Diagnosis) creators(r knowledge.Relation, live []unstructured.Unstructured, kinds []schema.GroupVersionKind) []flux.Ref {
	var refs []flux.Ref
	for i := range live {
		o := &live[i]
		creates := d.createdFrom(r, o)
		if slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return slices.Contains(creates, k) }) {
			refs = append(refs, flux.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	return refs
}

// relations are those by which missing kinds come to be from a resource, each
// once. Where an operator makes them when it starts, there is none to apply.
func (d *Diagnosis) relations() []knowledge.Relation {
	var out []knowledge.Relation
	for _, m := range d.Missing {
		for _, r := range m.CreatedBy {
			known := slices.ContainsFunc(out, func(o knowledge.Relation) bool { return o.ID == r.ID })
			if !known && (r.Class == knowledge.CR || r.Class == knowledge.CRDynamic) {
				out = append(out, r)
			}
		}
	}
	return out
}

// createdFrom are those of the missing kinds that this very object creates.
func (d *Diagnosis) createdFrom(r knowledge.Relation, o *unstructured.Unstructured) []schema.GroupVersionKind {
	kinds, err := r.Derived(o)
	if err != nil {
		return nil // its controller could not make a CRD of it either
	}
	var out []schema.GroupVersionKind
	for _, m := range d.Missing {
		if slices.ContainsFunc(kinds, func(k knowledge.Kind) bool { return k.GroupKind() == m.Kind.GroupKind() }) {
			out = append(out, m.Kind)
		}
	}
	return out
}

// createdBy are the missing kinds of one relation.
func (d *Diagnosis) createdBy(relation string) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, m := range d.Missing {
		if slices.ContainsFunc(m.CreatedBy, func(r knowledge.Relation) bool { return r.ID == relation }) {
			out = append(out, m.Kind)
		}
	}
	return out
}

// conclude is the rule: a missing kind is a deadlock only when its trigger is
// in a stage of the same tier that the kind keeps back, and is not on the
// cluster. In every other case something else may still create it.
func (d *Diagnosis) conclude() {
	if kept := d.Kept(); len(kept) > 0 {
		t := kept[0]
		d.Verdict = Deadlock
		d.Why = fmt.Sprintf("deadlock: %s would create %s, but both are in %s, and Flux applies nothing of a stage "+
			"in which one kind is unknown: no retry heals this", t.Object.Ref(), kindNames(t.Creates), d.Tier.Name)
		return
	}
	d.Verdict = Heals
	if len(d.Triggers) == 0 {
		d.Why = d.untriggered()
		return
	}
	switch t := d.Triggers[0]; {
	case len(t.Live) > 0:
		d.Why = fmt.Sprintf("%s is on the cluster, but its operator has not created %s yet", t.Live[0], kindNames(t.Creates))
	default:
		d.Why = fmt.Sprintf("%s creates %s when it reconciles a %s, and there is none: neither on the cluster nor in this tier",
			t.Relation.System, kindNames(t.Creates), t.Kind.Kind)
	}
}

// untriggered says what is known of kinds that no resource is known to create.
func (d *Diagnosis) untriggered() string {
	var all []schema.GroupVersionKind
	for _, m := range d.Missing {
		if len(m.OtherVersions) > 0 {
			return fmt.Sprintf("%s is served as %s and not as %s: change the manifest, or update the CRD",
				m.Kind.Kind, finding.And(m.OtherVersions), m.Kind.Version)
		}
		all = append(all, m.Kind)
	}
	if len(d.Bringers) > 0 {
		return fmt.Sprintf("%s is not served; if %s brings it, this is a deadlock: it is in the same stage of %s, which is not applied either",
			kindNames(all), d.Bringers[0], d.Tier.Name)
	}
	return "nothing that is known creates " + kindNames(all) + "; a retry heals it once something does"
}

func kindNames(kinds []schema.GroupVersionKind) string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	return finding.And(names)
}

// Kept are the triggers that a deadlock keeps from being applied.
func (d *Diagnosis) Kept() []Trigger {
	return slices.DeleteFunc(slices.Clone(d.Triggers), func(t Trigger) bool { return !t.Kept || len(t.Live) > 0 })
}

// Applied are the triggers of this tier that are on the cluster already, and
// whose operator has not created the kinds yet.
func (d *Diagnosis) Applied() []Trigger {
	return slices.DeleteFunc(slices.Clone(d.Triggers), func(t Trigger) bool { return t.Object == nil || len(t.Live) == 0 })
}

// definitions are the CRDs of the missing kinds that a trigger creates.
func (t *Trigger) definitions() []string {
	var names []string
	kinds, err := t.Relation.Derived(t.Object.Unstructured)
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		if slices.ContainsFunc(t.Creates, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == k.GroupKind() }) {
			names = append(names, k.CRD())
		}
	}
	return names
}

// Report lists the missing kinds as findings do.
func (d *Diagnosis) Report() []finding.Missing {
	var out []finding.Missing
	for _, m := range d.Missing {
		r := finding.Missing{APIVersion: m.Kind.GroupVersion().String(), Kind: m.Kind.Kind}
		if len(m.CreatedBy) > 0 && len(m.CreatedBy[0].Triggers) > 0 {
			r.CreatedBy = fmt.Sprintf("%s, when it reconciles a %s", m.CreatedBy[0].System, m.CreatedBy[0].Triggers[0].Kind)
		}
		out = append(out, r)
	}
	return out
}

// Kinds names the missing kinds that the trigger creates.
func (t *Trigger) Kinds() string { return kindNames(t.Creates) }
