// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// webhookChart is a webhook that adds the variables of one ConfigMap or Secret
// to spec.postBuild of every Kustomization
// (github.com/xunholy/fluxcd-kustomize-mutating-webhook).
const webhookChart = "kustomize-mutating-webhook"

// injects is true where something on the cluster may add variables to
// Kustomizations: the webhook, or a policy of the tree's own.
func (r *Repository) injects(ctx context.Context) (bool, error) {
	s := r.survey
	if len(s.injectors) > 0 || slices.ContainsFunc(s.releases, func(m *manifest) bool { return s.chartOf(m) == webhookChart }) {
		return true, nil
	}
	installed, err := r.installed(ctx)
	return slices.ContainsFunc(installed, func(i Installed) bool { return i.Name == webhookChart || i.Chart == webhookChart }), err
}

// chartOf is the name of the chart of a HelmRelease.
func (s *survey) chartOf(release *manifest) string {
	if name := release.text("spec", "chart", "spec", "chart"); name != "" {
		return path.Base(name)
	}
	ref := release.text("spec", "chartRef", "name")
	for _, source := range s.sources {
		if ref != "" && source.object.GetName() == ref {
			return path.Base(source.text("spec", "url"))
		}
	}
	return ""
}

// mutates is true of what changes Kustomizations when they are created: a
// webhook, a policy of Kubernetes or one of Kyverno.
func mutates(group, kind string, node *yaml.Node) bool {
	switch {
	case group == "admissionregistration.k8s.io" && strings.HasPrefix(kind, "Mutating"):
		return matches(node)
	case strings.HasSuffix(group, "kyverno.io") && strings.Contains(kind, "Policy"):
		return holds(node, "postBuild") && (holds(node, flux.KustomizeGroup) || holds(node, flux.KustomizationKind))
	}
	return false
}

// matches is true when a rule in the object is about the group of
// Kustomizations by its name. A label of Flux that it looks at is none.
func matches(node *yaml.Node) bool {
	groups := valueOf(node, "apiGroups").Content
	return slices.ContainsFunc(groups, func(n *yaml.Node) bool { return n.Value == flux.KustomizeGroup }) ||
		slices.ContainsFunc(node.Content, matches)
}

// holds is true when a text of the object holds the word.
func holds(node *yaml.Node, word string) bool {
	return strings.Contains(node.Value, word) || slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return holds(n, word) })
}
