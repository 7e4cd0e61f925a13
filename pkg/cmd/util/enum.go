// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Enum is the value of a flag that takes one of a few words. What is allowed,
// the help, the completion and the error text come from the same list.
type Enum struct {
	value   string
	allowed []string
}

var _ pflag.Value = &Enum{}

// NewEnum starts as value, which need not be one of the allowed words: "" is
// the table that -o is not asked for.
func NewEnum(value string, allowed ...string) *Enum {
	return &Enum{value: value, allowed: allowed}
}

// NewOutput is the value of -o: the table for people when it is empty.
func NewOutput(allowed ...string) *Enum { return NewEnum("", allowed...) }

// String is the word that was chosen.
func (e *Enum) String() string { return e.value }

// Type is shown in cobra's help.
func (e *Enum) Type() string { return "string" }

// Set chooses a word, and refuses one that is not allowed.
func (e *Enum) Set(value string) error {
	if !slices.Contains(e.allowed, value) {
		return fmt.Errorf("choose one of: %s", strings.Join(e.allowed, ", "))
	}
	e.value = value
	return nil
}

// AddOutput adds the value as -o, --output.
func (e *Enum) AddOutput(cmd *cobra.Command) {
	e.Add(cmd, "output", "o", "Output format")
}

// Add adds the value as a flag; the usage ends in the allowed words. shorthand
// may be empty.
func (e *Enum) Add(cmd *cobra.Command, name, shorthand, usage string) {
	cmd.Flags().VarP(e, name, shorthand, fmt.Sprintf("%s. One of: (%s)", usage, strings.Join(e.allowed, ", ")))
	complete := cobra.FixedCompletions(e.allowed, cobra.ShellCompDirectiveNoFileComp)
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(name, complete)
}
