// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// OrCommand adds to an error of a command that takes names, and has sub-commands
// too, which of them the first name may have been meant for: cobra suggests only
// where a word cannot be a name.
func OrCommand(cmd *cobra.Command, args []string, err error) error {
	if Message(err) == "" || len(args) == 0 {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && near(sub.Name(), strings.ToLower(args[0])) {
			return errors.Join(err, fmt.Errorf("if the command was meant: %s", sub.CommandPath()))
		}
	}
	return err
}

// OrCommandOfFlag is OrCommand for a flag that the command does not have, but
// the one that was meant may.
func OrCommandOfFlag(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(of *cobra.Command, err error) error {
		if of != cmd {
			return err
		}
		return OrCommand(cmd, of.Flags().Args(), err)
	})
}

// near is true for the beginning of a command, and for one slip of the fingers:
// more would make a command of many a short name.
func near(command, word string) bool {
	const enough = 3
	if len(word) < enough {
		return false
	}
	swapped := tiers.Distance(command, word) == 2 && len(command) == len(word) && lettersOf(command) == lettersOf(word)
	return strings.HasPrefix(command, word) || swapped || tiers.Distance(command, word) <= 1
}

func lettersOf(word string) [256]int {
	var letters [256]int
	for i := range len(word) {
		letters[word[i]]++
	}
	return letters
}
