// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position is a place in a file of the tree.
type Position struct {
	// File is relative to the root of the tree, with slashes.
	File string
	// Line counts from 1.
	Line int
}

// Locate finds where the object is written, among the files that its tier was
// built from. It answers false for what is generated, and when several files
// write an object of that name. The tree must still be open.
//
// kustomize can annotate objects with their origin itself, but then every
// object has annotations while it is patched, and a patch that Flux would
// reject, because there are none, applies here.
func (r *Result) Locate(o Object) (Position, bool) {
	var exact, renamed []Position
	for _, file := range r.manifests {
		content, err := os.ReadFile(filepath.Join(r.tree.root, file)) // below our own root
		if err != nil || !bytes.Contains(content, []byte(o.GetKind())) {
			continue
		}
		for _, d := range documents(content) {
			if d.kind != o.GetKind() || group(d.apiVersion) != o.GroupVersionKind().Group {
				continue
			}
			at := Position{File: filepath.ToSlash(file), Line: d.line}
			switch {
			case d.name == o.GetName() && (d.namespace == "" || d.namespace == o.GetNamespace()):
				exact = append(exact, at)
			case d.name != "" && strings.Contains(o.GetName(), d.name):
				// namePrefix and nameSuffix
				renamed = append(renamed, at)
			}
		}
	}
	switch {
	case len(exact) == 1:
		return exact[0], true
	case len(exact) == 0 && len(renamed) == 1:
		return renamed[0], true
	}
	return Position{}, false
}

type document struct {
	apiVersion, kind, namespace, name string
	line                              int
}

// documents reads the identities of the objects in a file. What does not parse
// ends the list: such a file is in no build.
func documents(content []byte) []document {
	var all []document
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return all
		}
		if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
			continue
		}
		object := node.Content[0]
		meta := field(object, "metadata")
		all = append(all, document{
			apiVersion: text(field(object, "apiVersion")), kind: text(field(object, "kind")),
			namespace: text(field(meta, "namespace")), name: text(field(meta, "name")),
			line: object.Line,
		})
	}
}

func field(node *yaml.Node, name string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return node.Value
}

func group(apiVersion string) string {
	group, _, versioned := strings.Cut(apiVersion, "/")
	if !versioned {
		return ""
	}
	return group
}
