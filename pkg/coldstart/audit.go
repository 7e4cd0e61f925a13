// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"fmt"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// audit is what the tier needs of kinds that are not built in, sorted by kind.
func (m *model) audit(t *tier, needs []Need) []KindUse {
	var uses []KindUse
	for i, n := range t.needs {
		if n.kind == nil || knowledge.BuiltinKind(n.kind.gvk.GroupKind()) {
			continue
		}
		use := KindUse{Tier: t.Tier, Need: needs[i]}
		if len(n.kind.others) == 0 {
			use.Before = n.kind.before
		}
		use.First = m.first(n.kind)
		use.SecondOrder = secondOrder(use.Need)
		uses = append(uses, use)
	}
	slices.SortStableFunc(uses, func(a, b KindUse) int {
		return compareKinds(a.Need, b.Need)
	})
	return uses
}

func compareKinds(a, b Need) int {
	switch x, y := a.Kind.String(), b.Kind.String(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// secondOrder is true for a kind that a controller makes at run time: as far as
// its sources tell, else as far as the knowledge does.
func secondOrder(n Need) bool {
	if len(n.Providers) > 0 {
		return !slices.ContainsFunc(n.Providers, func(p Provider) bool { return p.How == ByGit || p.How == ByChart })
	}
	return len(n.Creators) > 0
}

// first says when the kind is first known: by the source that comes true first.
func (m *model) first(k *kind) string {
	if k.before != "" && len(k.others) == 0 {
		return "before Flux starts"
	}
	var earliest *source
	at := len(m.order)
	for _, s := range k.sources {
		if i := m.place[s.done]; m.held[s.done] && i < at {
			earliest, at = s, i
		}
	}
	if earliest == nil {
		return ""
	}
	stage := fmt.Sprintf("stage %d of %s", earliest.Stage, earliest.Provider.Tier.Name)
	switch {
	case earliest.How == ByTrigger:
		return fmt.Sprintf("after %s, when %s has reconciled %s", stage, earliest.Relation.System, earliest.Object)
	case earliest.How == ByStart:
		return fmt.Sprintf("after %s, when %s has started", stage, earliest.Relation.System)
	case earliest.Release != nil:
		return fmt.Sprintf("after %s, when %s is installed", stage, *earliest.Release)
	case earliest.How == ByChart:
		return fmt.Sprintf("after %s, when %s is installed", stage, earliest.Object)
	}
	return stage
}
