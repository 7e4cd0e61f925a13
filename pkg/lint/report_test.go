// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/repository"
)

// madeCluster is a cluster by hand: tiers with annotations and objects.
type madeCluster struct {
	examined
}

func cluster(entry string) *madeCluster {
	c := &madeCluster{examined{subject: &Subject{
		Entry: entry, World: &coldstart.Cluster{Charts: map[flux.Ref]coldstart.Chart{}}, Prediction: &coldstart.Prediction{},
	}}}
	c.subject.Locate = func(tier, object flux.Ref) build.Position {
		if object.Name == "generated" {
			return build.Position{}
		}
		folder := "shared"
		if object.Kind == flux.KustomizationKind {
			folder = entry
		}
		return build.Position{File: folder + "/" + object.Name + ".yaml", Line: len(object.Name)}
	}
	return c
}

// tier adds one, with the text of its annotation.
func (c *madeCluster) tier(name, ignore string, objects ...build.Object) *build.Followed {
	k := &unstructured.Unstructured{}
	k.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	k.SetKind(flux.KustomizationKind)
	k.SetNamespace("flux-system")
	k.SetName(name)
	if ignore != "" {
		k.SetAnnotations(map[string]string{IgnoreAnnotation: ignore})
	}
	c.subject.World.Tiers = append(c.subject.World.Tiers, build.Followed{
		Tier: ks(name), Kustomization: k, Result: &build.Result{Tier: ks(name), Objects: objects},
	})
	return &c.subject.World.Tiers[len(c.subject.World.Tiers)-1]
}

func thing(name, ignore string) build.Object {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("example.com/v1")
	o.SetKind("Thing")
	o.SetName(name)
	if ignore != "" {
		o.SetAnnotations(map[string]string{IgnoreAnnotation: ignore})
	}
	return build.Object{Unstructured: o, Stage: 4}
}

func thingRef(name string) flux.Ref {
	return flux.Ref{APIVersion: "example.com/v1", Kind: "Thing", Name: name}
}

// finds adds a finding as a rule would make it.
func (c *madeCluster) finds(rule string, severity finding.Severity, tier string, object flux.Ref, message string) {
	t := ks(tier)
	at := c.subject.Locate(t, object)
	c.findings = append(c.findings, finding.Finding{
		Rule: rule, Severity: severity, Tier: &t, Object: &object, Message: message, File: at.File, Line: at.Line,
	})
}

func reported(clusters ...*madeCluster) *Report {
	var all []examined
	for _, c := range clusters {
		all = append(all, c.examined)
	}
	return newReport(all)
}

// lines are the findings, one a line.
func lines(r *Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s %s %s:%d %s", f.Severity, f.Rule, f.File, f.Line, f.Message))
	}
	return all
}

