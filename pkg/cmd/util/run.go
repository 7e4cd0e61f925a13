// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// NewCmdFunc makes the root command of a plugin.
type NewCmdFunc func(genericiooptions.IOStreams) *cobra.Command

// Run is a plugin's whole main: the process's streams, arguments and signals,
// and its exit code. The first SIGINT or SIGTERM cancels the command's
// context, so that it can end in order; the second ends the process at once.
//
// Called by the name kubectl_complete-PLUGIN, which is how kubectl asks a
// plugin for completions, it answers those instead.
func Run(newCmd NewCmdFunc) int {
	quietLibraries()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// First the default action for the second one, then the news: whoever
		// sees the context end can be ended at once.
		signal.Stop(signals)
		cancel()
	}()

	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	program, args := programName(os.Args[0]), os.Args[1:]
	if strings.HasPrefix(program, completePrefix) {
		streams.ErrOut = io.Discard // a word there would tear the shell's line
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return execute(ctx, newCmd, streams, program, args)
}

// Execute runs a plugin with these arguments as Run does, on other streams:
// it prints the error, if any, on ErrOut and returns the exit code.
func Execute(ctx context.Context, newCmd NewCmdFunc, streams genericiooptions.IOStreams, args ...string) int {
	return execute(ctx, newCmd, streams, "", args)
}

func execute(ctx context.Context, newCmd NewCmdFunc, streams genericiooptions.IOStreams, program string, args []string) int {
	root := newCmd(streams)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	if strings.HasPrefix(program, "flux-") {
		displayAs(root, "flux "+root.Name())
	}
	prepare(root)

	cmd, err := root.ExecuteContextC(ctx)
	code, message := ExitCode(err), ""
	if ours, ok := itself[*commandError](err); ok {
		err = ours.err
	} else if err != nil {
		// What no function of ours returned is cobra's: it did not understand
		// what was typed.
		err = UsageError(err)
		code = ExitUsage
	}
	if message = Message(err); message != "" {
		if code == ExitUsage {
			message += fmt.Sprintf("\nSee '%s --help' for usage.", cmd.CommandPath())
		}
		fmt.Fprintln(streams.ErrOut, "error: "+message)
	}
	if ctx.Err() != nil && (code == ExitError || errors.Is(err, context.Canceled)) {
		code = ExitInterrupted
	}
	return code
}

// commandError marks an error that a command of ours returned.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// prepare gives every command of the tree what cobra does not inherit.
func prepare(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.SuggestionsMinimumDistance = 2
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = runGroup
	}
	if cmd.Args == nil {
		// cobra's default takes words that nothing reads.
		cmd.Args = noArgs
	}
	for _, run := range []*func(*cobra.Command, []string) error{
		&cmd.PersistentPreRunE, &cmd.PreRunE, &cmd.RunE, &cmd.PostRunE, &cmd.PersistentPostRunE,
	} {
		if inner := *run; inner != nil {
			*run = func(cmd *cobra.Command, args []string) error {
				if err := inner(cmd, args); err != nil {
					return &commandError{err}
				}
				return nil
			}
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub)
	}
}

// runGroup is what a command does that has only sub-commands.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return UsageError(errors.New(message))
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q takes no arguments, but got %q", cmd.CommandPath(), args[0])
}

// quietLibraries keeps the logs of client-go and its kin off the terminal:
// what a person should know, we say. The loggers are theirs, and process-wide.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
}

// programName is by which name the binary was called.
func programName(arg0 string) string {
	return strings.TrimSuffix(filepath.Base(arg0), ".exe")
}
