// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/lint"
)

// TestNoMoreIsProvedThanIs: the word proved is for a cluster of which all is
// known, and which comes up.
func TestNoMoreIsProvedThanIs(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*lint.Entry)
		want   string
	}{
		"nothing":         {func(*lint.Entry) {}, "proved that an empty cluster converges"},
		"kinds before":    {func(e *lint.Entry) { e.Kinds.Before = 3 }, "proved that an empty cluster converges"},
		"no kinds":        {func(e *lint.Entry) { e.Kinds = lint.KindCounts{} }, "proved that an empty cluster converges"},
		"a late kind":     {func(e *lint.Entry) { e.Kinds.Late = 1 }, "as far as is known"},
		"a missing kind":  {func(e *lint.Entry) { e.Kinds.Missing = 1 }, "as far as is known"},
		"a kind, perhaps": {func(e *lint.Entry) { e.Kinds.Perhaps = 1 }, "as far as is known"},
		"a ResourceSet":   {func(e *lint.Entry) { e.Unseen = []flux.Ref{{Kind: "ResourceSet", Name: "apps"}} }, "as far as is known"},
		"an opaque chart": {func(e *lint.Entry) { e.Opaque = []lint.Opaque{{Chart: "app"}} }, "as far as is known"},
		"a chart by name": {func(e *lint.Entry) { e.ByName = &lint.ByName{Kinds: 1} }, "as far as is known"},
		"an assumption":   {func(e *lint.Entry) { e.Assumed = []flux.Ref{{Kind: "Secret", Name: "a"}} }, "as far as is known"},
		"a tier that is never Ready": {
			func(e *lint.Entry) { e.Verdicts.Unready = 1 }, "14 converge at their first attempt, 1 applies everything and never becomes Ready",
		},
		"a tier by retry": {func(e *lint.Entry) { e.Verdicts.AtOnce, e.Verdicts.ByRetry = 13, 1 }, "13 converge at their first attempt, 1 only by a retry"},
		"no tier":         {func(e *lint.Entry) { e.Tiers, e.Verdicts = 0, lint.Counts{} }, "nothing to prove"},
	} {
		e := proven("clusters/prod").Entries[0]
		tt.change(&e)
		got := proved(&e)
		if !strings.Contains(got, tt.want) || strings.Contains(got, "proved") != strings.Contains(tt.want, "proved") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
