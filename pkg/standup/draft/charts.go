// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// chart is a HelmRelease that installs no CRDs, and what makes its chart have
// them.
type chart struct {
	release string
	why     []string
	// values are laid over those of the HelmRelease; nil where nothing has to
	// be switched on.
	values map[string]any
	// file is where the HelmRelease stands that is not live, "" for one that is.
	file string
}

// Charts have no common word for it. These are those of cert-manager,
// external-secrets, kyverno, kube-prometheus-stack, argo-cd, traefik and their
// like, at any depth: a sub-chart has its own.
var (
	crdSwitch = regexp.MustCompile(`(?i)^(install|create|enable|deploy|manage)_?crds?$|^crds?_?(install|create|enabled?|deploy)$`)
	crdGroup  = regexp.MustCompile(`(?i)^(crds?|customResourceDefinitions?)$`)
	inGroup   = regexp.MustCompile(`(?i)^(enabled?|install|create|deploy|installed)$`)
)

// guessCharts finds the live HelmReleases that run without their CRDs, then
// those of the working tree that are not live. unread are the live ones that
// take values from elsewhere too.
func guessCharts(live *Live, tree *Tree) (charts []chart, unread []string) {
	seen := map[string]bool{}
	for i := range live.Tiers {
		t := &live.Tiers[i]
		if t.Ref.Kind != flux.HelmReleaseKind {
			continue
		}
		seen[t.Ref.Key()] = true
		if c, off := chartOf(t); off {
			charts = append(charts, c)
		}
		if t.MoreValues {
			unread = append(unread, t.Ref.Key())
		}
	}
	if tree == nil {
		return charts, unread
	}
	for i := range tree.releases {
		r := &tree.releases[i]
		c, off := chartOf(&r.Tier)
		// Without a namespace, which a kustomization.yaml may give it, or with a
		// variable in its name, it cannot be named here.
		if !off || seen[r.Ref.Key()] || validation.IsDNS1123Label(r.Ref.Namespace) != nil || validation.IsDNS1123Subdomain(r.Ref.Name) != nil {
			continue
		}
		seen[r.Ref.Key()] = true
		c.file = r.file
		charts = append(charts, c)
	}
	return charts, unread
}

func chartOf(t *Tier) (chart, bool) {
	c := chart{release: t.Ref.Key()}
	var off [][]string
	switches(t.Values, nil, &off)
	for _, keys := range off {
		c.why = append(c.why, "its value "+strings.Join(keys, ".")+" is false")
		if c.values == nil {
			c.values = map[string]any{}
		}
		switchOn(c.values, keys)
	}
	if t.SkipsCRDs {
		c.why = append(c.why, "its spec.install.crds is Skip")
	}
	return c, len(c.why) > 0
}

// switches collects the keys of each switch that is off.
func switches(values map[string]any, at []string, off *[][]string) {
	const deepest = 8
	if len(at) > deepest {
		return
	}
	for _, key := range sortedKeys(values) {
		here := append(slices.Clone(at), key)
		switch value := values[key].(type) {
		case bool:
			grouped := len(at) > 0 && crdGroup.MatchString(at[len(at)-1]) && inGroup.MatchString(key)
			if !value && (grouped || crdSwitch.MatchString(key) || crdGroup.MatchString(key)) {
				*off = append(*off, here)
			}
		case map[string]any:
			switches(value, here, off)
		}
	}
}

func switchOn(values map[string]any, keys []string) {
	for _, key := range keys[:len(keys)-1] {
		below, ok := values[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			values[key] = below
		}
		values = below
	}
	values[keys[len(keys)-1]] = true
}

// lines are the values as YAML, each level in by two.
func lines(values map[string]any) []string {
	var all []string
	for _, key := range sortedKeys(values) {
		if below, ok := values[key].(map[string]any); ok {
			all = append(all, scalar(key)+":")
			for _, line := range lines(below) {
				all = append(all, "  "+line)
			}
			continue
		}
		all = append(all, fmt.Sprintf("%s: %v", scalar(key), values[key]))
	}
	return all
}
