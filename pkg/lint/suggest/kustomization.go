// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"reflect"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
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

// writeTiers writes the Kustomizations of the new tiers behind that of the old
// one, in its file: what builds the one builds the others.
func (s *split) writeTiers() error {
	if strings.HasSuffix(s.manifest.path, ".json") {
		return refuse("%s is JSON", s.manifest.path)
	}
	for i := len(s.tiers) - 1; i >= 0; i-- { // each is put right behind the old one
		if err := s.newGate(i); err != nil {
			return err
		}
		if err := s.writeTier(s.tiers[i]); err != nil {
			return err
		}
	}
	return nil
}

// newGate is what the new tier lacks for the one behind it.
func (s *split) newGate(i int) error {
	if i+1 == len(s.tiers) {
		return nil
	}
	old := specOf(s.old)
	var all []brought
	for _, k := range s.needs {
		if k.level == i+1 {
			b := brought{k.provider, k.Kind}
			b.Tier = s.tiers[i].ref
			all = append(all, b)
		}
	}
	spec, _ := s.old.Kustomization.Object["spec"].(map[string]any)
	_, said := spec["wait"]
	g, err := s.gateOn(s.tiers[i].ref, kustomizev1.KustomizationSpec{Wait: old.Wait}, !said, all)
	if err != nil {
		s.note("No gate: " + s.tiers[i+1].ref.Name + " may need a retry. A gate " + err.Error() + ".")
		return nil
	}
	s.tiers[i].gate = g
	if !g.empty() {
		s.noteGate(s.tiers[i].ref, g)
	}
	return nil
}

func (s *split) writeTier(n *newTier) error {
	f := s.manifest.file
	old, err := f.find(s.manifest.at)
	if err != nil {
		return err
	}
	object, err := s.document(old.object, n)
	if err != nil {
		return err
	}
	lines, err := encode(object, f.step(old), f.indented(old))
	if err != nil {
		return err
	}
	f.splice(old.to, old.to, append([]string{"---"}, lines...)...)
	written, err := f.find(addressOf(object))
	if err != nil {
		return err
	}
	var want, got any
	if object.Decode(&want) != nil || written.object.Decode(&got) != nil || !reflect.DeepEqual(want, got) {
		return refuse("%s is written in a way to which no document can be added", f.path)
	}
	return nil
}

// document is the Kustomization of a new tier.
func (s *split) document(old *yaml.Node, n *newTier) (*yaml.Node, error) {
	spec, meta := field(old, "spec"), field(old, "metadata")
	if old.Style&yaml.FlowStyle != 0 || spec == nil || spec.Kind != yaml.MappingNode || field(spec, "<<") != nil || field(old, "<<") != nil {
		return nil, refuse("the manifest of %s is written in a way that cannot be copied", s.old.Tier.Name)
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
	add(newMeta, "name", text(n.ref.Name))
	for _, key := range []string{"namespace", "labels", "annotations"} {
		if value := field(meta, key); value != nil {
			add(newMeta, key, without(plain(value), "lint.kubestandup.dev/ignore"))
		}
	}
	add(object, "metadata", newMeta)
	behind := &yaml.Node{Kind: yaml.SequenceNode}
	for _, on := range n.behind {
		behind.Content = append(behind.Content, dependsOn(n.ref, on))
	}
	checks := &yaml.Node{Kind: yaml.SequenceNode, Content: append(s.checksOf(spec, n), n.gate.checks...)}
	exprs := &yaml.Node{Kind: yaml.SequenceNode, Content: append(s.exprsOf(spec, n), n.gate.exprs...)}
	own := map[string]*yaml.Node{
		"path": text(s.spelled(scalar(field(spec, "path")), n.dir)), "dependsOn": behind, "healthChecks": checks, "healthCheckExprs": exprs,
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
	if n.gate.wait {
		add(newSpec, "wait", yes())
	}
	add(object, "spec", newSpec)
	return object, nil
}

// spelled writes a folder as the old tier's is.
func (s *split) spelled(old, dir string) string {
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
func (s *split) checksOf(spec *yaml.Node, n *newTier) []*yaml.Node {
	return pick(field(spec, "healthChecks"), func(item *yaml.Node) bool { return s.checks(item, n) })
}

func (s *split) checks(item *yaml.Node, n *newTier) bool {
	return slices.ContainsFunc(n.users, func(o build.Object) bool {
		namespace := scalar(field(item, "namespace"))
		return scalar(field(item, "kind")) == o.GetKind() && scalar(field(item, "name")) == o.GetName() && (namespace == "" || namespace == o.GetNamespace())
	})
}

// exprsOf are the expressions of the old tier about kinds of the new.
func (s *split) exprsOf(spec *yaml.Node, n *newTier) []*yaml.Node {
	return pick(field(spec, "healthCheckExprs"), func(item *yaml.Node) bool {
		gk := schema.FromAPIVersionAndKind(scalar(field(item, "apiVersion")), scalar(field(item, "kind"))).GroupKind()
		return slices.ContainsFunc(n.users, func(o build.Object) bool { return o.GroupVersionKind().GroupKind() == gk })
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
func (s *split) moveChecks() error {
	err := s.manifest.removeItems(s.manifest.at, "spec", "healthChecks", func(item *yaml.Node) bool {
		return slices.ContainsFunc(s.tiers, func(n *newTier) bool { return s.checks(item, n) })
	})
	return err
}
