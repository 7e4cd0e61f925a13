// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// copied are the fields of a tier that what is split off gets too: how it is
// fetched, built and applied. Patches, images and components do not touch the
// objects, or they would not be moved.
func copied() []string {
	return []string{
		"interval", "retryInterval", "timeout", "sourceRef", "prune", "deletionPolicy", "wait", "force", "targetNamespace", "namePrefix", "nameSuffix",
		"decryption", "postBuild", "serviceAccountName", "kubeConfig", "commonMetadata", "ignore",
	}
}

// document is the Kustomization of a new tier.
func (s *split) document(old *yaml.Node, o *owner, at int) (*yaml.Node, error) {
	spec, meta := field(old, "spec"), field(old, "metadata")
	if spec == nil || spec.Kind != yaml.MappingNode || field(spec, "<<") != nil || field(old, "<<") != nil {
		return nil, refuse("the manifest of %s is written in a way that cannot be copied", o.old.Tier.Name)
	}
	object := &yaml.Node{Kind: yaml.MappingNode}
	add := func(to *yaml.Node, key string, value *yaml.Node) {
		if len(value.Content) > 0 || value.Kind == yaml.ScalarNode {
			to.Content = append(to.Content, text(key), value)
		}
	}
	add(object, "apiVersion", plain(field(old, "apiVersion")))
	add(object, "kind", plain(field(old, "kind")))
	newMeta := &yaml.Node{Kind: yaml.MappingNode}
	add(newMeta, "name", text(o.refs[at].Name))
	for _, key := range []string{"namespace", "labels", "annotations"} {
		if value := field(meta, key); value != nil {
			add(newMeta, key, without(plain(value), "lint.kubestandup.dev/ignore"))
		}
	}
	add(object, "metadata", newMeta)
	behind := &yaml.Node{Kind: yaml.SequenceNode}
	for _, on := range o.behind[at] {
		behind.Content = append(behind.Content, dependsOn(o.refs[at], on))
	}
	checks := &yaml.Node{Kind: yaml.SequenceNode, Content: append(o.checksOf(spec, at), o.gates[at].checks...)}
	exprs := &yaml.Node{Kind: yaml.SequenceNode, Content: append(o.exprsOf(spec, at), o.gates[at].exprs...)}
	own := map[string]*yaml.Node{
		"path": text(spelled(scalar(field(spec, "path")), s.tiers[at].dir)), "dependsOn": behind, "healthChecks": checks, "healthCheckExprs": exprs,
	}
	newSpec := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(spec.Content); i += 2 {
		key := spec.Content[i].Value
		if value, ours := own[key]; ours {
			add(newSpec, key, value)
			delete(own, key)
		} else if slices.Contains(copied(), key) {
			add(newSpec, key, plain(spec.Content[i+1]))
		}
	}
	for _, key := range []string{"path", "dependsOn", "healthChecks", "healthCheckExprs"} {
		if value := own[key]; value != nil {
			add(newSpec, key, value)
		}
	}
	if o.gates[at].wait {
		add(newSpec, "wait", yes())
	}
	add(object, "spec", newSpec)
	return object, nil
}

// spelled writes a folder as the old tier's is.
func spelled(old, dir string) string {
	if strings.HasPrefix(old, "./") || old == "" || old == "." {
		return "./" + dir
	}
	if strings.HasPrefix(old, "/") {
		return "/" + dir
	}
	return dir
}

func without(node *yaml.Node, key string) *yaml.Node {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				node.Content = slices.Delete(node.Content, i, i+2)
				break
			}
		}
	}
	return node
}

// checksOf are the health checks of the old tier that name objects of the new.
func (o *owner) checksOf(spec *yaml.Node, at int) []*yaml.Node {
	return pick(field(spec, "healthChecks"), func(item *yaml.Node) bool { return o.checks(item, at) })
}

func (o *owner) checks(item *yaml.Node, at int) bool {
	return slices.ContainsFunc(o.users[at], func(o build.Object) bool {
		namespace := scalar(field(item, "namespace"))
		return scalar(field(item, "kind")) == o.GetKind() && scalar(field(item, "name")) == o.GetName() && (namespace == "" || namespace == o.GetNamespace())
	})
}

// exprsOf are the expressions of the old tier about kinds of the new.
func (o *owner) exprsOf(spec *yaml.Node, at int) []*yaml.Node {
	return pick(field(spec, "healthCheckExprs"), func(item *yaml.Node) bool {
		gk := schema.FromAPIVersionAndKind(scalar(field(item, "apiVersion")), scalar(field(item, "kind"))).GroupKind()
		return slices.ContainsFunc(o.users[at], func(o build.Object) bool { return o.GroupVersionKind().GroupKind() == gk })
	})
}

func pick(items *yaml.Node, which func(*yaml.Node) bool) []*yaml.Node {
	var picked []*yaml.Node
	if items == nil || items.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range items.Content {
		if which(item) {
			picked = append(picked, plain(item))
		}
	}
	return picked
}

// moveChecks takes the health checks away from the old tier that name what it no
// longer applies: it would wait for tiers that wait for it.
func (s *split) moveChecks(o *owner) error {
	gone := func(item *yaml.Node) bool {
		for i := range s.tiers {
			if o.checks(item, i) {
				return true
			}
		}
		return false
	}
	return o.manifest.removeItems(o.manifest.at, "spec", "healthChecks", gone)
}
