// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// asked is what a person has asked about, as far as it spares a look at other
// releases and tiers: to decode a record, to look at what a release owns and to
// build a tier cost some requests each. Nil spares nothing.
type asked struct {
	namespace string
	// names are of tiers and of records; none where all has to be looked at.
	names []string
	// parents apply the tiers that are named; releases, by name, brought them.
	parents, releases []string
}

// narrow finds out what need not be looked at. Anything but a tier or a record
// may take part in a verdict about any release or tier, in ways that only a look
// tells: then nothing is spared.
func (c *Cluster) narrow(ctx context.Context, w *World) *asked {
	a := &asked{namespace: w.Choices.Namespace}
	for _, name := range w.Choices.Names {
		if record, is := recordCalled(name); is {
			a.names = append(a.names, record)
			continue
		}
		if !c.addTiers(ctx, w, a, name) {
			return &asked{namespace: w.Choices.Namespace}
		}
	}
	return a
}

// addTiers adds the tiers of that name. It answers false where there is none,
// or where it cannot be said what they are part of.
func (c *Cluster) addTiers(ctx context.Context, w *World, a *asked, name string) bool {
	found := false
	if w.Graph == nil {
		return false
	}
	for _, n := range w.Graph.Tiers() {
		if !Matches(name, n.Ref) {
			continue
		}
		found = true
		a.names = append(a.names, Arg(n.Ref))
		if n.ContainedBy != nil {
			a.parents = append(a.parents, Arg(n.ContainedBy.Ref))
		}
		res, _ := flux.ResourceOf(w.Flux.Served, n.Ref.Kind)
		m, err := c.metadata.Resource(res.GroupVersionResource()).Namespace(n.Ref.Namespace).Get(ctx, n.Ref.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		if of := m.Annotations[releaseNameMark]; of != "" {
			a.releases = append(a.releases, of)
		}
	}
	return found
}

// recordCalled is true for the name of a record, which it returns as that of
// its release: each of them is looked at as a whole.
func recordCalled(name string) (string, bool) {
	kind, rest, _ := strings.Cut(strings.ToLower(name), "/")
	switch kind {
	case releaseType:
		return name, true
	case "secret", "secrets":
		namespace, secret, found := strings.Cut(rest, "/")
		if !found {
			namespace, secret = "", rest
		}
		if of, is := releaseOf(flux.Ref{Kind: "Secret", Name: secret}); is {
			return strings.Replace(releaseType+"/"+namespace+"/"+of, "//", "/", 1), true
		}
	}
	return "", false
}

// in is true for an object that the namespace leaves in.
func (a *asked) in(object flux.Ref) bool {
	return a == nil || a.namespace == "" || object.Namespace == a.namespace
}

// named is true where any of the objects is one that was named.
func (a *asked) named(objects ...flux.Ref) bool {
	return a == nil || len(a.names) == 0 || slices.ContainsFunc(objects, func(o flux.Ref) bool { return calls(a.names, o) })
}

func calls(names []string, o flux.Ref) bool {
	return slices.ContainsFunc(names, func(name string) bool { return Matches(name, o) })
}

// tier is true for a tier whose state may be asked about.
func (a *asked) tier(t *flux.Tier) bool {
	objects := []flux.Ref{t.Ref}
	if t.Helm != nil {
		objects = append(objects, anyRecord(keyOf(t)))
	}
	return a.in(t.Ref) && a.named(objects...)
}

// build is true for a tier that may hold what is asked about. In whatever
// namespace it is: what an operator waits for stands in the build of its tier.
func (a *asked) build(t *flux.Tier) bool {
	return a.named(t.Ref) || calls(a.parents, t.Ref)
}

// release is true for a release that may be asked about: by its HelmRelease or
// its records, by what it waits for, or by a tier that its chart has brought.
func (a *asked) release(r *Release) bool {
	objects := []flux.Ref{r.Object(), anyRecord(r.Key)}
	if r.Node != nil && r.Node.Root != nil {
		objects = append(objects, r.Node.Root.Object)
	}
	return a.in(objects[0]) && (a.named(objects...) || slices.Contains(a.releases, r.Name))
}

func anyRecord(k release.Key) flux.Ref { return secretRef(release.Revision{Key: k, Version: 1}) }

// Missed is true for a gap of which a person has asked by that name: that of the
// object, or of the record of a HelmRelease.
func (w *World) Missed(g Gap, name string) bool {
	if g.Object == nil {
		return false
	}
	objects := []flux.Ref{*g.Object}
	if w.Graph != nil {
		if n := w.Graph.Node(*g.Object); n != nil && n.Helm != nil {
			objects = append(objects, anyRecord(keyOf(n.Tier)))
		}
	}
	if record, is := recordCalled(name); is {
		name = record
	}
	return slices.ContainsFunc(objects, func(o flux.Ref) bool { return Matches(name, o) })
}
