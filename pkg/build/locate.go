// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Position is a place in a file of the tree.
type Position struct {
	// File is relative to the root of the tree, with slashes.
	File string
	// Line counts from 1.
	Line int
}

// written is an object as one of a tier's files writes it.
type written struct {
	Document
	file string
}

// groupKind is what kustomize and Flux never change of an object.
type groupKind struct{ group, kind string }

// Locate finds where the object is written, among the files that its tier was
// built from. It answers false for what is generated, and when several files
// write an object of that name. The tree must still be open. It is safe for
// concurrent use, and reads each file of a tree once.
//
// kustomize can annotate objects with their origin itself, but then every
// object has annotations while it is patched, and a patch that Flux would
// reject, because there are none, applies here.
func (r *Result) Locate(o Object) (Position, bool) { return r.LocateRef(o.Ref()) }

// LocateRef is Locate for an object that is known by its name alone. Without an
// API version it is of any group.
func (r *Result) LocateRef(o flux.Ref) (Position, bool) {
	r.indexed.Do(r.index)
	// From the name as it is written to what a build may make of it: the
	// namespace set (targetNamespace), the name given a prefix or a suffix,
	// variables replaced.
	matches := []func(written) bool{
		func(w written) bool { return w.Name == o.Name && w.Namespace == o.Namespace },
		func(w written) bool { return w.Name == o.Name && w.Namespace == "" },
		func(w written) bool { return w.Name == o.Name },
		func(w written) bool { return w.Name != "" && strings.Contains(o.Name, w.Name) },
		func(w written) bool { return strings.Contains(w.Name, "$") && matchesTemplate(w.Name, o.Name) },
	}
	candidates := r.written[groupKind{o.Group(), o.Kind}]
	if o.APIVersion == "" {
		candidates = nil
		for key, all := range r.written {
			if key.kind == o.Kind {
				candidates = append(candidates, all...)
			}
		}
	}
	for _, match := range matches {
		var found []written
		for _, w := range candidates {
			if match(w) {
				found = append(found, w)
			}
		}
		if len(found) == 1 {
			return Position{File: found[0].file, Line: found[0].Line}, true
		}
		if len(found) > 1 {
			break
		}
	}
	return Position{}, false
}

// index sorts what the tier's files write by kind.
func (r *Result) index() {
	r.written = map[groupKind][]written{}
	for _, file := range r.manifests {
		for _, d := range r.tree.Documents(file) {
			key := groupKind{d.Group(), d.Kind}
			r.written[key] = append(r.written[key], written{d, filepath.ToSlash(file)})
		}
	}
}

var variable = regexp.MustCompile(`\$\\\{[^}]*\\\}`)

// matchesTemplate is true when the name may be what became of the template.
func matchesTemplate(template, name string) bool {
	pattern := variable.ReplaceAllString(regexp.QuoteMeta(template), ".+")
	matched, err := regexp.MatchString("^"+pattern+"$", name)
	return err == nil && matched
}

// LocateField finds the line of a field of the object that begins at a
// position: LocateField(at, "spec", "dependsOn"). Where the object does not
// have it, it is the last field of the path that is there, or the object
// itself. The tree must still be open; the file is parsed again.
func (t *Tree) LocateField(at Position, path ...string) Position {
	name, err := t.Path(at.File)
	if err != nil {
		return at
	}
	content, err := os.ReadFile(name) // below our own root
	if err != nil {
		return at
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil || len(document.Content) == 0 {
			return at
		}
		if object := objectAt(document.Content[0], at.Line); object != nil {
			return Position{File: at.File, Line: fieldLine(object, path)}
		}
	}
}

// objectAt is the object of a document that begins at the line: the document,
// or an item of a list.
func objectAt(object *yaml.Node, line int) *yaml.Node {
	if object.Kind != yaml.MappingNode {
		return nil
	}
	if object.Line == line {
		return object
	}
	if items := field(object, "items"); items != nil {
		for _, item := range items.Content {
			if item.Line == line {
				return item
			}
		}
	}
	return nil
}

func fieldLine(node *yaml.Node, path []string) int {
	line := node.Line
	for _, name := range path {
		if node.Kind != yaml.MappingNode {
			return line
		}
		next := -1
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				next = i
			}
		}
		if next < 0 {
			return line
		}
		line, node = node.Content[next].Line, node.Content[next+1]
	}
	return line
}
