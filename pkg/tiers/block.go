// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/cel"
	celtypes "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Reason says how something blocks a tier.
type Reason string

// The ways to be blocked.
const (
	// Missing: the object does not exist.
	Missing Reason = "missing"
	// WrongKind: nothing of that kind exists, a tier of the other kind does.
	// Flux never follows an edge from one kind to the other.
	WrongKind Reason = "wrong-kind"
	// NotReady: it exists and is not Ready, or its Ready is of an older spec.
	NotReady Reason = "not-ready"
	// StaleRevision: it is Ready, at another revision of the shared source.
	StaleRevision Reason = "stale-revision"
	// Expression: the edge's readyExpr is false, or fails.
	Expression Reason = "ready-expr"
	// NoArtifact: the source has not produced anything yet.
	NoArtifact Reason = "no-artifact"
	// Unhealthy: a child of a tier that waits for its children.
	Unhealthy Reason = "unhealthy"
)

// Blocker is one thing that keeps a tier from coming up.
type Blocker struct {
	On      flux.Ref
	Reason  Reason
	Message string
}

const (
	readyCondition       = "Ready"
	reconcilingCondition = "Reconciling"
	stalledCondition     = "Stalled"

	dependencyNotReady = "DependencyNotReady"
	healthCheckFailed  = "HealthCheckFailed"
	artifactFailed     = "ArtifactFailed"
)

// findBlockers decides as the controllers do what a tier waits for
// (kustomize-controller internal/controller Reconcile, v1.9.6: the source
// first, then every dependency), with the difference that it goes on after the
// first: the controllers name only that one.
func (g *Graph) findBlockers(n *Node) {
	if b, blocked := g.sourceBlocker(n); blocked {
		n.Blockers = append(n.Blockers, b)
	}
	for _, d := range n.DependsOn {
		if b, blocked := g.dependencyBlocker(n, d); blocked {
			n.Blockers = append(n.Blockers, b)
		}
	}
	for _, child := range n.Contains {
		if n.waitsFor(child) && !child.IsReady() {
			n.Blockers = append(n.Blockers, Blocker{
				child.Ref, Unhealthy,
				fmt.Sprintf("%s is not Ready, and %s waits for what it applies", child.Ref.Name, n.Ref.Name),
			})
		}
	}
}

func (g *Graph) sourceBlocker(n *Node) (Blocker, bool) {
	switch {
	case n.Source.Name == "": // a HelmRelease whose chart object was not made yet
		return Blocker{}, false
	case n.Origin == nil && g.reads(n.Source.Kind):
		return Blocker{n.Source, Missing, fmt.Sprintf("source %s does not exist", n.Source)}, true
	case n.Origin != nil && n.Origin.Artifact == nil:
		why := fmt.Sprintf("source %s has produced no artifact yet", n.Source)
		if c := meta.FindStatusCondition(n.Origin.Conditions, readyCondition); c != nil && c.Status == metav1.ConditionFalse {
			why += ": " + c.Message
		}
		return Blocker{n.Source, NoArtifact, why}, true
	}
	return Blocker{}, false
}

// reads is true when the snapshot would hold an object of the kind if it existed.
func (g *Graph) reads(kind string) bool {
	_, ok := flux.ResourceOf(g.snapshot.Served, kind)
	return ok
}

