// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// operatorGroup is the API group of flux-operator.
const operatorGroup = "fluxcd.controlplane.io"

// manifest is an object of Flux as a file of the tree writes it.
type manifest struct {
	build.Position
	object *unstructured.Unstructured
}

func (m *manifest) ref() flux.Ref {
	return flux.Ref{APIVersion: m.object.GetAPIVersion(), Kind: m.object.GetKind(), Namespace: m.object.GetNamespace(), Name: m.object.GetName()}
}

func (m *manifest) text(path ...string) string {
	value, _, _ := unstructured.NestedString(m.object.Object, path...)
	return value
}

// survey is what a tree holds of Flux, before anything is built.
type survey struct {
	tree *build.Tree
	// All are by file and line.
	kustomizations, instances, releases, sources, generators []*manifest
	// charts are the values of the chart flux-instance that stand in a file of
	// their own, by file.
	values map[string]map[string]any
	// folders are those with a kustomization file.
	folders []string
	// manifests are all manifests; injectors those that may change
	// Kustomizations when they are created.
	manifests, injectors []string
	// files counts the manifests; unread are those that name a kind of Flux's
	// and do not parse, templated those whose object's name only a variable or a
	// template knows.
	files             int
	unread, templated []string
}

// look finds what is Flux's in the tree. Whatever does not decode is left out:
// a tree holds templates, charts and fragments, too.
func look(ctx context.Context, tree *build.Tree) (*survey, error) {
	s := &survey{tree: tree, values: map[string]map[string]any{}}
	root, err := tree.Path(".")
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if build.IsKustomization(name) {
			s.folders = append(s.folders, folderOf(name))
			return nil
		}
		if !build.IsManifest(name) {
			return nil
		}
		s.files++
		s.manifests = append(s.manifests, name)
		content, err := os.ReadFile(path) // of our own copy
		if err != nil {
			return err
		}
		s.file(name, content)
		return nil
	})
	return s, err
}

func (s *survey) file(name string, content []byte) {
	flux := bytes.Contains(content, []byte("fluxcd"))
	values := bytes.Contains(content, []byte("instance:")) && bytes.Contains(content, []byte("sync:"))
	if !flux && !values {
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			if flux {
				s.unread = append(s.unread, name)
			}
			return
		case len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode:
			continue
		}
		if values {
			s.valuesOf(name, &node)
		}
		if !flux {
			continue
		}
		for _, object := range objectsOf(node.Content[0]) {
			s.object(name, object)
		}
	}
}

// objectsOf is the object of a document, or the items of a list.
func objectsOf(object *yaml.Node) []*yaml.Node {
	if !strings.HasSuffix(valueOf(object, "kind").Value, "List") {
		return []*yaml.Node{object}
	}
	return valueOf(object, "items").Content
}

func valueOf(object *yaml.Node, key string) *yaml.Node {
	for i := 0; object.Kind == yaml.MappingNode && i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value == key {
			return object.Content[i+1]
		}
	}
	return &yaml.Node{}
}

func (s *survey) valuesOf(file string, node *yaml.Node) {
	if sync := valueOf(valueOf(node.Content[0], "instance"), "sync"); sync.Kind != yaml.MappingNode {
		return
	}
	if values, ok := decoded(node.Content[0]); ok {
		s.values[file] = values
	}
}

// object takes one object that may be Flux's.
func (s *survey) object(file string, node *yaml.Node) {
	apiVersion, kind := valueOf(node, "apiVersion").Value, valueOf(node, "kind").Value
	group, _, _ := strings.Cut(apiVersion, "/")
	var list *[]*manifest
	switch {
	case group == flux.KustomizeGroup && kind == flux.KustomizationKind:
		if valueOf(valueOf(node, "spec"), "sourceRef").Kind == 0 {
			return // a patch of one
		}
		list = &s.kustomizations
	case group == flux.SourceGroup:
		list = &s.sources
	case group == generatorGroup && kind == "ArtifactGenerator":
		list = &s.generators
	case group == operatorGroup && kind == "FluxInstance":
		list = &s.instances
	case group == flux.HelmGroup && kind == flux.HelmReleaseKind:
		list = &s.releases
	case group == operatorGroup && kind == "ResourceSet":
		s.resources(file, node)
		return
	default:
		if mutates(group, kind, node) {
			s.injectors = append(s.injectors, file)
		}
		return
	}
	content, ok := decoded(node)
	m := &manifest{Position: build.Position{File: file, Line: node.Line}, object: &unstructured.Unstructured{Object: content}}
	_, isMap := content["metadata"].(map[string]any)
	switch {
	case !ok, !isMap:
		s.unread = append(s.unread, file)
	case len(validation.IsDNS1123Subdomain(m.object.GetName())) > 0:
		s.templated = append(s.templated, file)
	default:
		*list = append(*list, m)
	}
}

// resources takes the HelmReleases and their sources that a ResourceSet makes.
// Of one that is a template nothing is known before it is filled in.
func (s *survey) resources(file string, set *yaml.Node) {
	for _, object := range valueOf(valueOf(set, "spec"), "resources").Content {
		group, _, _ := strings.Cut(valueOf(object, "apiVersion").Value, "/")
		if group == flux.HelmGroup || group == flux.SourceGroup {
			s.object(file, object)
		}
	}
}

// decoded is the content of a YAML mapping, as a JSON decoder would have it.
func decoded(node *yaml.Node) (map[string]any, bool) {
	budget := maxValues
	if !small(node, &budget) {
		return nil, false
	}
	var content map[string]any
	if node.Decode(&content) != nil {
		return nil, false
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, false
	}
	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON(raw) == nil {
		return object.Object, true
	}
	var plain map[string]any
	return plain, json.Unmarshal(raw, &plain) == nil
}

// maxValues is how many values an object of Flux's may hold. An alias is copied
// each time that it is named.
const maxValues = 100_000

func small(node *yaml.Node, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	if node.Kind == yaml.AliasNode {
		return small(node.Alias, budget)
	}
	for _, child := range node.Content {
		if !small(child, budget) {
			return false
		}
	}
	return true
}

// inside is true when name is the folder, or below it. Both are relative to the
// root, with slashes.
func inside(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}
