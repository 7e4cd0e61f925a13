// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// scene is a cluster, written short: by tier, its spec and what it applies. A
// tier whose name has a slash is contained by the one before the slash.
type scene struct {
	tiers  []string // name, then YAML of its spec, then its objects
	charts map[string]string
}

func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	all, err := ssautil.ReadObjects(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all
}

func ks(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name}
}

func (s scene) cluster(t testing.TB) *Cluster {
	t.Helper()
	book, err := knowledge.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Book: book, Charts: map[flux.Ref]Chart{}}
	for _, text := range s.tiers {
		head, body, _ := strings.Cut(text, "\n---\n")
		name, spec, _ := strings.Cut(head, "\n")
		parent, name, contained := strings.Cut(name, "/")
		if !contained {
			name = parent
		}
		manifest := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: " + name +
			"\n  namespace: flux-system\nspec:\n  interval: 1h\n" + indent(spec)
		f := build.Followed{Tier: ks(name), Kustomization: objects(t, manifest)[0], Result: &build.Result{Tier: ks(name)}}
		if contained {
			f.Parents = []flux.Ref{ks(parent)}
		}
		for _, o := range objects(t, body) {
			f.Result.Objects = append(f.Result.Objects, build.Object{
				Unstructured: o, Stage: build.Stage(o, nil),
				Ignored: strings.EqualFold(o.GetAnnotations()["kustomize.toolkit.fluxcd.io/ssa"], "ignore"),
			})
		}
		slices.SortStableFunc(f.Result.Objects, func(a, b build.Object) int { return a.Stage - b.Stage })
		c.Tiers = append(c.Tiers, f)
	}
	for name, text := range s.charts {
		chart := Chart{Name: name, Basis: Rendered}
		folder, templates, _ := strings.Cut(text, "\n=== templates\n")
		chart.Definitions, chart.Objects = objects(t, folder), objects(t, templates)
		c.Charts[flux.Ref{Kind: "HelmRelease", Namespace: "flux-system", Name: name}] = chart
	}
	return c
}

func indent(spec string) string {
	var out strings.Builder
	for line := range strings.Lines(spec) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// crd is a CustomResourceDefinition of example.com.
func crd(kind string, versions ...string) string {
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	plural := strings.ToLower(kind) + "s"
	text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %s.example.com\nspec:\n  group: example.com\n  scope: Cluster\n"+
		"  names: {kind: %s, plural: %s}\n  versions:\n", plural, kind, plural)
	for _, v := range versions {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: true}\n", v)
	}
	return text + "---\n"
}

// cr is a resource of example.com, or of the API version given.
func cr(kind string, apiVersion ...string) string {
	version := "example.com/v1"
	if len(apiVersion) > 0 {
		version = apiVersion[0]
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: main\n---\n", version, kind)
}

func hr(name string, spec ...string) string {
	return fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: %s\n  namespace: flux-system\nspec:\n  interval: 1h\n%s---\n",
		name, indent(strings.Join(spec, "")))
}

// dump says in one line per tier what was predicted.
func dump(p *Prediction) string {
	var out strings.Builder
	for _, o := range p.Outcomes {
		fmt.Fprintf(&out, "%s %s", o.Tier.Name, o.Verdict)
		if !o.Ready && o.Verdict != Never && o.Verdict != Blocked && o.Verdict != Suspended {
			out.WriteString(" never-ready")
		}
		for _, n := range o.Needs {
			what := n.Kind.Kind
			if what == "" {
				what = n.Object.Kind + ":" + n.Object.Name
			}
			fmt.Fprintf(&out, "; %s %s", what, n.When)
			if len(n.Providers) > 0 {
				p := n.Providers[0]
				fmt.Fprintf(&out, " %s %s %s", p.How, p.Tier.Name, p.Reach)
				if p.Gate != (flux.Ref{}) {
					fmt.Fprintf(&out, " of %s", p.Gate.Name)
				}
			}
		}
		for _, b := range o.BlockedBy {
			fmt.Fprintf(&out, "; by %s", b.Name)
		}
		out.WriteString("\n")
	}
	return out.String()
}
