// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"fmt"
	"path"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Namespace creates the Namespace that objects of a tier need, in that tier, or
// lets it wait for the one that brings it: the patch for CS011. user is the
// first of the objects. It is a *Refusal where nothing can be written that is
// safe.
func (d *Draft) Namespace(cluster int, tier, user flux.Ref) error {
	c := d.clusters[cluster]
	is := func(n coldstart.Need) bool {
		return n.Object.Kind == "Namespace" && (len(n.Users) == 0 && same(user, tier) || len(n.Users) > 0 && same(n.Users[0].Ref(), user))
	}
	outcome := c.outcome(tier)
	if outcome == nil {
		return refuse("nothing is known of what %s applies", tier.Name)
	}
	for _, n := range outcome.Needs {
		switch {
		case !is(n):
		case n.When == coldstart.Late:
			return d.Edge(cluster, tier, is)
		case n.When == coldstart.Missing:
			err := d.step(func() error { return d.createNamespace(cluster, tier, n) })
			return byHand(err, "let a tier that %s depends on create Namespace %s", tier.Name, n.Object.Name)
		}
	}
	return refuse("nothing is known of the Namespace of %s", user)
}

func (d *Draft) createNamespace(cluster int, tier flux.Ref, n coldstart.Need) error {
	c := d.clusters[cluster]
	name := n.Object.Name
	for _, p := range n.Providers {
		if p.How == coldstart.ByGit {
			return refuse("%s creates Namespace %s itself, and comes too late", p.Tier.Name, name)
		}
	}
	if first, made := c.namespaces[name]; made { // by an earlier step
		switch {
		case first.Key() == tier.Key() || c.waits(tier.Key(), first.Key()):
			return nil
		case c.closes(tier.Key(), first.Key()):
			return refuse("%s creates Namespace %s by then, and waits for %s", first.Name, name, tier.Name)
		}
		d.note(d.in(c) + fmt.Sprintf("Edge: %s depends on %s now, which creates Namespace %s.", tier.Name, first.Name, name))
		return d.addEdge(c, tier, first)
	}
	followed := c.followed(tier)
	if followed == nil || followed.Result == nil {
		return refuse("nothing is known of what %s applies", tier.Name)
	}
	dir := pathOf(*followed)
	if source := build.SourceOf(followed.Kustomization); source.Kind != "GitRepository" {
		return refuse("%s is built from %s, whose folders are not those of the repository", tier.Name, source)
	}
	list := d.tree.kustomization(dir)
	if d.tree.real(dir) != dir || list != "" && d.tree.real(list) != list {
		return refuse("%s is built through a symbolic link", tier.Name)
	}
	owners, err := d.builders(dir, list, name)
	if err != nil {
		return err
	}
	if renamed := d.renames(*followed, list); renamed != "" && renamed != name {
		return refuse("%s puts everything into Namespace %s, and would call the new one that too", tier.Name, renamed)
	}
	file := path.Join(dir, "namespace.yaml")
	if d.tree.exists(file) {
		file = path.Join(dir, "namespace-"+name+".yaml")
	}
	if d.tree.exists(file) {
		return refuse("%s is there already", file)
	}
	d.tree.create(file, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+scalarText(name)+"\n")
	if list != "" {
		if err := d.enlist(list, file); err != nil {
			return err
		}
	}
	for _, u := range owners {
		other := d.clusters[u.cluster]
		other.namespaces[name] = other.ref(u.tier)
	}
	d.note(d.in(c) + fmt.Sprintf("Namespace: %s creates %s now, before anything else. Mind that Flux deletes it, with all that is in it, when %s is deleted and prunes.", tier.Name, name, tier.Name))
	return nil
}

// builders are the tiers, of all clusters, that would take up a new file of the
// folder. It refuses those in whose cluster the Namespace is somebody else's.
func (d *Draft) builders(dir, list, name string) ([]use, error) {
	var all []use
	if list != "" {
		all = d.through[list]
	} else {
		for i, c := range d.clusters {
			for _, t := range c.World.Tiers {
				if t.Outside == nil && t.Kustomization != nil && (pathOf(t) == dir || d.tree.takes(pathOf(t), dir)) {
					all = append(all, use{cluster: i, tier: t.Tier.Key()})
				}
			}
		}
	}
	of := map[int]string{}
	for _, u := range all {
		c := d.clusters[u.cluster]
		if of[u.cluster] != "" && of[u.cluster] != u.tier {
			return nil, refuse("%s is built by %s and by %s, and both would create Namespace %s", dir, of[u.cluster], u.tier, name)
		}
		of[u.cluster] = u.tier
		owner := slices.IndexFunc(c.World.Tiers, func(f build.Followed) bool {
			return c.applies(f.Tier.Key(), flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: name})
		})
		if owner >= 0 {
			return nil, refuse("%s is built by %s too, where %s creates Namespace %s", dir, d.user(u), c.World.Tiers[owner].Tier.Name, name)
		}
		if made, known := c.namespaces[name]; known && made.Key() != u.tier {
			return nil, refuse("%s is built by %s too, where %s creates Namespace %s", dir, d.user(u), made.Name, name)
		}
	}
	return all, nil
}

// renames is the namespace that a build puts everything into; kustomize renames
// Namespaces too.
func (d *Draft) renames(tier build.Followed, list string) string {
	spec, _ := tier.Kustomization.Object["spec"].(map[string]any)
	if name, _ := spec["targetNamespace"].(string); name != "" {
		return name
	}
	if list == "" {
		return ""
	}
	f, err := d.tree.open(list)
	if err != nil {
		return ""
	}
	for _, s := range f.all() {
		if name := scalar(field(s.object, "namespace")); name != "" {
			return name
		}
	}
	return ""
}

// scalarText is a name as YAML, quoted where it would be a number.
func scalarText(name string) string {
	lines, err := encode(text(name), 2, true)
	if err != nil || len(lines) != 1 {
		return name
	}
	return lines[0]
}
