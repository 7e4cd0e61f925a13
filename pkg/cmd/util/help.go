// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"
)

// CommandGroup is a heading of the root's help and what stands below it, in
// that order.
type CommandGroup = templates.CommandGroup

// help writes help as kubectl does. kubectl's own templates know no display
// name: their last line would tell a person to type "tiers <command> --help".
type help struct {
	groups  []CommandGroup
	exposed []string
}

// install makes it the help of root and all below it.
func (h *help) install(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		about := c.Long
		if about == "" {
			about = c.Short
		}
		_ = writeHelp(c.OutOrStdout(), strings.TrimSpace(about)+"\n\n"+h.usage(c))
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		return writeHelp(c.OutOrStderr(), h.usage(c))
	})
}

// writeHelp wraps the text at the widths that kubectl wraps at.
func writeHelp(w io.Writer, text string) error {
	_, err := io.WriteString(term.NewResponsiveWriter(w), text)
	return err
}

func (h *help) usage(c *cobra.Command) string {
	var sections []string
	add := func(heading, text string) {
		if text = strings.TrimRight(text, " \n"); text != "" {
			sections = append(sections, heading+"\n"+text+"\n")
		}
	}
	if len(c.Aliases) > 0 {
		add("Aliases:", c.NameAndAliases())
	}
	add("Examples:", c.Example)
	for _, group := range h.groupsOf(c) {
		add(group.Message, commandLines(group.Commands))
	}
	add("Options:", flagLines(h.flagsOf(c)))
	if c.Runnable() || c.HasAvailableSubCommands() {
		add("Usage:", "  "+usageLine(c))
	}
	root := c.Root().DisplayName()
	tips := fmt.Sprintf("Use %q for a list of global command-line options (applies to all commands).\n", root+" options")
	if c.HasAvailableSubCommands() {
		tips = fmt.Sprintf("Use %q for more information about a given command.\n", c.CommandPath()+" <command> --help") + tips
	}
	return strings.Join(append(sections, tips), "\n")
}

// groupsOf are the commands below c: for the root under its headings, and what
// is under none of them last.
func (h *help) groupsOf(c *cobra.Command) []CommandGroup {
	shown := func(cmd *cobra.Command) bool { return cmd.IsAvailableCommand() && cmd.Name() != "options" }
	rest := CommandGroup{Message: "Available Commands:"}
	var groups []CommandGroup
	if !c.HasParent() && len(h.groups) > 0 {
		groups = slices.Clone(h.groups)
		rest.Message = "Other Commands:"
	}
	for _, cmd := range c.Commands() {
		grouped := slices.ContainsFunc(groups, func(g CommandGroup) bool { return slices.Contains(g.Commands, cmd) })
		if !grouped && shown(cmd) {
			rest.Commands = append(rest.Commands, cmd)
		}
	}
	return append(groups, rest)
}

func commandLines(commands []*cobra.Command) string {
	var b strings.Builder
	for _, cmd := range commands {
		fmt.Fprintf(&b, "  %-*s   %s\n", cmd.NamePadding(), cmd.Name(), cmd.Short)
	}
	return b.String()
}

// flagsOf are the command's own flags. Those that it hands down stand in the
// list of `options`, but for the exposed ones.
func (h *help) flagsOf(c *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if c.PersistentFlags().Lookup(f.Name) == nil && f.Name != "help" {
			flags.AddFlag(f)
		}
	})
	for _, name := range h.exposed {
		if f := c.Flag(name); f != nil {
			flags.AddFlag(f)
		}
	}
	return flags
}

func flagLines(flags *pflag.FlagSet) string {
	var b strings.Builder
	limit, err := term.GetWordWrapperLimit()
	if err != nil {
		limit = 0 // no terminal
	}
	printer := templates.NewHelpFlagPrinter(&b, limit)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			printer.PrintHelpFlag(f)
		}
	})
	return b.String()
}

func usageLine(c *cobra.Command) string {
	line := c.UseLine()
	if c.HasFlags() && !strings.Contains(line, "[options]") {
		line += " [options]"
	}
	return line
}

func newCmdOptions(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "options",
		Short: "List the flags that every command takes",
	}
	list := func(c *cobra.Command) error {
		return writeHelp(out, "The following options can be passed to any command:\n\n"+flagLines(c.InheritedFlags()))
	}
	cmd.RunE = func(c *cobra.Command, _ []string) error { return list(c) }
	cmd.SetHelpFunc(func(c *cobra.Command, _ []string) { _ = list(c) })
	return cmd
}
