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
	kindForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	imageForm   = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// maxKinds bounds what the lists of a file stand for, all together: a list that
// is named a thousand times is there a thousand times.
const maxKinds = 100_000

// check finds what the types let through. lists are those that the file may
// name, ids the relations.
func (f *File) check(lists map[string][]Kind, ids map[string]bool) *flaw {
	for name, kinds := range f.Lists {
		if at, err := checkKinds(kinds, nil); err != nil {
			return &flaw{fmt.Sprintf("lists.%s[%d]", name, at), fmt.Errorf("list %s: %w", name, err)}
		}
	}
	c := checker{lists: lists, ids: ids}
	seen := map[string]bool{}
	for i := range f.Relations {
		r := &f.Relations[i]
		path := fmt.Sprintf("relations[%d]", i)
		switch {
		case !idForm.MatchString(r.ID):
			return &flaw{path + ".id", fmt.Errorf("relation %d: id %q is not lower-case words joined by -", i+1, r.ID)}
		case seen[r.ID]:
			return &flaw{path + ".id", fmt.Errorf("relation %s: it is there twice", r.ID)}
		}
		seen[r.ID] = true
		if field, err := c.relation(r); err != nil {
			return &flaw{path + "." + field, fmt.Errorf("relation %s: %w", r.ID, err)}
		}
	}
	for i := range f.Charts {
		chart := &f.Charts[i]
		path := fmt.Sprintf("charts[%d]", i)
		if !idForm.MatchString(strings.ReplaceAll(chart.Name, ".", "-")) {
			return &flaw{path + ".name", fmt.Errorf("chart %d: name %q is not one of a chart", i+1, chart.Name)}
		}
		field, err := c.chart(chart)
		for j := range i {
			if err == nil && chart.ambiguous(&f.Charts[j]) {
				field, err = "name", fmt.Errorf("it is there twice, for the same repository and all versions")
			}
		}
		if err != nil {
			return &flaw{path + "." + field, fmt.Errorf("chart %s: %w", chart.Name, err)}
		}
	}
	kinds := map[string]bool{}
	for i := range f.Effects {
		e := &f.Effects[i]
		path := fmt.Sprintf("effects[%d]", i)
		field, err := e.check()
		if gk := e.GroupKind().String(); err == nil && kinds[gk] {
			field, err = "kind", fmt.Errorf("it is there twice")
		}
		kinds[e.GroupKind().String()] = true
		if err != nil {
			return &flaw{path + "." + field, fmt.Errorf("effect of %s: %w", orNothing(e.Kind), err)}
		}
	}
	if c.kinds > maxKinds {
		return &flaw{"", fmt.Errorf("its lists stand for %d kinds, and the most that is read is %d", c.kinds, maxKinds)}
	}
	return nil
}

// checker is of one file.
type checker struct {
	lists map[string][]Kind
	ids   map[string]bool
	kinds int // so far, with lists counted for what they hold
}

// of checks kinds.
func (c *checker) of(kinds []Kind) error {
	for _, k := range kinds {
		c.kinds += 1 + len(c.lists[k.List])
	}
	if c.kinds > maxKinds {
		return fmt.Errorf("its lists stand for more than %d kinds, the most that is read", maxKinds)
	}
	_, err := checkKinds(kinds, c.lists)
	return err
}

// relation names the field that is wrong.
func (c *checker) relation(r *Relation) (string, error) {
	classes := []Class{CR, CRDynamic, Start, AutoCR, Job, Aggregated, Remote, Before, None}
	switch {
	case r.System == "":
		return "system", fmt.Errorf("system is empty")
	case !slices.Contains(classes, r.Class):
		return "class", fmt.Errorf("class %q is unknown: choose one of %v", r.Class, classes)
	case len(r.Triggers) == 0 && slices.Contains([]Class{CR, CRDynamic, AutoCR, Aggregated}, r.Class):
		return "triggers", fmt.Errorf("triggers are empty, which class %s must have", r.Class)
	case len(r.Triggers) > 0 && r.Class == Before:
		return "triggers", fmt.Errorf("triggers are set, which class %s cannot have: nothing sets it off", r.Class)
	case len(r.Creates) == 0 && len(r.Chain) == 0 && r.Class == CR:
		return "creates", fmt.Errorf("creates and chain are empty, of which class %s must have one", r.Class)
	case len(r.Creates) == 0 && r.Class == Before:
		return "creates", fmt.Errorf("creates is empty, which class %s must have", r.Class)
	case len(r.Creates) > 0 && r.Class == None:
		return "creates", fmt.Errorf("creates is set, which class %s cannot have: its installer registers everything", r.Class)
	case len(r.Derive) > 0 && r.Class != CRDynamic:
		return "derive", fmt.Errorf("derive is set, which only class %s may have", CRDynamic)
	}
	if field, err := known(r.Sources, r.Confidence); err != nil {
		return field, err
	}
	for _, field := range []struct {
		name  string
		kinds []Kind
	}{{"creates", r.Creates}, {"chain", r.Chain}, {"registers", r.Registers}} {
		if err := c.of(field.kinds); err != nil {
			return field.name, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	for i, t := range r.Triggers {
		if err := t.check(); err != nil {
			return fmt.Sprintf("triggers[%d]", i), fmt.Errorf("triggers: %w", err)
		}
	}
	for i, d := range r.Derive {
		if err := d.check(); err != nil {
			return fmt.Sprintf("derive[%d]", i), fmt.Errorf("derive: %w", err)
		}
	}
	if r.Operator != nil {
		for i, image := range r.Operator.Images {
			if !imageForm.MatchString(image) || repositoryOf(image) != image {
				return fmt.Sprintf("operator.images[%d]", i), fmt.Errorf("operator: image %q is not a repository without registry, tag and digest, as kubevirt/cdi-operator", image)
			}
		}
	}
	return "", nil
}

// known checks what says how something is known.
func known(sources []string, confidence Confidence) (string, error) {
	switch {
	case !slices.Contains([]Confidence{Run, Source, OldSource, Memory}, confidence):
		return "confidence", fmt.Errorf("confidence %q is unknown", confidence)
	case len(sources) == 0:
		return "sources", fmt.Errorf("sources are empty: say where it was read")
	}
	return "", nil
}

func (t Trigger) check() error {
	if err := (Kind{Group: t.Group, Kind: t.Kind, Plural: t.Plural, Scope: t.Scope}).check(nil); err != nil {
		return err
	}
	if t.Ready != nil && (t.Ready.Current == "" || !strings.HasPrefix(t.Ready.APIVersion, t.Group+"/")) {
		return fmt.Errorf("%s: ready needs current, and an apiVersion of group %s", t.Kind, t.Group)
	}
	return nil
}

// checkKinds also says which of them is wrong.
func checkKinds(kinds []Kind, lists map[string][]Kind) (int, error) {
	for i, k := range kinds {
		if err := k.check(lists); err != nil {
			return i, err
		}
	}
	return 0, nil
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
	case !kindForm.MatchString(k.Kind) || k.Kind == k.Plural: // a few are in lower case: postgresql
		return fmt.Errorf("group %s: kind %q is not the name of a kind", k.Group, k.Kind)
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
	for field, path := range map[string]string{"if": d.If, "scopePath": d.ScopePath} {
		if path != "" && !pathForm.MatchString(path) {
			return fmt.Errorf("%s: path %q is not names joined by dots", field, path)
		}
	}
	if d.Scope != "" && d.Scope != Cluster && d.Scope != Namespaced {
		return fmt.Errorf("scope %q is neither %s nor %s", d.Scope, Cluster, Namespaced)
	}
	return nil
}
