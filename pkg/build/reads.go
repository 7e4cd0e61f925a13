// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// Reads are the manifests that a build of the folder would take objects from,
// and the folders with a kustomization file that it would go through, the
// folder itself among them. It follows the files as kustomize and Flux do
// without building anything, and never out of the tree; what is not there is
// left out. All names are relative to the root of the tree, with slashes.
func (t *Tree) Reads(folder string) (manifests, kustomizations []string) {
	r := reader{tree: t, seen: map[string]bool{}}
	if dir, err := t.Path(folder); err == nil {
		r.folder(dir)
	}
	slices.Sort(r.manifests)
	slices.Sort(r.kustomizations)
	return r.manifests, r.kustomizations
}

type reader struct {
	tree                      *Tree
	seen                      map[string]bool
	manifests, kustomizations []string
}

func (r *reader) name(path string) string { return filepath.ToSlash(r.tree.relative(path)) }

func (r *reader) folder(dir string) {
	if r.seen[dir] {
		return
	}
	r.seen[dir] = true
	if file, found := kustomizationFile(dir); found {
		r.kustomizations = append(r.kustomizations, r.name(dir))
		r.kustomization(dir, file)
		return
	}
	// What cannot be read is left for the build to report.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return filepath.SkipDir
		case entry.IsDir() && path != dir && hasKustomization(path):
			r.folder(path)
			return filepath.SkipDir
		case !entry.IsDir() && IsManifest(path):
			r.manifest(path)
		}
		return nil
	})
}

func (r *reader) kustomization(dir, file string) {
	content, err := os.ReadFile(file) // below the tree's own root
	var k types.Kustomization
	if err != nil || k.Unmarshal(content) != nil {
		return // as above
	}
	k.FixKustomization()
	for _, base := range slices.Concat(k.Resources, k.Components) {
		path := filepath.Join(dir, base)
		if filepath.IsAbs(base) || path != r.tree.root && !strings.HasPrefix(path, r.tree.root+string(filepath.Separator)) {
			continue
		}
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			r.folder(path)
		default:
			r.manifest(path)
		}
	}
}

func (r *reader) manifest(path string) {
	if !r.seen[path] {
		r.seen[path] = true
		r.manifests = append(r.manifests, r.name(path))
	}
}

// IsManifest is true of the files that Flux takes for manifests where no
// kustomization file lists any.
func IsManifest(name string) bool {
	extension := filepath.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}
