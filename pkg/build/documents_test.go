// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// documentStyles are files as people write them. scanned is true of those that
// need no parser.
func documentStyles() []struct {
	name, content string
	scanned       bool
} {
	return []struct {
		name, content string
		scanned       bool
	}{
		{"empty", "", true},
		{"comments alone", "# nothing\n---\n# yet\n", true},
		{"block style", configMap("a", "k: v"), true},
		{"several", "# one\n---\n" + configMap("a", "k: v") + "---\n\n---\n" + configMap("b", "k: v"), true},
		{"windows", "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n", true},
		{"comment after the marker", "--- # why\napiVersion: v1\nkind: A\nmetadata:\n  name: a # why\n", true},
		{"quoted", "apiVersion: \"v1\"\nkind: 'A'\nmetadata:\n  name: \"a\"\n  namespace: 'b'\n", true},
		{"labels before the name", "kind: A\napiVersion: x.example.com/v1\nmetadata:\n  labels:\n    name: wrong\n    app: a\n  annotations:\n    text: |\n      name: wrong\n  name: right\n", true},
		{"a text that looks like an object", "apiVersion: v1\nkind: A\nmetadata:\n    name: a\ndata:\n  x: |\n    ---\n    kind: B\n    metadata:\n      name: b\n", true},
		{"list as far left as its key", "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  finalizers:\n  - x\nrules:\n- a: b\n  name: c\n- x\nlast: 1\n", true},
		{"a variable", "apiVersion: v1\nkind: A\nmetadata:\n  name: ${NAME}-a\n", true},
		{"metadata in flow style", "apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: b}\n", false},
		{"all in flow style", "{apiVersion: v1, kind: A, metadata: {name: a}}\n", false},
		{"content after the marker", "--- {kind: A}\n", false},
		{"a list of objects", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: a\n- kind: B\n", false},
		{"a list of a kind", "apiVersion: v1\nkind: ConfigMapList\nitems: []\n", false},
		{"a kind that ends in List", "apiVersion: example.com/v1\nkind: AllowList\nmetadata:\n  name: a\n", false},
		{"anchors", "apiVersion: v1\nkind: A\nmetadata:\n  name: &name a\n  namespace: *name\n", false},
		{"a sequence", "- a\n- b\n", false},
		{"a number for a name", "apiVersion: v1\nkind: A\nmetadata:\n  name: 12\n", true},
		{"a tagged name", "apiVersion: v1\nkind: A\nmetadata:\n  name: !!str 12\n", false},
		{"a folded name", "apiVersion: v1\nkind: A\nmetadata:\n  name: >-\n    a\n", false},
		{"tabs in a text", "apiVersion: v1\nkind: A\nmetadata:\n  name: a\ndata:\n  x: |\n    a\tb\n\tc\n", false},
		{"quoted keys", "\"apiVersion\": v1\n\"kind\": A\n", false},
		{"end marker", "kind: A\n...\n---\nkind: B\n", false},
	}
}

func TestDocuments(t *testing.T) {
	for _, tt := range documentStyles() {
		t.Run(tt.name, func(t *testing.T) {
			content := []byte(tt.content)
			if _, scanned := scanDocuments(content); scanned != tt.scanned {
				t.Errorf("read without a parser: %t, want %t", scanned, tt.scanned)
			}
			if got, want := documents(content), parseDocuments(content); !slices.Equal(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestDocumentsReadOnce asks from many sides at the same time, and again after
// the file is gone.
func TestDocumentsReadOnce(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"a/b.yaml": configMap("a", "k: v")}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := tree.Documents("a/b.yaml"); len(got) != 1 || got[0].Name != "a" {
				t.Errorf("got %v", got)
			}
		})
	}
	all.Wait()
	if err := os.Remove(filepath.Join(tree.root, "a/b.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := tree.Documents("./a/b.yaml"); len(got) != 1 {
		t.Errorf("the file was read again: %v", got)
	}
	if got := tree.Documents("../absent.yaml"); got != nil {
		t.Errorf("got %v of a file that is not there", got)
	}
}

func TestReads(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{
		"plain/a.yaml": "", "plain/sub/b.yml": "", "plain/c.txt": "", "plain/own/kustomization.yaml": "resources: [d.yaml]\n", "plain/own/d.yaml": "", "plain/own/not.yaml": "",
		"overlay/kustomization.yaml": "resources: [../base, /plain/a.yaml, ../../outside, absent.yaml]\ncomponents: [../part]\nbases: [../old]\n",
		"base/kustomization.yml":     "resources: [e.yaml, ../overlay]\n", "base/e.yaml": "",
		"part/Kustomization": "kind: Component\nresources: [f.yaml]\n", "part/f.yaml": "",
		"old/kustomization.yaml":    "resources: {\n",
		"broken/kustomization.yaml": "resources: {\n",
	}))
	tests := []struct {
		folder                    string
		manifests, kustomizations []string
	}{
		{"plain", []string{"plain/a.yaml", "plain/own/d.yaml", "plain/sub/b.yml"}, []string{"plain/own"}},
		{"overlay", []string{"base/e.yaml", "part/f.yaml"}, []string{"base", "old", "overlay", "part"}},
		{"broken", nil, []string{"broken"}},
		{"absent", nil, nil},
		{"../..", []string{"base/e.yaml", "part/f.yaml", "plain/a.yaml", "plain/own/d.yaml", "plain/sub/b.yml"}, []string{"base", "broken", "old", "overlay", "part", "plain/own"}},
	}
	for _, tt := range tests {
		manifests, kustomizations := tree.Reads(tt.folder)
		if !slices.Equal(manifests, tt.manifests) || !slices.Equal(kustomizations, tt.kustomizations) {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.folder, manifests, kustomizations, tt.manifests, tt.kustomizations)
		}
	}
}

// FuzzDocuments: what is read without a parser is what a parser reads, of
// every file that parses.
func FuzzDocuments(f *testing.F) {
	for _, tt := range documentStyles() {
		f.Add([]byte(tt.content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got, scanned := scanDocuments(content)
		decoder := yaml.NewDecoder(bytes.NewReader(content))
		for {
			var node yaml.Node
			if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return
			}
		}
		if want := parseDocuments(content); scanned && !slices.Equal(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}
