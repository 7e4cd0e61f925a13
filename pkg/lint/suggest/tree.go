// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// tree is the working tree with the edits that were made so far.
type tree struct {
	disk  fs.FS
	files map[string]*file
	// before are the contents of files when they were first read.
	before map[string]string
}

func newTree(disk fs.FS) *tree {
	return &tree{disk: disk, files: map[string]*file{}, before: map[string]string{}}
}

// open is a file to be read and edited.
func (t *tree) open(name string) (*file, error) {
	if f, ok := t.files[name]; ok {
		return f, nil
	}
	if !fs.ValidPath(name) {
		return nil, refuse("%s is not a path of the repository", name)
	}
	content, err := fs.ReadFile(t.disk, name)
	if err != nil {
		return nil, refuse("%s cannot be read: %v", name, err)
	}
	t.before[name] = string(content)
	t.files[name] = newFile(name, string(content))
	return t.files[name], nil
}

func (t *tree) create(name, content string) { t.files[name] = newFile(name, content) }

func (t *tree) exists(name string) bool {
	_, err := fs.Stat(t.disk, name)
	return err == nil || t.files[name] != nil
}

// kustomization is the kustomization file of a folder, empty where it has none.
func (t *tree) kustomization(dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		name = path.Join(dir, name)
		if info, err := fs.Stat(t.disk, name); err == nil && !info.IsDir() {
			return name
		}
	}
	return ""
}

// part is one way in which a build comes to a file.
type part struct {
	file string
	// by is the kustomization file that names it in its resources; empty where
	// Flux finds it by itself, in a folder that has none.
	by string
	// component is true below a kustomize component.
	component bool
}

// walker collects the files of one build, as kustomize and Flux's generator
// (fluxcd/pkg/kustomize kustomize_generator.go scanManifests) come to them.
type walker struct {
	tree  *tree
	parts []part
	open  []string // the folders that are being walked, against cycles
}

// parts are the files that a tier is built from.
func (t *tree) parts(tier build.Followed) []part {
	if tier.Outside != nil || tier.Kustomization == nil {
		return nil
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
	return w.parts
}

// pathOf is the folder of a tier, relative to the root: the way that
// filepath-securejoin, which Flux uses, reads it.
func pathOf(tier build.Followed) string {
	spec, _ := tier.Kustomization.Object["spec"].(map[string]any)
	name, _ := spec["path"].(string)
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return name
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
			w.parts = append(w.parts, part{file: name})
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
	defer func() { w.open = w.open[:len(w.open)-1] }()
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
		w.parts = append(w.parts, part{file: name, by: by, component: component})
	}
}

// takes is true where a tier that builds dir takes up what is put into a new
// folder: nothing between the two has a kustomization file.
func (t *tree) takes(dir, folder string) bool {
	for dir != folder {
		rest := folder
		if dir != "." {
			var below bool
			if rest, below = strings.CutPrefix(folder, dir+"/"); !below {
				return false
			}
		}
		if t.kustomization(dir) != "" {
			return false
		}
		next, _, _ := strings.Cut(rest, "/")
		dir = path.Join(dir, next)
	}
	return true
}