func same2(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFindingsAreInTheOrderInWhichTheyAreMended(t *testing.T) {
	build := func() *Report {
		c := cluster("clusters/test")
		c.tier("a", "")
		c.finds("CS001", finding.Info, "a", thingRef("b"), "m")
		c.finds("CS002", finding.Error, "a", thingRef("z"), "m")
		c.finds("CS001", finding.Error, "a", thingRef("z"), "m2")
		c.finds("CS001", finding.Error, "a", thingRef("z"), "m1")
		c.finds("CS001", finding.Warning, "a", thingRef("c"), "m")
		c.finds("CS001", finding.Error, "a", thingRef("b"), "m")
		return reported(c)
	}
	r := build()
	same2(t, "findings", lines(r), []string{
		"error CS001 shared/b.yaml:1 m",
		"error CS001 shared/z.yaml:1 m1",
		"error CS001 shared/z.yaml:1 m2",
		"error CS002 shared/z.yaml:1 m",
		"warning CS001 shared/c.yaml:1 m",
		"info CS001 shared/b.yaml:1 m",
	})
	if want := (Summary{Tiers: 1, Errors: 4, Warnings: 1, Infos: 1}); r.Summary != want {
		t.Errorf("got %+v, want %+v", r.Summary, want)
	}
	for _, tt := range []struct {
		than finding.Severity
		want bool
	}{{finding.Error, true}, {finding.Warning, true}, {finding.Info, true}} {
		if r.Worst(tt.than) != tt.want {
			t.Errorf("worst than %s is not %v", tt.than, tt.want)
		}
	}
	c := cluster("clusters/test")
	c.finds("CS001", finding.Info, "a", thingRef("b"), "m")
	if r := reported(c); r.Worst(finding.Error) || r.Worst(finding.Warning) || !r.Worst(finding.Info) {
		t.Error("an info is as bad as a warning")
	}
	if again := build(); !reflect.DeepEqual(again, r) {
		t.Error("the same clusters make another report")
	}
}

// TestWhatSeveralClustersShareIsSaidOnce, with the clusters in which it is.
func TestWhatSeveralClustersShareIsSaidOnce(t *testing.T) {
	made := func(entry string, below int) *madeCluster {
		c := cluster(entry)
		c.tier("a", "")
		c.finds("CS001", finding.Error, "a", thingRef("b"), fmt.Sprintf("%d tiers below stay down", below))
		return c
	}
	dev, prod, test := made("clusters/dev", 1), made("clusters/prod", 2), made("clusters/test", 3)
	dev.finds("DG002", finding.Error, "a", thingRef("b"), "x does not exist")
	dev.finds("DG002", finding.Error, "a", thingRef("b"), "y does not exist")
	prod.finds("DG002", finding.Error, "a", thingRef("b"), "y does not exist")
	prod.finds("HG001", finding.Warning, "a", ks("a"), "its own file")
	test.finds("CS001", finding.Warning, "a", thingRef("b"), "another severity")
	r := reported(dev, prod, test)
	same2(t, "findings", lines(r), []string{
		"error CS001 shared/b.yaml:1 1 tiers below stay down",
		"error DG002 shared/b.yaml:1 x does not exist",
		"error DG002 shared/b.yaml:1 y does not exist",
		"warning HG001 clusters/prod/a.yaml:1 its own file",
		"warning CS001 shared/b.yaml:1 another severity",
	})
	for i, want := range []string{
		"found in all 3 clusters", "found in clusters/dev", "found in clusters/dev, clusters/prod", "found in clusters/prod", "found in clusters/test",
	} {
		if got := r.Findings[i].Causes; len(got) != 1 || got[0] != want {
			t.Errorf("finding %d: %q, want %q", i, got, want)
		}
	}
	if len(r.Entries) != 3 || r.Entries[1].Entry != "clusters/prod" {
		t.Errorf("entries %+v", r.Entries)
	}
	if alone := reported(made("clusters/dev", 1)); alone.Findings[0].Causes != nil {
		t.Errorf("of the only cluster it is said that it is that: %q", alone.Findings[0].Causes)
	}
}

// TestEachClusterKeepsItsPatch: one finding in several clusters has the patches
// of all of them, and says where there is none.
func TestEachClusterKeepsItsPatch(t *testing.T) {
	made := func(entry, patch, fix string) *madeCluster {
		c := cluster(entry)
		c.finds("HG001", finding.Warning, "a", thingRef("b"), "m")
		c.findings[0].Suggestion, c.findings[0].Fix = patch, fix
		return c
	}
	const no = "\nNo patch: it is encrypted"
	for name, tt := range map[string]struct {
		clusters   []*madeCluster
		patch, fix string
	}{
		"two patches": {[]*madeCluster{made("dev", "--- a/dev\n", "Do it"), made("prod", "--- a/prod\n", "Do it")}, "--- a/dev\n--- a/prod\n", "Do it"},
		"the same":    {[]*madeCluster{made("dev", "--- a/x\n", "Do it"), made("prod", "--- a/x\n", "Do it")}, "--- a/x\n", "Do it"},
		"the second":  {[]*madeCluster{made("dev", "", "Do it"+no), made("prod", "--- a/x\n", "Do it")}, "--- a/x\n", "Do it" + no},
		"the first":   {[]*madeCluster{made("dev", "--- a/x\n", "Do it"), made("prod", "", "Do it"+no)}, "--- a/x\n", "Do it" + no},
		"neither":     {[]*madeCluster{made("dev", "", "Do it"+no), made("prod", "", "Do it"+no)}, "", "Do it" + no},
	} {
		if r := reported(tt.clusters...); len(r.Findings) != 1 || r.Findings[0].Suggestion != tt.patch || r.Findings[0].Fix != tt.fix {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

func TestBothClusters(t *testing.T) {
	for want, entries := range map[string][]string{
		"found in both clusters": {"b", "a", "a"}, "found in a": {"a"},
	} {
		if got := inClusters(entries, 2); got != want {
			t.Errorf("%q: %q", entries, got)
		}
	}
}

// TestNeverIsSaidWithItsReserve: something outside may register what nothing in
// the repository does, and what is suppressed is known to its owner.
func TestNeverIsSaidWithItsReserve(t *testing.T) {
	kind := coldstart.Need{When: coldstart.Missing, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}}
	versions, provided, object := kind, kind, coldstart.Need{When: coldstart.Missing, Object: secret("s")}
	versions.OtherVersions = []string{"v2"}
	provided.Providers = []coldstart.Provider{{How: coldstart.ByGit, Reach: coldstart.Same}}
	for name, tt := range map[string]struct {
		needs []coldstart.Need
		want  bool
	}{
		"nobody": {[]coldstart.Need{kind}, true}, "another version": {[]coldstart.Need{kind, versions}, false},
		"a deadlock": {[]coldstart.Need{kind, provided}, false}, "an object": {[]coldstart.Need{object}, false}, "nothing": {nil, false},
	} {
		if got := unlessOutside(&coldstart.Outcome{Verdict: coldstart.Never, Needs: tt.needs}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, tt := range map[string]struct {
		ignore string
		want   bool
	}{"hidden": {"CS001: why; CS009: why", true}, "one of two": {"CS001: why", false}, "the other one": {"CS009: why", false}, "none": {"", false}} {
		c := cluster("clusters/test")
		c.tier("a", tt.ignore)
		c.finds("CS001", finding.Error, "a", thingRef("b"), "m")
		c.finds("CS009", finding.Warning, "a", thingRef("b"), "m")
		c.finds("HG003", finding.Info, "a", thingRef("b"), "m")
		c.subject.Prediction.Outcomes = []coldstart.Outcome{{Tier: ks("a"), Verdict: coldstart.Never}}
		if got := reported(c).Entries[0].Outcomes[0].Suppressed; got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestARuleIsNamedByItsID where a suppression is written with the rule's name.
func TestARuleIsNamedByItsID(t *testing.T) {
	c := cluster("clusters/test")
	c.tier("a", "missing-namespace: the installer makes it")
	if r := reported(c); len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Fix, "missing-namespace is CS011: write rule and reason") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestWhatIsGeneratedIsWhereItsTierIs: a finding without a place is of no use to
// an editor or a review.
func TestWhatIsGeneratedIsWhereItsTierIs(t *testing.T) {
	c := cluster("clusters/test")
	c.tier("parent", "")
	c.tier("child", "").Parents = []flux.Ref{ks("parent")}
	c.finds("CS001", finding.Error, "child", thingRef("generated"), "m")
	same2(t, "findings", lines(reported(c)), []string{"error CS001 clusters/test/child.yaml:5 m"})
}

func TestVerdictsOfEachCluster(t *testing.T) {
	made := func(entry string, verdict coldstart.Verdict, ready bool) *madeCluster {
		c := cluster(entry)
		c.tier("a", "", thing("x", ""), thing("y", ""))
		c.subject.Prediction.Outcomes = []coldstart.Outcome{{Tier: ks("a"), Verdict: verdict, Ready: ready}}
		return c
	}
	for verdict, want := range map[coldstart.Verdict]Counts{
		coldstart.AtOnce: {AtOnce: 1}, coldstart.ByRetry: {ByRetry: 1}, coldstart.Never: {Never: 1},
		coldstart.Blocked: {Blocked: 1}, coldstart.Suspended: {Suspended: 1}, coldstart.Unknown: {Unknown: 1},
	} {
		r := reported(made("clusters/test", verdict, true))
		if r.Entries[0].Verdicts != want || r.Verdicts["flux-system/a"] != verdict {
			t.Errorf("%s: %+v, %v", verdict, r.Entries[0].Verdicts, r.Verdicts)
		}
	}
	r := reported(made("clusters/dev", coldstart.AtOnce, true), made("clusters/prod", coldstart.AtOnce, false))
	if got := r.Entries[1].Verdicts; got != (Counts{AtOnce: 1, Unready: 1}) {
		t.Errorf("a tier that is never Ready: %+v", got)
	}
	if r.Verdicts["clusters/prod:flux-system/a"] != coldstart.AtOnce || len(r.Verdicts) != 2 {
		t.Errorf("got %v", r.Verdicts)
	}
	if want := (Summary{Tiers: 2, Objects: 4}); r.Summary != want {
		t.Errorf("got %+v, want %+v", r.Summary, want)
	}
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	c := cluster("clusters/test")
	source := flux.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: "flux-system", Name: "apps"}
	other := source
	other.Name = "unused"
	t1 := c.tier("a", "")
	t1.Outside, t1.Result = &source, nil
	t2 := c.tier("b", "")
	t2.Outside, t2.Result = &source, nil
	c.cluster = &repository.Cluster{Outside: []flux.Ref{source, other}}
	release := coldstart.Key(hr("obs", "loki"))
	c.subject.World.Charts[release] = coldstart.Chart{Name: "loki", Version: "6", Basis: coldstart.Opaque, Why: "not in the cache"}
	c.subject.World.Charts[coldstart.Key(hr("obs", "known"))] = coldstart.Chart{Basis: coldstart.Known}
	e := reported(c).Entries[0]
	source.APIVersion, other.APIVersion = "", ""
	want := []Outside{{Source: source, Tiers: []flux.Ref{ks("a"), ks("b")}}, {Source: other}}
	if len(e.Outside) != 2 || !reflect.DeepEqual(e.Outside[0], want[0]) || e.Outside[1].Source != other || len(e.Outside[1].Tiers) != 0 {
		t.Errorf("outside %+v", e.Outside)
	}
	if want := []Opaque{{Object: release, Chart: "loki", Version: "6", Why: "not in the cache"}}; !reflect.DeepEqual(e.Opaque, want) {
		t.Errorf("opaque %+v", e.Opaque)
	}
	if r := newReport(nil); r.Entries == nil || r.Findings == nil || r.Worst(finding.Info) {
		t.Errorf("a report of nothing: %+v", r)
	}
	loose := looseOf(&repository.Repository{Loose: []repository.Loose{
		{Tier: ks("z"), Position: build.Position{File: "b.yaml", Line: 2}}, {Tier: ks("y"), Position: build.Position{File: "a.yaml", Line: 9}},
	}})
	if len(loose) != 2 || loose[0] != (Loose{Tier: ks("y"), File: "a.yaml", Line: 9}) {
		t.Errorf("loose %+v", loose)
	}
}

// fails builds a tier of which apps holds these files, and returns why that
// fails.
func (c *madeCluster) fails(t *testing.T, name, files string) {
	t.Helper()
	tree, err := build.OpenDir(t.Context(), unpack(t, files), "")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	f := c.tier(name, "")
	f.Kustomization.Object["spec"] = map[string]any{
		"interval": "1m", "path": "./apps/", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
		"postBuild": map[string]any{"substitute": map[string]any{"A": "b"}},
	}
	f.Result = nil
	if _, f.Err = (build.Builder{}).Build(t.Context(), f.Kustomization, tree); f.Err == nil {
		t.Fatalf("it builds:\n%s", files)
	}
}

// TestWhatDoesNotBuild: in Flux's words, where the mistake is; where nothing
// tells, at the tier.
func TestWhatDoesNotBuild(t *testing.T) {
	for name, tt := range map[string]struct{ files, at, words string }{
		"a missing folder": {"-- other/a.yaml --\n{}\n", "clusters/test/a.yaml:1", "kustomization path not found: stat apps: no such file or directory"},
		"no YAML": {
			"-- apps/kustomization.yaml --\nresources: [bad.yaml]\n-- apps/bad.yaml --\nkind: ConfigMap\nmetadata: a: b\n", "fleet/apps/bad.yaml:2",
			"build: kustomize build failed: accumulating resources: accumulating resources from 'bad.yaml': MalformedYAMLError: yaml: line 2: mapping values are not allowed in this context in File: bad.yaml",
		},
	} {
		c := cluster("clusters/test")
		c.cluster = &repository.Cluster{Source: flux.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}, Base: "fleet"}
		c.fails(t, "a", tt.files)
		c.tier("b", "")
		c.tier("c", "")
		c.subject.Prediction.Outcomes = []coldstart.Outcome{
			{Tier: ks("a"), Verdict: coldstart.Unknown},
			{Tier: ks("c"), Verdict: coldstart.Blocked, BlockedBy: []flux.Ref{ks("b")}},
			{Tier: ks("b"), Verdict: coldstart.Blocked, BlockedBy: []flux.Ref{ks("a")}},
		}
		r := reported(c)
		same2(t, name, lines(r), []string{
			"error BUILD001 " + tt.at + " Kustomization/flux-system/a does not build, so that Flux applies nothing of it: " + tt.words,
		})
		if got := r.Findings[0].Causes; len(got) != 1 || got[0] != "2 more tiers wait for it" {
			t.Errorf("causes %q", got)
		}
	}
}

func TestWhatIsNotFetched(t *testing.T) {
	c := cluster("clusters/test")
	c.fails(t, "a", "-- apps/kustomization.yaml --\nresources:\n- https://git.example.com/x//y?ref=z\n")
	b := c.tier("b", "")
	b.Result, b.Err = nil, fmt.Errorf("kustomization flux-system/b: %w", &build.UnknownError{Field: "spec.path", Err: errors.New("x")})
	same2(t, "findings", lines(reported(c)), []string{
		"warning BUILD002 apps/kustomization.yaml:2 Kustomization/flux-system/a is built from remote base https://git.example.com/x//y?ref=z, which was not fetched: what the tier applies is not known",
		"info BUILD003 clusters/test/b.yaml:1 Kustomization/flux-system/b cannot be built here: its spec.path depends on a variable whose value the repository does not hold",
	})
}

// TestWhoRegistersAKind: the audit.
func TestWhoRegistersAKind(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	definition := flux.Ref{Kind: "CustomResourceDefinition", Name: "things"}
	release := hr("x", "thing")
	relation := &knowledge.Relation{System: "Things", Confidence: knowledge.OldSource}
	for name, tt := range map[string]struct {
		need       coldstart.Need
		second     bool
		before     string
		want       Registrar
		confidence Confidence
	}{
		"git": {
			need:       coldstart.Need{When: coldstart.InTime, Providers: []coldstart.Provider{{How: coldstart.ByGit, Tier: ks("b"), Object: definition}}},
			want:       Registrar{How: ViaGit, Object: &definition, File: "shared/things.yaml", Line: 6},
			confidence: ByBuild,
		},
		"chart": {
			need:       coldstart.Need{When: coldstart.Late, Providers: []coldstart.Provider{{How: coldstart.ByChart, Tier: ks("b"), Object: release}}},
			want:       Registrar{How: ViaChart, Object: &release, File: "shared/thing.yaml", Line: 5, System: "things@1.2"},
			confidence: ByBuild,
		},
		"a CRD in a chart": {
			need: coldstart.Need{When: coldstart.InTime, Providers: []coldstart.Provider{
				{How: coldstart.ByChart, Tier: ks("b"), Object: definition, Release: &release},
			}},
			want:       Registrar{How: ViaChart, Object: &release, File: "shared/thing.yaml", Line: 5, System: "things@1.2"},
			confidence: ByBuild,
		},
		"trigger in a chart": {
			need: coldstart.Need{When: coldstart.Late, Providers: []coldstart.Provider{
				{How: coldstart.ByTrigger, Tier: ks("b"), Object: thingRef("trigger"), Release: &release, Relation: relation},
			}},
			second: true, want: Registrar{How: ViaTrigger, Object: ptr(thingRef("trigger")), Release: &release, File: "shared/thing.yaml", Line: 5, System: "Things"}, confidence: ByOldSource,
		},
		"start": {
			need:   coldstart.Need{When: coldstart.InTime, Providers: []coldstart.Provider{{How: coldstart.ByStart, Tier: ks("b"), Object: thingRef("op"), Relation: relation}}},
			second: true, want: Registrar{How: ViaStart, Object: ptr(thingRef("op")), File: "shared/op.yaml", Line: 2, System: "Things"}, confidence: ByOldSource,
		},
		"nobody": {
			need: coldstart.Need{When: coldstart.Missing, Creators: []knowledge.Relation{*relation}},
			want: Registrar{How: ViaNobody, System: "Things"},
		},
		"perhaps": {
			need: coldstart.Need{When: coldstart.Perhaps, Candidates: []flux.Ref{release}},
			want: Registrar{How: ViaPerhaps, Object: &release, System: "things@1.2"},
		},
		"before": {need: coldstart.Need{When: coldstart.InTime}, before: "Flux", want: Registrar{How: ViaBefore, System: "Flux"}, confidence: BySource},
		"before, and in git": {
			need:   coldstart.Need{When: coldstart.InTime, Providers: []coldstart.Provider{{How: coldstart.ByGit, Tier: ks("b"), Object: definition}}},
			before: "the distribution", want: Registrar{How: ViaBefore, System: "the distribution"}, confidence: BySource,
		},
	} {
		c := cluster("clusters/test")
		c.tier("a", "")
		c.subject.World.Charts[coldstart.Key(release)] = coldstart.Chart{Name: "things", Version: "1.2", Basis: coldstart.Rendered}
		tt.need.Kind = gvk
		c.subject.Prediction.Kinds = []coldstart.KindUse{{Tier: ks("a"), Need: tt.need, First: "stage 1 of b", Before: tt.before, SecondOrder: tt.second}}
		r := reported(c)
		if len(tt.need.Providers) > 0 && tt.before == "" {
			tt.want.Tier = ptr(ks("b"))
		}
		want := Kind{Tier: ks("a"), APIVersion: "example.com/v1", Kind: "Thing", RegisteredBy: tt.want, Known: "stage 1 of b", Order: FirstOrder, Confidence: tt.confidence, When: tt.need.When}
		if tt.second {
			want.Order = SecondOrder
		}
		if len(r.Kinds) != 1 || !reflect.DeepEqual(r.Kinds[0], want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, r.Kinds, want)
		}
		if r.Kinds[0].RegisteredBy.File == "" && len(tt.need.Providers) > 0 && tt.before == "" {
			t.Errorf("%s: no place", name)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestTheAuditIsInOrder: tier by tier as they were met, by group.
func TestTheAuditIsInOrder(t *testing.T) {
	made := func(entry string) *madeCluster {
		c := cluster(entry)
		c.tier("z", "")
		c.tier("a", "")
		for _, use := range []struct{ tier, group, kind string }{{"a", "b.example.com", "B"}, {"a", "a.example.com", "B"}, {"a", "a.example.com", "A"}, {"z", "z.example.com", "Z"}} {
			c.subject.Prediction.Kinds = append(c.subject.Prediction.Kinds, coldstart.KindUse{Tier: ks(use.tier), Need: coldstart.Need{
				Kind: schema.GroupVersionKind{Group: use.group, Version: "v1", Kind: use.kind}, When: coldstart.Late,
			}})
		}
		return c
	}
	r := reported(made("clusters/dev"), made("clusters/prod"))
	var got []string
	for _, k := range r.Kinds {
		got = append(got, k.Entry+" "+k.Tier.Name+" "+k.APIVersion+" "+k.Kind)
	}
	var want []string
	for _, entry := range []string{"clusters/dev", "clusters/prod"} {
		for _, k := range []string{"z z.example.com/v1 Z", "a a.example.com/v1 A", "a a.example.com/v1 B", "a b.example.com/v1 B"} {
			want = append(want, entry+" "+k)
		}
	}
	same2(t, "kinds", got, want)
	if r.Entries[0].Kinds != (KindCounts{Late: 4}) || r.Kinds[0].FluxsOwn() {
		t.Errorf("got %+v", r.Entries[0].Kinds)
	}
	c := made("clusters/dev")
	c.subject.Prediction.Kinds[0].Before = "Flux"
	if r := reported(c); r.Entries[0].Kinds != (KindCounts{Late: 3, Before: 1}) || !slices.ContainsFunc(r.Kinds, func(k Kind) bool { return k.FluxsOwn() }) {
		t.Errorf("with one of Flux's own: %+v, %+v", r.Entries[0].Kinds, r.Kinds)
	}
	if alone := reported(made("clusters/dev")); alone.Kinds[0].Entry != "" {
		t.Errorf("the only cluster is named: %q", alone.Kinds[0].Entry)
	}
}
