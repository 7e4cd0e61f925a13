// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// TestOneTruth: whoever names a kind gives it the same plural and scope.
func TestOneTruth(t *testing.T) {
	type form struct {
		plural string
		scope  knowledge.Scope
		by     string
	}
	known := map[schema.GroupKind]form{}
	crds := map[string]schema.GroupKind{}
	enter := func(by string, kinds ...knowledge.Kind) {
		for _, k := range kinds {
			gk := k.GroupKind()
			if other, seen := known[gk]; seen && (other.plural != k.Plural || other.scope != k.Scope) {
				t.Errorf("%s of %s: %s %s, and %s %s in %s", gk, by, k.Plural, k.Scope, other.plural, other.scope, other.by)
			}
			known[gk] = form{k.Plural, k.Scope, by}
			if other, seen := crds[k.CRD()]; seen && other != gk {
				t.Errorf("%s is the CRD of %s and of %s", k.CRD(), other, gk)
			}
			crds[k.CRD()] = gk
		}
	}
	base := builtin(t)
	for _, r := range base.Relations() {
		for _, kinds := range [][]knowledge.Kind{r.Creates, r.Chain, r.Registers} {
			enter(r.ID, kinds...)
		}
		for _, trigger := range r.Triggers {
			enter(r.ID, knowledge.Kind{Group: trigger.Group, Kind: trigger.Kind, Plural: trigger.Plural, Scope: trigger.Scope})
		}
	}
	for _, c := range base.Charts() {
		enter(c.Name, c.Registers...)
		for _, p := range c.Parts {
			enter(c.Name, p.Registers...)
		}
	}
	if len(known) < 400 {
		t.Errorf("only %d kinds are known", len(known))
	}
}

// TestRelationsAreWhole: what others rely on is there.
func TestRelationsAreWhole(t *testing.T) {
	base := builtin(t)
	for _, r := range base.Relations() {
		// Whoever looks for the operator on a cluster selects by its labels.
		if r.Operator != nil && len(r.Operator.Labels) == 0 {
			t.Errorf("%s: its operator has no labels", r.ID)
		}
		switch {
		case r.Class == knowledge.None || r.Class == knowledge.Before || r.Class == knowledge.Job || r.Confidence == knowledge.Memory:
		case r.Operator == nil:
			t.Errorf("%s: it has no operator", r.ID)
		case len(r.Operator.Images) == 0 && r.ID != "config-connector": // the source names none
			t.Errorf("%s: its operator has no images", r.ID)
		}
		for _, k := range r.Registers {
			if r.HasTrigger(k.GroupKind()) {
				t.Errorf("%s registers %s, its trigger: that goes without saying", r.ID, k.GroupKind())
			}
			if slices.ContainsFunc(r.Creates, func(c knowledge.Kind) bool { return c.GroupKind() == k.GroupKind() }) {
				t.Errorf("%s registers %s, and creates it", r.ID, k.GroupKind())
			}
		}
	}
}

// TestChains: a chain leads to relations that know more.
func TestChains(t *testing.T) {
	base := builtin(t)
	hco, _ := base.Relation("hco")
	var second []string
	for _, link := range hco.Chain {
		for _, r := range base.ByTrigger(link.GroupKind()) {
			second = append(second, r.ID)
		}
	}
	if got := strings.Join(second, " "); got != "cdi cdi-upload kubevirt cnao" {
		t.Errorf("HyperConverged leads to %q", got)
	}
	for _, r := range base.Relations() {
		for _, link := range r.Chain {
			if len(base.ByTrigger(link.GroupKind())) == 0 && link.Kind != "SSP" { // it creates no CRDs
				t.Errorf("%s: nothing follows from %s", r.ID, link.GroupKind())
			}
		}
	}
}

// TestChartsAreWhole: what a chart points at is there.
func TestChartsAreWhole(t *testing.T) {
	base := builtin(t)
	charts := map[string]knowledge.Chart{}
	for _, c := range base.Charts() {
		charts[c.Name] = c
	}
	run := map[string]bool{}
	for _, c := range base.Charts() {
		if separate, known := charts[c.Separate]; c.Separate != "" && (!known || len(separate.Registers)+len(separate.Groups) == 0) {
			t.Errorf("chart %s: chart %s does not register anything either", c.Name, c.Separate)
		}
		for _, id := range c.Relations {
			run[id] = true
		}
		if len(c.Registers)+len(c.Groups)+len(c.Parts)+len(c.Relations) == 0 && c.Separate == "" && !strings.Contains(c.Note, "registers no CRD") {
			t.Errorf("chart %s: nothing is said of it", c.Name)
		}
	}
	// What operators install themselves by, other than by charts.
	manifests := []string{
		"cdi", "cdi-upload", "kubevirt", "hco", "cnao", "flux-helmrelease", "olm-v0", "olm-v1", "rancher-nodedriver", "config-connector",
		"system-upgrade-controller", "submariner", "mayastor", "k3s", "talos",
	}
	for _, r := range base.Relations() {
		if r.Second() && !run[r.ID] && !slices.Contains(manifests, r.ID) {
			t.Errorf("no chart is known to run %s", r.ID)
		}
	}
}

// TestLists: a list that nothing names is a mistake.
func TestLists(t *testing.T) {
	names, err := filepath.Glob("data/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	var lists []string
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(content)
		var file knowledge.File
		if err := yaml.Unmarshal(content, &file); err != nil {
			t.Fatal(err)
		}
		for list := range file.Lists {
			if slices.Contains(lists, list) {
				t.Errorf("%s: list %s is in another file too", name, list)
			}
			lists = append(lists, list)
		}
	}
	for _, list := range lists {
		if !regexp.MustCompile(`list: ` + regexp.QuoteMeta(list) + `\b[^-]`).MatchString(all) {
			t.Errorf("list %s is named nowhere", list)
		}
	}
}
