// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// coldStart finds the tiers that wait for kinds which would be created by what
// waits, unapplied, beside them (CRD-06). One whose kinds may come from a
// HelmRelease that is kept back beside them is said too, and left alone: what
// a chart brings is not known from here (CRD-01).
func coldStart(w *World) []Verdict {
	var all []Verdict
	for _, d := range w.Diagnoses {
		n := w.Graph.Node(d.Tier)
		switch {
		case n == nil:
		case d.Verdict == crds.Deadlock:
			all = append(all, w.deadlock(d, n))
		case d.Verdict == crds.Heals && len(d.Triggers) == 0 && len(d.Bringers) > 0:
			all = append(all, w.perhapsDeadlock(d, n))
		}
	}
	return all
}

func (w *World) deadlock(d *crds.Diagnosis, n *tiers.Node) Verdict {
	kept := d.Kept()
	v := Verdict{
		Cause: ColdStart, Object: n.Ref, State: "deadlock", ResolvesItself: Never,
		Summary: fmt.Sprintf("%s is never applied: %s", n.Ref, strings.TrimPrefix(d.Why, "deadlock: ")),
		Why: "kustomize-controller dry-runs all of a stage before it applies any of it, and an unknown kind fails the dry run: " +
			"each retry ends as the last one did",
	}
	w.missing(&v, d)
	names := make([]string, 0, len(kept))
	for i := range kept {
		names = append(names, kept[i].String())
	}
	v.Repair = fmt.Sprintf("for good: move %s, and what needs them, to a tier of their own that depends on %s", kept[0].Kinds(), n.Ref.Name)
	if v.Refused = refusal(d, kept); v.Refused != "" {
		return v
	}
	v.Actions = []Action{{
		Verb: Apply, Object: kept[0].Object.Ref(),
		Description: fmt.Sprintf("apply %s, and nothing else, as Flux would; wait until %s; nudge %s. Nothing is deleted",
			strings.Join(names, ", "), served(kept), n.Ref),
		step:  breakStep{d},
		while: []condition{{n.Ref, []string{"metadata", "generation"}, n.Generation}},
	}}
	return v
}

func served(triggers []crds.Trigger) string {
	kinds := make([]string, 0, len(triggers))
	for i := range triggers {
		kinds = append(kinds, triggers[i].Kinds())
	}
	return strings.Join(kinds, ", ") + " can be used"
}

// refusal is why applying the triggers cannot work yet. The breaker looks
// again, at more than is known here.
func refusal(d *crds.Diagnosis, kept []crds.Trigger) string {
	if d.Rejected != nil { // its text may hold a value of a Secret
		return fmt.Sprintf("Flux would not apply %s if every kind were served: it rejects another object of %s", kept[0].Object.Ref(), d.Tier)
	}
	for i := range kept {
		switch t := &kept[i]; {
		case t.Object.Encrypted:
			return fmt.Sprintf("%s is not applied: it holds encrypted values, which only Flux can decrypt", t.Object.Ref())
		case !t.Served:
			return fmt.Sprintf("%s is not applied: its own CRD is not Established; the tier that installs %s has not run yet: see `kubectl tiers`", t.Object.Ref(), t.Relation.System)
		}
	}
	return ""
}

func (w *World) perhapsDeadlock(d *crds.Diagnosis, n *tiers.Node) Verdict {
	v := Verdict{
		Cause: ColdStart, Object: n.Ref, State: "perhaps-deadlock", ResolvesItself: When,
		ResolvesWhen: fmt.Sprintf("as soon as something other than %s brings what %s lacks", d.Bringers[0], n.Ref),
		Summary:      fmt.Sprintf("%s is not applied: %s", n.Ref, d.Why),
		Why:          "Flux applies nothing of a stage in which one kind is unknown, and what may bring the kind is in that stage",
		Repair: fmt.Sprintf("if %s brings it: in git, move what uses %s to a tier of its own that depends on %s, with wait: true there",
			d.Bringers[0], missingKinds(d), n.Ref.Name),
	}
	w.missing(&v, d)
	for _, b := range d.Bringers {
		v.evidence(b, "applied", "no: kept back with the rest of the stage")
	}
	return v
}

// missing is the evidence of a diagnosis: every kind that the tier lacks, what
// creates it, and how its operator is.
func (w *World) missing(v *Verdict, d *crds.Diagnosis) {
	for _, m := range d.Missing {
		of := v.Object
		if len(m.Objects) > 0 {
			of = m.Objects[0]
		}
		value := fmt.Sprintf("%s %s is not served", m.Kind.GroupVersion(), m.Kind.Kind)
		if len(m.OtherVersions) > 0 {
			value += "; it is as " + strings.Join(m.OtherVersions, ", ")
		}
		if n := len(m.Objects); n > 1 {
			value += fmt.Sprintf("; %d objects use it", n)
		}
		v.evidence(of, "kind", value)
	}
	told := map[string]bool{}
	for i := range d.Triggers {
		t := &d.Triggers[i]
		of, state := v.Object, fmt.Sprintf("a %s, of which there is none: neither on the cluster nor in this tier", t.Kind.Kind)
		switch {
		case len(t.Live) > 0:
			of, state = t.Live[0], "on the cluster; the kinds are not there yet"
		case t.Object != nil && t.Kept:
			of, state = t.Object.Ref(), fmt.Sprintf("kept back in stage %d, and not on the cluster", t.Object.Stage)
		case t.Object != nil:
			of, state = t.Object.Ref(), "not on the cluster"
		}
		v.evidence(of, "creates "+t.Kinds(), state)
		if o, known := w.Operators[t.Relation.ID]; known && !told[t.Relation.ID] {
			told[t.Relation.ID] = true
			of := v.Object // that waits for it
			if o.Found() {
				of = o.Deployment
			}
			v.evidence(of, "operator", o.Sentence())
		}
	}
	v.evidence(v.Object, "Ready", firstLine(readyMessage(w.Graph.Node(v.Object))))
}

func missingKinds(d *crds.Diagnosis) string {
	names := make([]string, 0, len(d.Missing))
	for _, m := range d.Missing {
		names = append(names, m.Kind.Kind)
	}
	return strings.Join(names, ", ")
}
