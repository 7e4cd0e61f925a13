// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package finding

import "testing"

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "tier"): "1 tier", Count(0, "tier"): "0 tiers", Count(2, "tier"): "2 tiers",
		Verb(1, "needs", "need"): "needs", Verb(2, "needs", "need"): "need",
		And(nil): "", And([]string{"a"}): "a", And([]string{"a", "b"}): "a and b", And([]string{"a", "b", "c"}): "a, b and c",
		Some([]string{"a", "b", "c", "d", "e"}):      "a, b, c, d and e",
		Some([]string{"a", "b", "c", "d", "e", "f"}): "a, b, c, d and 2 more",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
