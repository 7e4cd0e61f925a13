// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// variable is a guess at an entry of variables, and why it was made.
type variable struct {
	name string
	why  []string
	// required is a guess; not says which tiers speak against it.
	required bool
	not      string
	forbid   []forbidden
	// placeholder is a glob; usedBy are the tiers whose folder refers to the
	// variable.
	placeholder string
	usedBy      []string
}

// forbidden is a value of another environment.
type forbidden struct{ value, where string }

// guesser collects guesses by name: a variable may stand in several Sets.
type guesser struct {
	live *Live
	tree *Tree
	vars map[string]*variable
	// here are the values that the variable has in this cluster.
	here map[string][]string
	// plain are the variables about which nothing was guessed.
	plain map[string]bool
}

// guessVariables finds the variables that tell this cluster from those that
// have other values for them in the working tree, and those whose value here
// is a placeholder. plain are the names of all others.
func guessVariables(live *Live, tree *Tree) (vars []*variable, plain []string) {
	g := &guesser{live: live, tree: tree, vars: map[string]*variable{}, here: map[string][]string{}, plain: map[string]bool{}}
	seen := map[Set]bool{}
	for i := range live.Tiers {
		for _, s := range live.Tiers[i].sets() {
			if !seen[s] {
				seen[s] = true
				g.set(s)
			}
		}
	}
	for _, name := range sortedKeys(g.vars) {
		v := g.vars[name]
		v.forbid = slices.DeleteFunc(v.forbid, func(f forbidden) bool {
			return slices.ContainsFunc(g.here[name], func(here string) bool { return config.Glob(f.value, here) })
		})
		if v.required {
			v.not = g.unknowing(name)
		}
		vars = append(vars, v)
		delete(g.plain, name)
	}
	return vars, sortedKeys(g.plain)
}

func (g *guesser) variable(name string) *variable {
	if g.vars[name] == nil {
		g.vars[name] = &variable{name: name}
	}
	return g.vars[name]
}

// set compares what this cluster has of a Set with what the working tree has.
func (g *guesser) set(s Set) {
	known := g.live.names(s)
	others := g.candidates(s)
	ours := g.ours(others, known)
	here, names, where := known.Values, known.Names, ""
	if ours >= 0 {
		where = others[ours].label
		if known.Missing || known.Hidden {
			here, names = others[ours].values, others[ours].names
		}
		others = slices.Delete(others, ours, ours+1)
	}
	for _, name := range names {
		if !config.IsVariableName(name) {
			continue // Flux refuses it, and so does standup.yaml
		}
		g.plain[name] = true
		value, readable := here[name]
		if readable {
			g.here[name] = append(g.here[name], value)
			g.placeholder(s, name, value)
		}
		g.compare(s, name, value, readable, where, others)
	}
}

func (g *guesser) placeholder(s Set, name, value string) {
	glob := placeholderOf(value)
	if glob == "" {
		return
	}
	v := g.variable(name)
	v.placeholder = glob
	v.usedBy = g.usedBy(name)
	v.why = append(v.why, fmt.Sprintf("%s says %s here, which looks like a placeholder.", s, quoted(value)))
}

func (g *guesser) compare(s Set, name, value string, readable bool, where string, others []candidate) {
	var differ, have []string
	var forbid []forbidden
	for _, o := range others {
		if !slices.Contains(o.names, name) {
			continue
		}
		have = append(have, o.label)
		theirs, ok := o.values[name]
		if !ok || !readable || theirs == value {
			continue
		}
		differ = append(differ, quoted(theirs)+" in "+o.label)
		if telling(theirs) {
			forbid = append(forbid, forbidden{theirs, o.label})
		}
	}
	if len(have) == 0 || where == "" && len(have) < 2 {
		return // it stands in one place, so there is nothing to compare with
	}
	switch {
	case s.Kind == secretKind:
		v := g.variable(name)
		v.required = true
		v.why = append(v.why, fmt.Sprintf("%s has it here, and in %s: each environment has its own. Its values were not read.", s, list(have)))
	case len(differ) > 0:
		v := g.variable(name)
		v.required = true
		v.forbid = append(v.forbid, forbid...)
		v.why = append(v.why, fmt.Sprintf("%s says %s here%s, and %s.", s, quoted(value), in(where), list(differ)))
	}
}

func in(where string) string {
	if where == "" {
		return ""
	}
	return " (" + where + ")"
}

// candidate is a Set of the working tree that may be of another environment.
type candidate struct {
	treeSet
	// label is the folder, or the file where several are in one folder.
	label string
}

func (g *guesser) candidates(s Set) []candidate {
	if g.tree == nil {
		return nil
	}
	var found []candidate
	folders := map[string]int{}
	for _, t := range g.tree.sets {
		if t.Kind == s.Kind && t.Name == s.Name && (t.Namespace == "" || t.Namespace == s.Namespace) {
			found = append(found, candidate{t, path.Dir(t.file)})
			folders[path.Dir(t.file)]++
		}
	}
	for i := range found {
		if folders[found[i].label] > 1 || found[i].label == "." {
			found[i].label = found[i].file
		}
	}
	return found
}

// ours is which of them is this cluster's: the one below the folder of a live
// tier, else the one that has the most values in common with what is live. It
// is -1 where that cannot be told.
func (g *guesser) ours(all []candidate, live Names) int {
	best, index, tied := 0, -1, false
	for i, c := range all {
		score := 0
		for name, value := range live.Values {
			if theirs, ok := c.values[name]; ok && theirs == value {
				score++
			}
		}
		if g.isLiveFolder(c.file) {
			score += len(live.Values) + 1
		}
		switch {
		case score > best:
			best, index, tied = score, i, false
		case score == best:
			tied = true
		}
	}
	if tied {
		return -1
	}
	return index
}

// isLiveFolder is true for a file in or below a folder that a live tier is
// built from. The root of the repository tells nothing.
func (g *guesser) isLiveFolder(file string) bool {
	return slices.ContainsFunc(g.live.Tiers, func(t Tier) bool { return t.holds(file) })
}

func (t *Tier) holds(file string) bool {
	return t.Path != "" && t.Path != "." && strings.HasPrefix(file, t.Path+"/")
}

// usedBy are the substituted tiers whose folder refers to the variable.
func (g *guesser) usedBy(name string) []string {
	if g.tree == nil {
		return nil
	}
	var used []string
	for i := range g.live.Tiers {
		t := &g.live.Tiers[i]
		if t.substituted() && slices.ContainsFunc(g.tree.uses, func(u use) bool {
			return t.holds(u.file) && slices.Contains(u.names, name)
		}) {
			used = append(used, tierName(t.Ref))
		}
	}
	return used
}

// unknowing says which substituted tiers do not have the variable, or may not
// have it: to require it would then report them.
func (g *guesser) unknowing(name string) string {
	var without []string
	for i := range g.live.Tiers {
		t := &g.live.Tiers[i]
		if t.substituted() && !slices.ContainsFunc(t.sets(), func(s Set) bool {
			return slices.Contains(g.live.names(s).Names, name)
		}) {
			without = append(without, tierName(t.Ref))
		}
	}
	return list(without)
}

// tierName is how standup.yaml names a tier without any doubt.
func tierName(r flux.Ref) string {
	if r.Kind == flux.HelmReleaseKind {
		return "hr/" + r.Key()
	}
	return "ks/" + r.Key()
}

// list joins a few words, and says how many more there are.
func list(words []string) string {
	const most = 4
	if len(words) > most {
		words = append(slices.Clone(words[:most-1]), fmt.Sprintf("%d more", len(words)-most+1))
	}
	return finding.And(words)
}
