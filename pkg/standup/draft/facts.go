// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// guessRoot finds the Kustomization that no other one contains; of several, the
// one that most hang from. others are the rest.
func guessRoot(live *Live) (root *Tier, others []string) {
	byKey := map[string]*Tier{}
	var order []string
	for i := range live.Tiers {
		if t := &live.Tiers[i]; t.Ref.Kind == flux.KustomizationKind {
			byKey[t.Ref.Key()] = t
			order = append(order, t.Ref.Key())
		}
	}
	weight := map[string]int{}
	for _, key := range order {
		weight[topOf(byKey, key)]++
	}
	var roots []string
	for _, key := range order {
		if weight[key] > 0 {
			roots = append(roots, key)
		}
	}
	if len(roots) == 0 {
		return nil, nil
	}
	best := slices.MaxFunc(roots, func(a, b string) int { return weight[a] - weight[b] })
	for _, key := range roots {
		if key != best {
			others = append(others, key)
		}
	}
	return byKey[best], others
}

// topOf goes up from a Kustomization to the one that contains it all. One that
// applies itself, as the root of `flux bootstrap` does, is the top.
func topOf(byKey map[string]*Tier, key string) string {
	seen := map[string]bool{}
	for !seen[key] {
		seen[key] = true
		owner := byKey[key].Owner
		if above := byKey[owner.Key()]; owner.Name == "" || above == nil || owner.Key() == key {
			return key
		}
		key = owner.Key()
	}
	return key
}

// floor is the least that every node of the cluster has now.
type floor struct {
	count, ready    int
	kernel, kubelet string // MAJOR.MINOR
	memory          string
	said            string // what the smallest was in full
}

func guessNodes(nodes []Node) floor {
	f := floor{count: len(nodes)}
	var kernel, kubelet *version.Version
	var memory int64
	for _, n := range nodes {
		if n.Ready {
			f.ready++
		}
		kernel, kubelet = least(kernel, n.Kernel), least(kubelet, n.Kubelet)
		if n.Memory > 0 && (memory == 0 || n.Memory < memory) {
			memory = n.Memory
		}
	}
	var said []string
	if kernel != nil {
		f.kernel = fmt.Sprintf("%d.%d", kernel.Major(), kernel.Minor())
		said = append(said, "the oldest kernel is "+kernel.String())
	}
	if kubelet != nil {
		f.kubelet = fmt.Sprintf("%d.%d", kubelet.Major(), kubelet.Minor())
		said = append(said, "the oldest kubelet "+kubelet.String())
	}
	const mebi, gibi = 1 << 20, 1 << 30
	switch {
	case memory >= gibi:
		f.memory = fmt.Sprintf("%dGi", memory/gibi)
	case memory >= mebi:
		f.memory = fmt.Sprintf("%dMi", memory/mebi)
	}
	if f.memory != "" {
		said = append(said, fmt.Sprintf("the smallest node has %d MiB of memory", memory/mebi))
	}
	f.said = list(said)
	return f
}

func least(a *version.Version, text string) *version.Version {
	b, err := version.ParseGeneric(text)
	if err != nil || a != nil && a.LessThan(b) {
		return a
	}
	return b
}

// guessDomain is the longest domain that all names are in, "" for none. A name
// of a Service of the cluster says nothing about it.
func guessDomain(hosts []string) string {
	var common []string
	count := 0
	for _, host := range hosts {
		host = strings.ToLower(strings.TrimPrefix(strings.TrimSuffix(host, "."), "*."))
		labels := strings.Split(host, ".")
		if validation.IsDNS1123Subdomain(host) != nil || len(labels) < 2 || isInternal(labels) {
			continue
		}
		slices.Reverse(labels)
		if count++; count == 1 {
			common = labels
			continue
		}
		same := 0
		for same < min(len(common), len(labels)) && common[same] == labels[same] {
			same++
		}
		common = common[:same]
	}
	const shortest = 2
	if count == 1 && len(common) > shortest {
		common = common[:len(common)-1] // it is the name of a host, not of a domain
	}
	if len(common) < shortest {
		return ""
	}
	common = slices.Clone(common)
	slices.Reverse(common)
	return strings.Join(common, ".")
}

func isInternal(labels []string) bool {
	last := labels[len(labels)-1]
	return last == "svc" || last == "local" || last == "internal" || last == "localhost"
}
