// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"io/fs"
	"maps"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
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
	if t.real(name) != name {
		return nil, refuse("%s is reached through a symbolic link", name)
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

func (t *tree) create(name, content string) *file {
	t.files[name] = newFile(name, content)
	return t.files[name]
}

// makes is true for a folder in which an edit has created a file.
func (t *tree) makes(dir string) bool {
	for name := range t.files {
		if _, existed := t.before[name]; !existed && path.Dir(name) == dir {
			return true
		}
	}
	return false
}

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

// saved is what was edited up to a moment.
type saved struct {
	files map[string]*file
	lines map[*file][]string
}

// save keeps what was edited. Edits replace lines, and do not change them in
// place.
func (t *tree) save() saved {
	s := saved{maps.Clone(t.files), map[*file][]string{}}
	for _, f := range t.files {
		s.lines[f] = f.lines
	}
	return s
}

func (t *tree) restore(s saved) {
	for name, f := range t.files {
		if s.files[name] == nil {
			// Whoever still holds it finds it as it is on disk.
			f.lines = newFile(name, t.before[name]).lines
		}
	}
	t.files = maps.Clone(s.files)
	for f, lines := range s.lines {
		f.lines = lines
	}
}

func (t *tree) changed() bool {
	for name, f := range t.files {
		if before, existed := t.before[name]; !existed || f.content() != before {
			return true
		}
	}
	return false
}

// real is the file that a name leads to, where a folder on the way, or the file
// itself, is a symbolic link. A link that cannot be followed stays as it is.
func (t *tree) real(name string) string {
	const enough = 40
	links, ok := t.disk.(fs.ReadLinkFS)
	if !ok || !fs.ValidPath(name) {
		return name
	}
	done, rest := ".", name
	for range enough {
		var first string
		if first, rest, _ = strings.Cut(rest, "/"); first == "" {
			return done
		}
		next := path.Join(done, first)
		info, err := links.Lstat(next)
		if err != nil {
			return path.Join(next, rest)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			if rest == "" {
				return done
			}
			continue
		}
		target, err := links.ReadLink(next)
		if err != nil || path.IsAbs(target) {
			return path.Join(next, rest)
		}
		if rest = path.Join(path.Join(done, target), rest); !fs.ValidPath(rest) {
			return name
		}
		done = "."
	}
	return name
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
