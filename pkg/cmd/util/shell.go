// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/version"
)

// Shell is what the commands of one plugin share: the streams, and kubectl's
// own flags, which exist once.
type Shell struct {
	genericiooptions.IOStreams
	// ConfigFlags are kubectl's: --context, -n, --kubeconfig, --as and so on.
	ConfigFlags *genericclioptions.ConfigFlags
	// NoColor is --no-color.
	NoColor bool

	root *cobra.Command
	help help
}

// NewShell makes cmd the root of a plugin: kubectl's look and flags, the
// sub-commands version, options and completion. cmd.Use begins with the
// plugin's name as it is typed after kubectl.
func NewShell(cmd *cobra.Command, streams genericiooptions.IOStreams) *Shell {
	s := &Shell{
		IOStreams:   streams,
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams),
		root:        cmd,
	}
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true
	cmd.CompletionOptions.DisableDefaultCmd = true // its scripts complete kubectl-tiers, not kubectl tiers
	cmd.Version = version.Get().String()
	cmd.Flags().Bool("version", false, "Print the version and exit") // else cobra takes -v for it
	displayAs(cmd, "kubectl "+cmd.Name())

	flags := cmd.PersistentFlags()
	s.ConfigFlags.AddFlags(flags)
	flags.BoolVar(&s.NoColor, "no-color", false, "Never use colour, as when NO_COLOR is set")
	s.completeConfigFlags()

	cmd.AddCommand(s.newCmdVersion(), newCmdOptions(s.Out), s.newCmdCompletion())
	s.help.install(cmd)
	return s
}

// AddCommands adds sub-commands below headings, in the order in which they are
// given. Flags named in exposed are persistent ones that every command's own
// help shall show; all others are listed by `options`, as kubectl does.
func (s *Shell) AddCommands(groups []CommandGroup, exposed ...string) {
	templates.CommandGroups(groups).Add(s.root)
	s.help.groups = append(s.help.groups, groups...)
	s.help.exposed = append(s.help.exposed, exposed...)
}

// Connect resolves kubectl's flags to a server, through the guard. It sends
// nothing.
func (s *Shell) Connect() (*guard.Server, error) {
	info := version.Get()
	return guard.Connect(s.ConfigFlags, guard.Options{
		UserAgent: fmt.Sprintf("kubectl-%s/%s (%s/%s)", s.root.Name(), info.Version, runtime.GOOS, runtime.GOARCH),
		Warnings:  s.warnings(),
	})
}

// Table is how a table looks on the plugin's stdout.
func (s *Shell) Table(wide, noHeaders bool) printers.TableOptions {
	return printers.TableOptions{
		Wide:      wide,
		NoHeaders: noHeaders,
		Color:     printers.AllowsColor(s.Out, s.NoColor),
		Width:     printers.TerminalWidth(s.Out),
	}
}

// CommandPrefix is how the plugin is called, to begin a command that is
// printed for pasting: "kubectl tiers", or "flux tiers".
func (s *Shell) CommandPrefix() string { return s.root.DisplayName() }

// displayAs sets the name that stands in help and messages. It cannot stand in
// Use, which would break the paths of sub-commands.
func displayAs(root *cobra.Command, name string) {
	before := root.Annotations[cobra.CommandDisplayNameAnnotation]
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[cobra.CommandDisplayNameAnnotation] = name
	if before == "" {
		return
	}
	var rename func(*cobra.Command)
	rename = func(cmd *cobra.Command) {
		cmd.Long = strings.ReplaceAll(cmd.Long, before, name)
		cmd.Example = strings.ReplaceAll(cmd.Example, before, name)
		for _, sub := range cmd.Commands() {
			rename(sub)
		}
	}
	rename(root)
}

// warnings prints the API server's warnings once each, made safe for a
// terminal.
func (s *Shell) warnings() rest.WarningHandlerWithContext {
	return safeWarnings{rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{
		Deduplicate: true,
		Color:       printers.AllowsColor(s.ErrOut, s.NoColor),
	})}
}

type safeWarnings struct{ next rest.WarningHandler }

func (w safeWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	w.next.HandleWarningHeader(code, agent, printers.OneLine(text))
}

func (s *Shell) newCmdVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(s.Out, "%s version %s\n", s.root.DisplayName(), s.root.Version)
			return err
		},
	}
}
