// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// earlier knows which Kustomizations are applied before which, by edges and by
// containment, those that are not on the cluster yet included.
type earlier struct {
	before map[string][]string
	known  map[string]map[string]bool
}

// earlier is the order of what is on the cluster and of what it builds.
func (l *look) earlier(b *builds) *earlier {
	e := &earlier{before: map[string][]string{}, known: map[string]map[string]bool{}}
	for i := range l.snapshot.Tiers {
		t := &l.snapshot.Tiers[i]
		if t.Ref.Kind != flux.KustomizationKind {
			continue
		}
		for _, d := range t.DependsOn {
			e.add(t.Ref.Key(), d.Ref.Key())
		}
		if t.Owner.Name != "" {
			e.add(t.Ref.Key(), t.Owner.Key())
		}
	}
	for i := range b.all {
		f := &b.all[i]
		for _, parent := range f.Parents {
			e.add(f.Tier.Key(), parent.Key())
		}
		edges, _, _ := unstructured.NestedSlice(f.Kustomization.Object, "spec", "dependsOn")
		for _, edge := range edges {
			m, _ := edge.(map[string]any)
			ref := flux.Ref{Namespace: f.Tier.Namespace}
			ref.Name, _ = m["name"].(string)
			if ns, _ := m["namespace"].(string); ns != "" {
				ref.Namespace = ns
			}
			e.add(f.Tier.Key(), ref.Key())
		}
	}
	return e
}

func (e *earlier) add(of, before string) {
	if of != before {
		e.before[of] = append(e.before[of], before)
	}
}

// than is true when tier a is applied before tier b, both Kustomizations.
func (e *earlier) than(b, a flux.Ref) bool {
	all, ok := e.known[b.Key()]
	if !ok {
		all = map[string]bool{}
		e.collect(b.Key(), all)
		e.known[b.Key()] = all
	}
	return all[a.Key()]
}

// collect walks on a stack of its own: a chain may be long, and may be a loop.
func (e *earlier) collect(of string, into map[string]bool) {
	for stack := []string{of}; len(stack) > 0; {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, before := range e.before[next] {
			if !into[before] {
				into[before] = true
				stack = append(stack, before)
			}
		}
	}
}
