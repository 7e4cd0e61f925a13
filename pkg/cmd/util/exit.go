// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package util is what the three plugins share at the shell: kubectl's flags,
// exit codes, the words of errors, help, completion and the version. It knows
// cobra and streams; what the plugins do is elsewhere.
package util

import (
	"context"
	"errors"
	"strconv"
)

// The exit codes, the same for every command.
const (
	ExitDone        = 0   // done, and true
	ExitError       = 1   // an error
	ExitUsage       = 2   // the command was typed wrongly
	ExitNotReady    = 3   // not ready, or findings, or a plan that is not empty
	ExitDeadline    = 4   // past a deadline
	ExitWrongServer = 5   // the wrong server, or one that was not proved
	ExitRefused     = 6   // destructive and unconfirmed, a choice not made, or unsafe
	ExitInterrupted = 130 // interrupted by a signal
)

// exitCoder is what any package's error implements to choose the exit code.
type exitCoder interface{ ExitCode() int }

type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }
func (e *exitError) ExitCode() int { return e.code }

// Exit gives err an exit code, and says nothing more than err does. It is nil
// when err is.
func Exit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// UsageError is an error of how the command was typed: exit code 2, and a hint
// at its help.
func UsageError(err error) error { return Exit(ExitUsage, err) }

type silentError struct{ code int }

func (e *silentError) Error() string { return "exit code " + strconv.Itoa(e.code) }
func (e *silentError) ExitCode() int { return e.code }

// Silent ends a command with a code and without a word, since its report has
// been printed already. It is nil for the code 0.
func Silent(code int) error {
	if code == ExitDone {
		return nil
	}
	return &silentError{code: code}
}

// ExitCode is the code that a command ends with: that of the first error in
// the tree that has one, else 130 for a cancelled context, else 1.
func ExitCode(err error) int {
	var coder exitCoder
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &coder):
		return coder.ExitCode()
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitError
	}
}

// itself is err as an E when it is one, and not when it only wraps one.
func itself[E any](err error) (E, bool) {
	e, ok := any(err).(E)
	return e, ok
}
