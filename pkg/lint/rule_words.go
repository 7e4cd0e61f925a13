// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

func unique(words []string) []string {
	var all []string
	for _, w := range words {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// kindNames are the kinds of the needs, each once; objects are named in full.
func kindNames(needs []coldstart.Need) []string {
	var names []string
	for _, n := range needs {
		names = append(names, needName(n))
	}
	return unique(names)
}

func needName(n coldstart.Need) string {
	if n.Kind.Kind == "" {
		return n.Object.String()
	}
	return n.Kind.Kind
}

// described are the needs with the API group and version of the kinds:
// DataVolume and StorageProfile (cdi.kubevirt.io/v1beta1).
func described(needs []coldstart.Need) string {
	var parts []string
	kinds := map[schema.GroupVersion][]string{}
	for _, n := range needs {
		gv := n.Kind.GroupVersion()
		if n.Kind.Kind == "" {
			parts = append(parts, n.Object.String())
			continue
		}
		if kinds[gv] == nil {
			parts = append(parts, gv.String())
		}
		kinds[gv] = unique(append(kinds[gv], n.Kind.Kind))
	}
	for i, p := range parts {
		if gv, err := schema.ParseGroupVersion(p); err == nil && kinds[gv] != nil {
			parts[i] = finding.Some(kinds[gv]) + " (" + p + ")"
		}
	}
	return finding.Some(unique(parts))
}

// users are the objects of a tier that need something, each once.
func users(needs []coldstart.Need) []flux.Ref {
	var all []flux.Ref
	for _, n := range needs {
		for _, u := range n.Users {
			if !slices.Contains(all, u.Ref()) {
				all = append(all, u.Ref())
			}
		}
	}
	return all
}

func refs(all []flux.Ref) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.String())
	}
	return names
}

// missing lists needs as reports do.
func missing(needs []coldstart.Need) []finding.Missing {
	var all []finding.Missing
	for _, n := range needs {
		m := finding.Missing{APIVersion: n.Kind.GroupVersion().String(), Kind: n.Kind.Kind}
		if n.Kind.Kind == "" {
			continue
		}
		switch {
		case len(n.Providers) > 0:
			m.CreatedBy = creator(n.Providers[0])
		case len(n.Creators) > 0:
			m.CreatedBy = relationWords(n.Creators[0])
		}
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// creator says who brings what is needed, with the user's object.
func creator(p coldstart.Provider) string {
	switch p.How {
	case coldstart.ByTrigger:
		return fmt.Sprintf("%s, when it reconciles %s", system(p), p.Object)
	case coldstart.ByStart:
		return fmt.Sprintf("%s, when it starts (%s)", system(p), p.Object)
	case coldstart.ByChart:
		return "the chart of " + p.About().String()
	}
	return p.Object.String()
}

// relationWords says who would create a kind if its trigger were there.
func relationWords(r knowledge.Relation) string {
	if len(r.Triggers) > 0 && r.Class != knowledge.AutoCR && r.Class != knowledge.Start {
		return fmt.Sprintf("%s, when it reconciles a %s", r.System, r.Triggers[0].Kind)
	}
	return fmt.Sprintf("%s, when it starts", r.System)
}

func system(p coldstart.Provider) string {
	if p.Relation != nil {
		return p.Relation.System
	}
	return "its controller"
}

// short prints a duration as people write it in a spec: 1h, 90s, 1h30m.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// retry says when a failed attempt is repeated.
func retry(o *coldstart.Outcome) string {
	if o == nil || o.Retry <= 0 {
		return "at its next retry"
	}
	if o.RetryIsInterval {
		return fmt.Sprintf("after %s (spec.interval: no retryInterval is set)", short(o.Retry))
	}
	return "after " + short(o.Retry)
}

// sentence is what the text begins with, in upper case.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

func article(word string) string {
	if strings.ContainsAny(word[:min(1, len(word))], "AEIOUaeiou") {
		return "an"
	}
	return "a"
}
