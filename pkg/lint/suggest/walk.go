// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// part is one way in which a build comes to a file.
type part struct {
	file string
	// by is the kustomization file that names it in its resources; empty where
	// Flux finds it by itself, in a folder that has none.
	by string
	// component is true below a kustomize component.
	component bool
	// via are the kustomization files that lead to by, the outermost first.
	via []string
	// artifact is the source of a tier that is not built from the working tree
	// itself, but from what was packed of it: its paths are other ones.
	artifact string
}

// artifact are the files of a tier that is built from something packed: those
// that its objects are written in.
func (c Cluster) artifact(tier build.Followed, source flux.Ref) []part {
	if tier.Result == nil {
		return nil
	}
	var all []part
	for _, o := range tier.Result.Objects {
		p := part{file: c.Locate(tier.Tier, o.Ref()).File, artifact: source.String()}
		if p.file != "" && !slices.ContainsFunc(all, func(have part) bool { return have.file == p.file }) {
			all = append(all, p)
		}
	}
	return all
}

// walker collects the files of one build, as kustomize and Flux's generator
// (fluxcd/pkg/kustomize kustomize_generator.go scanManifests) come to them.
type walker struct {
	tree  *tree
	parts []part
	// folders are the kustomization files that the build goes through.
	folders []part
	via     []string
	open    []string // the folders that are being walked, against cycles
}

// parts are the files that a tier is built from.
func (t *tree) parts(tier build.Followed) (files, folders []part) {
	if tier.Outside != nil || tier.Kustomization == nil {
		return nil, nil
	}
	w := &walker{tree: t}
	dir := pathOf(tier)
	if t.kustomization(dir) == "" {
		w.scan(dir)
	} else {
		w.folder(dir, false)
	}
	spec, _ := tier.Kustomization.Object["spec"].(map[string]any)
	components, _ := spec["components"].([]any)
	for _, c := range components {
		if name, ok := c.(string); ok {
			w.entry("", path.Join(dir, name), true)
		}
	}
	return w.parts, w.folders
}

// pathOf is the folder of a tier, relative to the root: the way that
// filepath-securejoin, which Flux uses, reads it.
func pathOf(tier build.Followed) string {
	spec, _ := tier.Kustomization.Object["spec"].(map[string]any)
	name, _ := spec["path"].(string)
	return build.InTree(name)
}

// scan takes what Flux takes of a folder without a kustomization file.
func (w *walker) scan(dir string) {
	entries, err := fs.ReadDir(w.tree.disk, dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch ext := path.Ext(name); {
		case entry.IsDir() && w.tree.kustomization(name) != "":
			w.folder(name, false)
		case entry.IsDir() && entry.Name() != ".git":
			w.scan(name)
		case ext == ".yaml" || ext == ".yml":
			w.add("", name, false)
		}
	}
}

// folder takes what a kustomization file names.
func (w *walker) folder(dir string, component bool) {
	name := w.tree.kustomization(dir)
	if name == "" || slices.Contains(w.open, dir) {
		return
	}
	w.open = append(w.open, dir)
	w.folders = append(w.folders, part{by: name, component: component, via: slices.Clone(w.via)})
	w.via = append(w.via, name)
	defer func() { w.open, w.via = w.open[:len(w.open)-1], w.via[:len(w.via)-1] }()
	content, err := fs.ReadFile(w.tree.disk, name)
	if err != nil {
		return
	}
	var listed struct {
		Resources, Bases, Components []string
	}
	if yaml.Unmarshal(content, &listed) != nil {
		return
	}
	for _, entry := range slices.Concat(listed.Resources, listed.Bases) {
		w.entry(name, path.Join(dir, entry), component)
	}
	for _, entry := range listed.Components {
		w.entry(name, path.Join(dir, entry), true)
	}
}

// add takes a file. What a symbolic link leads to is not in an artifact of
// source-controller, which holds no links.
func (w *walker) add(by, name string, component bool) {
	if w.tree.real(name) == name {
		w.parts = append(w.parts, part{file: name, by: by, component: component, via: slices.Clone(w.via)})
	}
}

func (w *walker) entry(by, name string, component bool) {
	if !fs.ValidPath(name) {
		return // a URL, or outside of the tree
	}
	info, err := fs.Stat(w.tree.disk, name)
	switch {
	case err != nil:
	case info.IsDir():
		w.folder(name, component)
	default:
		w.add(by, name, component)
	}
}
