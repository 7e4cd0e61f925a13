// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// doubts are the kinds and Namespaces that what is known of the cluster brings
// too late, each with the tiers of unknown content that may bring it before: CRDs
// often have a tier of their own, built from the project's repository or its
// release page.
type doubts map[doubtful][]flux.Ref

// doubtful is a kind, or the name of a Namespace.
type doubtful struct {
	kind      schema.GroupVersionKind
	namespace string
}

func (n *need) doubtful() doubtful {
	switch {
	case n.kind != nil:
		return doubtful{kind: n.kind.gvk}
	case n.object.Kind == "Namespace":
		return doubtful{namespace: n.object.Name}
	}
	return doubtful{}
}

// doubtIn lets what the former models gave reason to doubt bring it too.
func (m *model) doubtIn(of doubtful, f fact) {
	for _, c := range m.unknown {
		if slices.Contains(m.known[of], c.ref) {
			m.doubts[of] = append(m.doubts[of], c)
			m.way(f, c.done)
		}
	}
}

// doubt adds what the needs of the tiers give reason to doubt, and answers false
// when there is nothing new.
func (m *model) doubt(known doubts) (more bool) {
	unknown := m.unknownTiers()
	if len(unknown) == 0 {
		return false
	}
	for _, t := range m.tiers {
		for _, n := range t.needs {
			of := n.doubtful()
			if of == (doubtful{}) {
				continue
			}
			need := m.judge(t, n)
			if len(need.Providers) == 0 || need.When != Missing && need.When != Late {
				continue
			}
			for _, c := range unknown {
				if !slices.Contains(known[of], c.ref) && m.mayBring(c.tier, t, of) {
					known[of] = append(known[of], c.ref)
					more = true
				}
			}
		}
	}
	return more
}

// unknownTiers are the candidates that are tiers themselves.
func (m *model) unknownTiers() []candidate {
	return slices.DeleteFunc(slices.Clone(m.unknown), func(c candidate) bool { return c.ref != c.tier.Tier })
}

// mayBring is true of a tier of unknown content that is about the kind or the
// Namespace, by its words; and of one of another repository that the tier which
// needs it waits for.
func (m *model) mayBring(unknown, t *tier, of doubtful) bool {
	if unknown.Outside != nil && unknown != t && m.held[t.attempt] && m.before(t.attempt, unknown.built) {
		return true
	}
	gk := of.kind.GroupKind()
	about := append(strings.Split(gk.Group, "."), strings.TrimSuffix(of.namespace, "-system"))
	for _, c := range m.book.ChartsOf(gk) {
		about = append(about, c.Name)
	}
	for _, word := range m.words(unknown) {
		if slices.ContainsFunc(about, func(other string) bool { return alike(word, other) }) {
			return true
		}
	}
	return false
}

// words are those that tell what a tier of unknown content is about. Hosts do
// not: most are those of a forge.
func (m *model) words(t *tier) []string {
	texts := []string{t.Tier.Name, t.spec.Path}
	var urls []string
	if t.Outside != nil {
		texts = append(texts, t.Outside.Name)
		for _, i := range m.objects[idOfSource(*t.Outside)] {
			url, _, _ := unstructured.NestedString(i.Object, "spec", "url")
			urls = append(urls, url)
		}
	}
	if t.Result != nil {
		urls = append(urls, t.Result.Bases...)
	}
	var remote *build.RemoteBaseError
	if errors.As(t.Err, &remote) {
		urls = append(urls, remote.Base)
	}
	for _, url := range urls {
		_, after, _ := strings.Cut(url, "://")
		_, path, _ := strings.Cut(cmp.Or(after, url), "/")
		texts = append(texts, path)
	}
	return strings.FieldsFunc(strings.ToLower(strings.Join(texts, " ")), func(r rune) bool { return strings.ContainsRune(" ./:@?=&_", r) })
}

// alike is true of two names, or of a name and a longer one that holds it:
// metallb and metallb-crds. Words that many names hold say nothing.
func alike(a, b string) bool {
	const least = 5
	for _, word := range []string{a, b} {
		switch word {
		case "operator", "operators", "controller", "controllers", "cluster", "clusters", "infrastructure", "platform", "system",
			"manager", "config", "monitoring", "networking", "storage", "apps", "com", "org", "net", "dev", "k8s", "x-k8s", "sigs":
			return false
		}
	}
	return len(a) > 2 && a == b || len(a) >= least && strings.Contains(b, a) || len(b) >= least && strings.Contains(a, b)
}

// doubted is true where what a tier needs is there in time only if something of
// unknown content brings it: no known source can be the first to do so, or none
// does before the tier needs it and something unknown may.
func (m *model) doubted(n *need, before fact, sources []*source) bool {
	doubts := m.doubts[n.doubtful()]
	first, inTime := false, false
	for _, s := range sources {
		first = first || m.held[s.done] && !m.before(s.done, n.fact)
		inTime = inTime || m.held[before] && m.before(before, s.done)
	}
	maybe := slices.ContainsFunc(doubts, func(c candidate) bool { return m.held[before] && m.before(before, c.done) })
	return len(doubts) > 0 && (!first || !inTime && maybe)
}
