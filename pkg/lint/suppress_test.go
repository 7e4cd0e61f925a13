// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"reflect"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestAnnotationsAreRead(t *testing.T) {
	for text, want := range map[string][]ignored{
		"CS003: why":                    {{"CS003", "why"}},
		" CS003 :why ;HG001: x; ":       {{"CS003", "why"}, {"HG001", "x"}},
		"CS003: a; b; HG001: c: d":      {{"CS003", "a; b"}, {"HG001", "c: d"}},
		"CS003: why\nHG001: x\n":        {{"CS003", "why"}, {"HG001", "x"}},
		"CS003, HG001: both":            {{"CS003", "both"}, {"HG001", "both"}},
		"CS003, HG001: both; and more":  {{"CS003", "both; and more"}, {"HG001", "both; and more"}},
		"CS003":                         {{"CS003", ""}},
		"CS003:":                        {{"CS003", ""}},
		"CS003; HG001: x":               {{"CS003", ""}, {"HG001", "x"}},
		"CS003:; because":               {{"CS003", "because"}},
		"CS003: it waits for CS001 too": {{"CS003", "it waits for CS001 too"}},
		"":                              nil,
		";;":                            nil,
	} {
		got, unread := parseIgnore(text)
		if !reflect.DeepEqual(got, want) || unread != "" {
			t.Errorf("%q: got %q and %q, want %q", text, got, unread, want)
		}
	}
	for text, want := range map[string]string{
		"all": "all", "cs003: why": "cs003: why", "CS3: why": "CS3: why", "why; CS003: x": "why", "deadlock: why": "deadlock: why",
	} {
		if _, unread := parseIgnore(text); unread != want {
			t.Errorf("%q: %q was not read, want %q", text, unread, want)
		}
	}
}

// FuzzAnnotations: no text breaks the reader.
func FuzzAnnotations(f *testing.F) {
	for _, seed := range []string{"CS003: why; HG001: x", "CS003, : ;", ";\n;:", "CS003,CS001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := parseIgnore(text)
		if len(all) > len(text)/5+1 {
			t.Errorf("%d rules of %q", len(all), text)
		}
	})
}

// suppressible is a rule that a test can suppress: any that exists.
const suppressible = buildFailed

func TestSuppression(t *testing.T) {
	const ok = suppressible + ": it is so"
	for name, tt := range map[string]struct {
		tier, object string // the annotations
		about        flux.Ref
		rule         string
		suppressed   int
		shown        []string
	}{
		"on the tier":           {tier: ok, about: thingRef("x"), rule: suppressible, suppressed: 1},
		"on the object":         {object: ok, about: thingRef("x"), rule: suppressible, suppressed: 1},
		"on both":               {tier: ok, object: ok, about: thingRef("x"), rule: suppressible, suppressed: 1},
		"of the tier itself":    {tier: ok, about: ks("a"), rule: suppressible, suppressed: 1},
		"on another object":     {object: ok, about: thingRef("y"), rule: suppressible, shown: []string{suppressible, unusedSuppression}},
		"of another rule":       {tier: ok, about: thingRef("x"), rule: remoteBase, shown: []string{remoteBase, unusedSuppression}},
		"without a reason":      {tier: suppressible, about: thingRef("x"), rule: suppressible, shown: []string{suppressible, reasonlessSuppression}},
		"with an empty reason":  {tier: suppressible + ": ", about: thingRef("x"), rule: suppressible, shown: []string{suppressible, reasonlessSuppression}},
		"of what is no rule":    {tier: "XX999: why", about: thingRef("x"), rule: suppressible, shown: []string{suppressible, unusedSuppression}},
		"of a suppression":      {tier: unusedSuppression + ": why", about: thingRef("x"), rule: suppressible, shown: []string{suppressible, unusedSuppression}},
		"of words":              {tier: "everything", about: thingRef("x"), rule: suppressible, shown: []string{suppressible, unusedSuppression}},
		"one of two is used":    {tier: ok + "; " + remoteBase + ": why", about: thingRef("x"), rule: suppressible, suppressed: 1, shown: []string{unusedSuppression}},
		"twice the same":        {tier: ok + "; " + ok, about: thingRef("x"), rule: suppressible, suppressed: 1},
		"one with a reason":     {tier: suppressible + "; " + ok, about: thingRef("x"), rule: suppressible, suppressed: 1, shown: []string{reasonlessSuppression}},
		"none where it is none": {about: thingRef("x"), rule: suppressible, shown: []string{suppressible}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster("clusters/test")
			c.tier("a", tt.tier, thing("x", tt.object), thing("y", ""))
			c.tier("b", "", thing("x", ""))
			c.finds(tt.rule, finding.Error, "a", tt.about, "m")
			r := reported(c)
			var shown []string
			for _, f := range r.Findings {
				shown = append(shown, f.Rule)
			}
			same2(t, "findings", shown, tt.shown)
			if r.Summary.Suppressed != tt.suppressed {
				t.Errorf("%d suppressed, want %d", r.Summary.Suppressed, tt.suppressed)
			}
			for _, f := range r.Findings {
				if f.Rule != tt.rule && (f.Severity != finding.Warning || f.File == "" || f.Line == 0 || f.Object == nil || f.Fix == "") {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
}

// TestAnotherTierIsNotSuppressed, although it applies an object of that name.
func TestAnotherTierIsNotSuppressed(t *testing.T) {
	c := cluster("clusters/test")
	c.tier("a", "", thing("x", suppressible+": why"))
	c.tier("b", "", thing("x", ""))
	c.finds(suppressible, finding.Error, "b", thingRef("x"), "m")
	if r := reported(c); r.Summary.Suppressed != 0 || len(r.Findings) != 2 {
		t.Errorf("%+v, %q", r.Summary, lines(r))
	}
}

// TestAnAnnotationOfSeveralClusters is used where one of them uses it, and
// hides nothing of a cluster whose files do not have it.
func TestAnAnnotationOfSeveralClusters(t *testing.T) {
	made := func(entry, ignore string, finds bool) *madeCluster {
		c := cluster(entry)
		c.tier("a", "", thing("x", ignore))
		if finds {
			c.finds(suppressible, finding.Error, "a", thingRef("x"), "m")
		}
		return c
	}
	const ok = suppressible + ": why"
	r := reported(made("clusters/dev", ok, true), made("clusters/prod", ok, false))
	if r.Summary != (Summary{Tiers: 2, Objects: 2, Suppressed: 1}) {
		t.Errorf("used in one of two: %+v, %q", r.Summary, lines(r))
	}
	r = reported(made("clusters/dev", ok, false), made("clusters/prod", ok, false))
	if len(r.Findings) != 1 || r.Findings[0].Rule != unusedSuppression {
		t.Errorf("used in none of two: %q", lines(r))
	}
	r = reported(made("clusters/dev", ok, true), made("clusters/prod", "", true))
	if r.Summary.Suppressed != 1 || len(r.Findings) != 1 || r.Findings[0].Causes[0] != "found in clusters/prod" {
		t.Errorf("in one of two: %+v, %+v", r.Summary, r.Findings)
	}
}
