// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// asPlugin makes this test binary behave as a plugin, so that signals, pipes
// and the name it is called by are tested on a real process.
const asPlugin = "KUBESTANDUP_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		os.Exit(Run(newTestCmd))
	}
	os.Exit(m.Run())
}

var errBoom = errors.New("kustomization apps: boom")

// newTestCmd is a plugin that is runnable at its root, as tiers is, and has a
// group of sub-commands, as standup is.
func newTestCmd(streams genericiooptions.IOStreams) *cobra.Command {
	output := NewOutput("wide", "json")
	root := &cobra.Command{
		Use:     "tiers [NAME...]",
		Short:   "Show tiers",
		Long:    "Show tiers with kubectl tiers.",
		Example: "  # Show them\n  kubectl tiers",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := fmt.Fprintf(streams.Out, "shown %q as %q\n", args, output.String())
			return err
		},
	}
	output.AddOutput(root)
	s := NewShell(root, streams)
	root.PersistentFlags().String("expect-server", "", "The server that is meant")

	sub := func(use string, run func(*cobra.Command, []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: "Run it", RunE: run}
	}
	required := sub("needs", func(*cobra.Command, []string) error { return nil })
	required.Flags().String("file", "", "A file")
	_ = required.MarkFlagRequired("file")
	one := sub("one NAME", func(*cobra.Command, []string) error { return nil })
	one.Args = cobra.ExactArgs(1)
	group := &cobra.Command{Use: "group", Short: "Hold sub-commands"}
	group.AddCommand(sub("inner", func(cmd *cobra.Command, _ []string) error {
		server, err := cmd.Flags().GetString("expect-server")
		fmt.Fprintln(streams.Out, server)
		return err
	}))
	s.AddCommands([]CommandGroup{{Message: "Steps:", Commands: []*cobra.Command{
		sub("wait", func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(streams.Out, "waiting")
			<-cmd.Context().Done()
			fmt.Fprintln(streams.Out, "stopping")
			if os.Getenv(asPlugin) == "stubborn" {
				select {}
			}
			return context.Cause(cmd.Context())
		}),
		sub("fail", func(*cobra.Command, []string) error { return errBoom }),
		sub("findings", func(*cobra.Command, []string) error { return Silent(ExitNotReady) }),
		sub("log", func(*cobra.Command, []string) error {
			klog.Error("from client-go")
			klog.Background().Error(errBoom, "from client-go")
			return nil
		}),
		sub("flood", func(*cobra.Command, []string) error {
			for {
				if _, err := fmt.Fprintln(streams.Out, "a line"); err != nil {
					return err
				}
			}
		}),
		required, one, group,
	}}}, "expect-server")
	return root
}

// result is what one command did.
type result struct {
	code        int
	out, errOut string
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
	code := Execute(t.Context(), newTestCmd, streams, args...)
	return result{code, out.String(), errOut.String()}
}
