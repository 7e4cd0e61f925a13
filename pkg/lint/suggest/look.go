// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"cmp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// work is a patch in the making.
type work struct {
	Input
	tree  *tree
	notes []string
	// built are the parts of every tier, by file.
	built map[string][]use
	// edges are dependsOn as they will be: those of git and those that are
	// added. Keys are those of flux.Ref.Key.
	edges map[string][]string
	// parents are the tiers that contain one.
	parents map[string][]string
}

// use is a tier that builds a file, in one way.
type use struct {
	part
	tier string
	// elsewhere is true for a tier of another cluster.
	elsewhere bool
}

func newWork(in Input) *work {
	w := &work{Input: in, tree: newTree(in.Files), built: map[string][]use{}, edges: map[string][]string{}, parents: map[string][]string{}}
	for _, t := range in.World.Tiers {
		key := t.Tier.Key()
		w.uses(t, false)
		for _, d := range specOf(t).DependsOn {
			w.edges[key] = append(w.edges[key], dependency(t.Tier, d).Key())
		}
		for _, p := range t.Parents {
			w.parents[key] = append(w.parents[key], p.Key())
		}
	}
	for _, t := range in.Others {
		w.uses(t, true)
	}
	return w
}

func (w *work) uses(t build.Followed, elsewhere bool) {
	for _, p := range w.tree.parts(t) {
		w.built[p.file] = append(w.built[p.file], use{p, t.Tier.Key(), elsewhere})
	}
}

func (w *work) note(text string) { w.notes = append(w.notes, text) }

func (w *work) patch(holds int) (Patch, error) {
	return Patch{Diff: w.tree.diff(w.notes), Notes: w.notes, Holds: holds}, nil
}

func (w *work) followed(tier flux.Ref) *build.Followed {
	i := slices.IndexFunc(w.World.Tiers, func(f build.Followed) bool { return same(f.Tier, tier) })
	if i < 0 {
		return nil
	}
	return &w.World.Tiers[i]
}

func (w *work) outcome(tier flux.Ref) *coldstart.Outcome {
	i := slices.IndexFunc(w.Prediction.Outcomes, func(o coldstart.Outcome) bool { return same(o.Tier, tier) })
	if i < 0 {
		return nil
	}
	return &w.Prediction.Outcomes[i]
}

// same compares references as Flux does: without their version.
func same(a, b flux.Ref) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && a.Group() == b.Group()
}

func specOf(t build.Followed) kustomizev1.KustomizationSpec {
	var k kustomizev1.Kustomization
	if t.Kustomization != nil {
		// What does not decode stays empty: the build has said so.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(t.Kustomization.Object, &k)
	}
	return k.Spec
}

func dependency(of flux.Ref, d kustomizev1.DependencyReference) flux.Ref {
	return flux.Ref{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: cmp.Or(d.Namespace, of.Namespace), Name: d.Name}
}

// holds counts the tiers that wait for the tier to be Ready, directly or not,
// and those that they contain.
func (w *work) holds(tier string) int {
	held := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, next := range []map[string][]string{w.edges, w.parents} {
			for key, of := range next {
				reached := slices.ContainsFunc(of, func(k string) bool { return held[k] })
				// What the tier itself contains waits for its apply, not its Ready.
				if gated := slices.Contains(w.edges[key], tier); !held[key] && key != tier && (reached || gated) {
					held[key], grown = true, true
				}
			}
		}
	}
	return len(held)
}

// waits is true where one tier does not start before the other is Ready. With
// contained, tiers that the other one contains wait for it as well: they do not
// exist before it is applied.
func (w *work) waits(tier, on string, contained bool) bool {
	seen := map[string]bool{}
	for todo := []string{tier}; len(todo) > 0; todo = todo[1:] {
		key := todo[0]
		if seen[key] || key == on {
			continue
		}
		seen[key] = true
		if slices.Contains(w.edges[key], on) || contained && slices.Contains(w.parents[key], on) {
			return true
		}
		todo = slices.Concat(todo, w.edges[key], w.parents[key])
	}
	return false
}

// manifest is the document of an object, ready to be edited.
type manifest struct {
	*file
	at address
}

// object finds the document of an object that a tier applies, and refuses one
// that another tier builds too.
func (w *work) object(holder, object flux.Ref) (manifest, error) {
	position := w.Locate(holder, object)
	if position.File == "" {
		return manifest{}, refuse("%s is generated, renamed, written inside of a List, or in several files", object)
	}
	f, err := w.tree.open(position.File)
	if err != nil {
		return manifest{}, err
	}
	// The line is that of the file as it was.
	at, err := newFile(f.path, w.tree.before[f.path]).at(position.Line)
	if err != nil {
		return manifest{}, err
	}
	if at.kind != object.Kind {
		return manifest{}, refuse("%s is not a document of its own in %s", object, position.File)
	}
	switch uses := w.built[position.File]; {
	case len(uses) == 0:
		return manifest{}, refuse("it is not clear by which kustomization file %s is built", position.File)
	case len(uses) > 1:
		return manifest{}, refuse("%s is built %s", position.File, sharers(uses))
	case uses[0].component:
		return manifest{}, refuse("%s is part of a kustomize component", position.File)
	}
	return manifest{f, at}, nil
}

func sharers(uses []use) string {
	var names []string
	for _, u := range uses {
		if u.elsewhere {
			return "by another cluster of the repository too"
		}
		if !slices.Contains(names, u.tier) {
			names = append(names, u.tier)
		}
	}
	if len(names) == 1 {
		return "twice by " + names[0]
	}
	return "by " + list(names)
}

// tier finds the document of a tier's Kustomization, and refuses one whose field
// is set by a patch as well.
func (w *work) tier(ref flux.Ref, fields ...string) (manifest, error) {
	followed := w.followed(ref)
	if followed == nil {
		return manifest{}, refuse("%s is not a Kustomization of this cluster", ref)
	}
	if len(followed.Parents) == 0 {
		return manifest{}, refuse("%s is where Flux begins, and what bootstraps the cluster writes its manifest", ref.Name)
	}
	if len(followed.Parents) > 1 {
		return manifest{}, refuse("%s is applied by several tiers", ref.Name)
	}
	m, err := w.object(followed.Parents[0], ref)
	if err != nil {
		return manifest{}, err
	}
	s, err := newFile(m.path, w.tree.before[m.path]).find(m.at)
	if err != nil {
		return manifest{}, err
	}
	applied, _ := followed.Kustomization.Object["spec"].(map[string]any)
	for _, name := range fields {
		var written any
		if node := field(field(s.object, "spec"), name); node != nil {
			if err := node.Decode(&written); err != nil {
				return manifest{}, refuse("%s of %s cannot be read: %v", name, ref.Name, err)
			}
		}
		c := comparison{spec: map[string]any{"postBuild": true}} // of the parent
		if w := normal(written); !c.equal(w, normal(applied[name])) {
			return manifest{}, refuse("spec.%s of %s is set by a patch", name, ref.Name)
		}
	}
	return m, nil
}

// dependsOn is an edge, as an entry of dependsOn.
func dependsOn(from, on flux.Ref) *yaml.Node {
	if from.Namespace == on.Namespace {
		return mapping("name", on.Name)
	}
	return mapping("name", on.Name, "namespace", on.Namespace)
}
