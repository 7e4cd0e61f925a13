// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	idForm      = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	releaseForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	pathForm    = regexp.MustCompile(`^[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$`)
)

// check finds what the types let through.
func (f *File) check() error {
	for name, kinds := range f.Lists {
		for _, k := range kinds {
			if err := k.check(nil); err != nil {
				return fmt.Errorf("list %s: %w", name, err)
			}
		}
	}
	seen := map[string]bool{}
	for i, r := range f.Relations {
		if !idForm.MatchString(r.ID) {
			return fmt.Errorf("relation %d: id %q is not lower-case words joined by -", i+1, r.ID)
		}
		if seen[r.ID] {
			return fmt.Errorf("relation %s: it is there twice", r.ID)
		}
		seen[r.ID] = true
		if err := r.check(f.Lists); err != nil {
			return fmt.Errorf("relation %s: %w", r.ID, err)
		}
	}
	return nil
}

func (r *Relation) check(lists map[string][]Kind) error {
	switch {
	case r.System == "":
		return fmt.Errorf("system is empty")
	case !slices.Contains([]Class{CR, CRDynamic, Start, AutoCR, Job, Aggregated, Remote, None}, r.Class):
		return fmt.Errorf("class %q is unknown", r.Class)
	case !slices.Contains([]Confidence{Run, Source, OldSource, Memory}, r.Confidence):
		return fmt.Errorf("confidence %q is unknown", r.Confidence)
	case len(r.Sources) == 0:
		return fmt.Errorf("sources are empty: say where it was read")
	case len(r.Triggers) == 0 && slices.Contains([]Class{CR, CRDynamic, AutoCR, Aggregated}, r.Class):
		return fmt.Errorf("triggers are empty, which class %s must have", r.Class)
	case len(r.Creates) == 0 && len(r.Chain) == 0 && r.Class == CR:
		return fmt.Errorf("creates and chain are empty, of which class %s must have one", r.Class)
	case len(r.Derive) > 0 && r.Class != CRDynamic:
		return fmt.Errorf("derive is set, which only class %s may have", CRDynamic)
	}
	for field, kinds := range map[string][]Kind{"creates": r.Creates, "chain": r.Chain, "registers": r.Registers} {
		for _, k := range kinds {
			if err := k.check(lists); err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	for _, t := range r.Triggers {
		if err := (Kind{Group: t.Group, Kind: t.Kind, Plural: t.Plural, Scope: t.Scope}).check(nil); err != nil {
			return fmt.Errorf("triggers: %w", err)
		}
		if t.Ready != nil && (t.Ready.Current == "" || !strings.HasPrefix(t.Ready.APIVersion, t.Group+"/")) {
			return fmt.Errorf("triggers: %s: ready needs current, and an apiVersion of group %s", t.Kind, t.Group)
		}
	}
	for _, d := range r.Derive {
		if err := d.check(); err != nil {
			return fmt.Errorf("derive: %w", err)
		}
	}
	return nil
}

// check is of one kind. lists are those that it may name; nil when it may name
// none.
func (k Kind) check(lists map[string][]Kind) error {
	if k.List != "" {
		if _, known := lists[k.List]; !known {
			return fmt.Errorf("list %s: there is no list of that name here", k.List)
		}
		if k.Group+k.Kind+k.Plural+string(k.Scope)+k.Since+k.Until+k.When != "" || len(k.Versions) > 0 {
			return fmt.Errorf("list %s: nothing else may be set beside a list", k.List)
		}
		return nil
	}
	switch {
	case len(validation.IsDNS1123Subdomain(k.Group)) > 0 || !strings.Contains(k.Group, "."):
		return fmt.Errorf("kind %q: group %q is not one of a CRD", k.Kind, k.Group)
	case k.Kind == "" || strings.ToUpper(k.Kind[:1]) != k.Kind[:1]:
		return fmt.Errorf("group %s: kind %q does not begin with a capital letter", k.Group, k.Kind)
	case len(validation.IsDNS1035Label(k.Plural)) > 0:
		return fmt.Errorf("kind %s: plural %q is not the name of a resource", k.Kind, k.Plural)
	case k.Scope != Cluster && k.Scope != Namespaced:
		return fmt.Errorf("kind %s: scope %q is neither %s nor %s", k.Kind, k.Scope, Cluster, Namespaced)
	}
	for field, release := range map[string]string{"since": k.Since, "until": k.Until} {
		if release != "" && !releaseForm.MatchString(release) {
			return fmt.Errorf("kind %s: %s %q is not a release, as v1.2.3", k.Kind, field, release)
		}
	}
	return nil
}

func (d Derivation) check() error {
	for field, v := range map[string]Value{"group": d.Group, "kind": d.Kind, "plural": d.Plural} {
		switch {
		case (v.Constant == "") == (v.Path == ""):
			return fmt.Errorf("%s: one of constant and path must be set", field)
		case v.Path != "" && !pathForm.MatchString(v.Path):
			return fmt.Errorf("%s: path %q is not names joined by dots", field, v.Path)
		}
	}
	if d.If != "" && !pathForm.MatchString(d.If) {
		return fmt.Errorf("if: path %q is not names joined by dots", d.If)
	}
	return nil
}
