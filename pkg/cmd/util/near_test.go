// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
)

// TestANameThatMayBeACommand: a command that takes names has sub-commands too.
func TestANameThatMayBeACommand(t *testing.T) {
	ends := func(use string, run func([]string) error) *cobra.Command {
		cmd := &cobra.Command{Use: use, Args: cobra.ArbitraryArgs}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return util.OrCommand(cmd, args, run(args)) }
		return cmd
	}
	for _, tt := range []struct {
		args   string
		fails  error
		code   int
		offers string
	}{
		{"lin", errors.New("no tier"), 1, "error: no tier\nif the command was meant: tiers lint\n"},
		{"lnit", util.UsageError(errors.New("no tier")), 2, "error: no tier\nif the command was meant: tiers lint\nSee"},
		{"lintt .", errors.New("no tier"), 1, "tiers lint\n"},
		{"Lint", errors.New("no tier"), 1, "tiers lint\n"},
		{"wyh", errors.New("no tier"), 1, "tiers why\n"},
		{"web", errors.New("no tier"), 1, ""},
		{"li", errors.New("no tier"), 1, ""},
		{"hidde", errors.New("no tier"), 1, ""},
		{"apps lin", errors.New("no tier"), 1, ""},
		{"", errors.New("no server"), 1, ""},
		{"lin", util.Silent(3), 3, ""},
		{"lin", nil, 0, ""},
		{"lin --suggest", nil, 2, "error: unknown flag: --suggest\nif the command was meant: tiers lint\n"},
		{"apps --suggest", nil, 2, ""},
		{"why lin --suggest", nil, 2, ""},
	} {
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		code := util.Execute(t.Context(), func(genericiooptions.IOStreams) *cobra.Command {
			root := ends("tiers [NAME...]", func([]string) error { return tt.fails })
			hidden := ends("hidden", func([]string) error { return nil })
			hidden.Hidden = true
			root.AddCommand(ends("lint", func([]string) error { return nil }), ends("why", func([]string) error { return nil }), hidden)
			util.OrCommandOfFlag(root)
			return root
		}, streams, strings.Fields(tt.args)...)
		said := errOut.String()
		if code != tt.code || !strings.Contains(said, tt.offers) || strings.Contains(said, "was meant") != (tt.offers != "") {
			t.Errorf("%q: exit code %d, want %d\n%s\nwant %q", tt.args, code, tt.code, said, tt.offers)
		}
	}
}
