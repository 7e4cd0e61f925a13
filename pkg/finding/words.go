// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"fmt"
	"slices"
	"strings"
)

// Count prints a number of things: 1 tier, 2 tiers.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Verb is the form that goes with as many: needs and need, is and are.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// And joins words as a sentence does.
func And(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// Some joins the first few of many words, and says how many more there are.
func Some(words []string) string {
	const enough = 4
	if len(words) > enough+1 {
		return And(append(slices.Clone(words[:enough]), fmt.Sprintf("%d more", len(words)-enough)))
	}
	return And(words)
}
