// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Document is one object as a file of a tree writes it, before kustomize and
// Flux change it.
type Document struct {
	flux.Ref
	// Line is where the object begins, from 1.
	Line int
}

// library keeps what the files of a tree hold: each is read for it once. It is
// safe for concurrent use.
type library struct {
	mu    sync.Mutex
	files map[string]func() []Document
}

// Documents are the objects that the file writes, in order; name is relative to
// the root of the tree. What does not parse ends the list. The file is looked
// at once, however often it is asked for.
func (t *Tree) Documents(name string) []Document {
	name = filepath.ToSlash(filepath.Clean(name))
	t.library.mu.Lock()
	read, known := t.library.files[name]
	if !known {
		read = sync.OnceValue(func() []Document {
			path, err := t.Path(name)
			if err != nil {
				return nil
			}
			content, err := os.ReadFile(path) // below our own root
			if err != nil {
				return nil
			}
			return documents(content)
		})
		if t.library.files == nil {
			t.library.files = map[string]func() []Document{}
		}
		t.library.files[name] = read
	}
	t.library.mu.Unlock()
	return read()
}

// documents reads the identities of the objects in a file. Nearly all files are
// written in block style with an identity of plain values; a parser is called
// for the others alone, because it takes longer than all the rest.
func documents(content []byte) []Document {
	if all, ok := scanDocuments(content); ok {
		return all
	}
	return parseDocuments(content)
}

// parseDocuments is documents with a parser.
func parseDocuments(content []byte) []Document {
	var all []Document
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return all
		}
		if len(node.Content) > 0 {
			all = appendDocuments(all, node.Content[0], false)
		}
	}
}

func appendDocuments(all []Document, object *yaml.Node, item bool) []Document {
	if object.Kind != yaml.MappingNode {
		return all
	}
	kind, meta := text(field(object, "kind")), field(object, "metadata")
	if items := field(object, "items"); !item && strings.HasSuffix(kind, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for _, each := range items.Content {
			all = appendDocuments(all, each, true)
		}
		return all
	}
	return append(all, Document{Line: object.Line, Ref: flux.Ref{
		APIVersion: text(field(object, "apiVersion")), Kind: kind,
		Namespace: text(field(meta, "namespace")), Name: text(field(meta, "name")),
	}})
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
	if node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}