// dependencyBlocker is checkDependencies of kustomize-controller and
// helm-controller for one dependency.
func (g *Graph) dependencyBlocker(n *Node, d flux.Dependency) (Blocker, bool) {
	dep := g.nodes[key(d.Ref)]
	if dep == nil {
		return g.absent(d.Ref), true
	}
	if d.ReadyExpr != "" {
		ok, err := g.evaluate(d.ReadyExpr, n.Ref, dep.Ref)
		switch {
		case err != nil:
			return Blocker{dep.Ref, Expression, fmt.Sprintf("readyExpr on %s: %v", dep.Ref.Name, err)}, true
		case !ok:
			return Blocker{dep.Ref, Expression, fmt.Sprintf("readyExpr on %s is false", dep.Ref.Name)}, true
		}
		return Blocker{}, false // it replaces the built-in check
	}
	ready := meta.FindStatusCondition(dep.Conditions, readyCondition)
	switch {
	case ready == nil:
		return Blocker{dep.Ref, NotReady, dep.Ref.Name + " has not been reconciled yet"}, true
	case ready.Status == metav1.ConditionTrue && dep.Generation != dep.ObservedGeneration:
		return Blocker{dep.Ref, NotReady, fmt.Sprintf("%s is Ready, but at generation %d of its spec and not %d",
			dep.Ref.Name, dep.ObservedGeneration, dep.Generation)}, true
	case ready.Status != metav1.ConditionTrue || dep.Generation != dep.ObservedGeneration:
		return Blocker{dep.Ref, NotReady, dep.Ref.Name + " is not Ready"}, true
	case n.Ref.Kind == flux.KustomizationKind && n.Source == dep.Source && !n.atRevision(dep.LastAppliedRevision):
		return Blocker{dep.Ref, StaleRevision, fmt.Sprintf("%s is Ready at %s, and %s is at %s",
			dep.Ref.Name, orNone(dep.LastAppliedRevision), n.Source, n.SourceRevision())}, true
	}
	return Blocker{}, false
}

// absent explains a reference to a tier that does not exist.
func (g *Graph) absent(ref flux.Ref) Blocker {
	other := flux.Ref{Kind: flux.HelmReleaseKind, Namespace: ref.Namespace, Name: ref.Name}
	if ref.Kind == flux.HelmReleaseKind {
		other.Kind = flux.KustomizationKind
	}
	if g.nodes[other] != nil {
		return Blocker{ref, WrongKind, fmt.Sprintf("no %s %s exists, a %s of that name does; %s can only depend on %ss",
			ref.Kind, ref.Key(), other.Kind, ref.Kind+"s", ref.Kind)}
	}
	why := fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Key())
	for _, n := range g.order {
		if n.Ref.Kind == ref.Kind && n.Ref.Name == ref.Name {
			why += fmt.Sprintf("; there is one in namespace %s: add `namespace: %s` to the dependency", n.Ref.Namespace, n.Ref.Namespace)
			break
		}
	}
	return Blocker{ref, Missing, why}
}

// evaluate runs a readyExpr with the controllers' own CEL environment.
func (g *Graph) evaluate(expr string, self, dep flux.Ref) (bool, error) {
	const selfName, depName = "self", "dep"
	objects := map[string]any{}
	for name, ref := range map[string]flux.Ref{selfName: self, depName: dep} {
		obj := g.snapshot.Objects[ref]
		if obj == nil {
			return false, fmt.Errorf("%s was not read, so it cannot be evaluated", ref)
		}
		objects[name] = obj
	}
	e, err := cel.NewExpression(expr, cel.WithCompile(), cel.WithOutputType(celtypes.BoolType),
		cel.WithStructVariables(selfName, depName))
	if err != nil {
		return false, err
	}
	return e.EvaluateBoolean(context.Background(), objects) //nolint:forbidigo // two objects in memory: there is nothing to wait for
}

// waitsFor is true when a tier that is not Ready has applied everything and is
// held up by the health of that child.
func (n *Node) waitsFor(child *Node) bool {
	checked := n.Wait && n.Ref.Kind == flux.KustomizationKind
	for _, h := range n.HealthChecks {
		checked = checked || !n.Wait && key(h) == key(child.Ref)
	}
	if !checked || n.IsReady() {
		return false
	}
	ready := meta.FindStatusCondition(n.Conditions, readyCondition)
	if ready == nil {
		return false
	}
	if ready.Status == metav1.ConditionFalse {
		return ready.Reason == healthCheckFailed && strings.Contains(ready.Message, child.Ref.String())
	}
	c := meta.FindStatusCondition(n.Conditions, reconcilingCondition)
	return c != nil && strings.HasPrefix(c.Message, "Running health checks")
}

func orNone(s string) string {
	if s == "" {
		return "no revision"
	}
	return s
}
