// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// TestTheGuide: the files of docs/knowledge.md are read, one after the other, and
// mean what the page says.
func TestTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/knowledge.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples", len(examples))
	}
	base := builtin(t)
	for i, example := range examples {
		if base, err = base.Extend("docs/knowledge.md", []byte(example[1])); err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
	}
	harbour := schema.GroupKind{Group: "sea.example.com", Kind: "Harbour"}
	if got := ids(base.Creators(harbour)); got != "ships" {
		t.Errorf("Harbour is created by %q", got)
	}
	ships, _ := base.Relation("ships")
	if now, err := current(evaluator(t, *ships.Triggers[0].Ready), object(t, "{status: {phase: Sailing}}")); !now {
		t.Errorf("a Fleet that sails is not ready: %v", err)
	}
	if got := ids(base.OperatorOf(workload(t, "Deployment", "registry.example.com/example/ship-operator:v1", "{}"))); got != "ships" {
		t.Errorf("the operator is that of %q", got)
	}
	if c := base.Chart("ship-operator", ""); !holds(c, schema.GroupKind{Group: "fleet.example.com", Kind: "Fleet"}) || !c.On(nil) {
		t.Errorf("got %+v", c)
	}
	blueprints, _ := base.Relation("blueprints")
	for manifest, want := range map[string]string{
		"{spec: {api: {kind: Quay}}}": "quays.built.example.com Namespaced",
		"{spec: {api: {kind: Jetty, group: a.example.com, scope: Cluster}, request: {kind: Ask, plural: asks}}}": "jetties.a.example.com Cluster, asks.requests.example.com Namespaced",
	} {
		kinds, err := blueprints.Derived(object(t, manifest))
		var got []string
		for _, k := range kinds {
			got = append(got, k.CRD()+" "+string(k.Scope))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, %v, want %q", manifest, got, err, want)
		}
	}
	lighthouse := base.ChartAt("lighthouse", "https://charts.example.com", "2.1.0")
	on, off := lighthouse.Split(nil, false)
	if lighthouse == nil || len(on.Groups) != 0 || len(off.Groups) != 2 || off.Separate != "lighthouse-crds" {
		t.Errorf("got %+v, %+v", on, off)
	}
	beacon := base.Effect(schema.GroupKind{Group: "light.example.com", Kind: "Beacon"})
	if beacon == nil || beacon.Confidence != knowledge.Source {
		t.Fatalf("got %+v", beacon)
	}
	if now, err := current(evaluator(t, beacon.Ready), object(t, "{status: {lit: true}}")); !now {
		t.Errorf("a beacon that is lit is not: %v", err)
	}
}

// TestTheGuideNamesTheFields: what a file may say is on the page.
func TestTheGuideNamesTheFields(t *testing.T) {
	page, err := os.ReadFile("../../docs/knowledge.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"class", "triggers", "creates", "derive", "chain", "registers", "operator", "confidence", "repositories", "versions", "switches", "folder", "parts", "separate", "relations",
		"cr", "cr-dynamic", "start", "auto-cr", "job", "aggregated", "remote", "before", "none", "run", "source", "old-source", "memory",
	} {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("%s is not explained", word)
		}
	}
}
