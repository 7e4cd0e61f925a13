// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// installedBy says who installs the chart of the release before Flux does: the
// release of that name in that namespace, or one of the same chart.
func (m *model) installedBy(r *release) string {
	name, namespace := r.spec.ReleaseName, r.spec.TargetNamespace
	if name == "" {
		name = r.ref.Name
	}
	if namespace == "" {
		namespace = r.ref.Namespace
	}
	for _, i := range m.bootstrap {
		if i.Project != "" {
			continue // its CRDs, as a rule, and not what the chart installs
		}
		if i.Name == name && (i.Namespace == namespace || i.Namespace == "") || i.Chart != "" && i.Chart == r.chart.Name {
			return i.By
		}
	}
	return ""
}

// done is when something of the release's chart is there: from the beginning
// where the chart is.
func (r *release) done(m *model, otherwise fact) fact {
	if r.by != "" {
		return m.add()
	}
	return otherwise
}

// bootstrapped says who registers the kind before Flux is there, by a chart
// that no HelmRelease of the cluster installs.
func (m *model) bootstrapped(gk schema.GroupKind) string {
	for _, i := range m.bootstrap {
		if i.Project != "" {
			if m.ofProject(i.Project, gk) {
				return i.By
			}
			continue
		}
		for _, name := range []string{i.Chart, i.Name} {
			row := m.book.Chart(name, "")
			if name != "" && row != nil && registers(row, gk) {
				return i.By
			}
		}
	}
	return ""
}

// ofProject is true when the manifests of a project register the kind: those
// that no controller has to make.
func (m *model) ofProject(project string, gk schema.GroupKind) bool {
	return slices.ContainsFunc(m.book.Relations(), func(r knowledge.Relation) bool {
		named := r.ID == path.Base(project) ||
			slices.ContainsFunc(r.Sources, func(source string) bool { return strings.HasPrefix(source, project+" ") })
		return named &&
			slices.ContainsFunc(r.Registers, func(k knowledge.Kind) bool { return k.GroupKind() == gk })
	})
}

func registers(row *knowledge.Chart, gk schema.GroupKind) bool {
	kinds, groups := row.Registers, row.Groups
	for _, part := range row.Parts {
		kinds, groups = slices.Concat(kinds, part.Registers), slices.Concat(groups, part.Groups)
	}
	return slices.Contains(groups, gk.Group) ||
		slices.ContainsFunc(kinds, func(k knowledge.Kind) bool { return k.GroupKind() == gk })
}

// madeNamespace says who makes the namespace before Flux is there: a release in
// it does.
func (m *model) madeNamespace(name string) bool {
	return slices.ContainsFunc(m.bootstrap, func(i Installed) bool { return i.Namespace == name })
}
