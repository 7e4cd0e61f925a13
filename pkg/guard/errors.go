// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The exit codes that the errors of this package carry; the shells find them
// with errors.As on interface{ ExitCode() int }.
const (
	exitUsage    = 2
	exitUnproved = 5
)

// UsageError is an expectation that cannot be used as it was written.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// ExitCode is that of a usage error.
func (e *UsageError) ExitCode() int { return exitUsage }

// ConflictError is an expectation that was given twice, and differently.
type ConflictError struct{ First, Second Expectation }

func (e *ConflictError) Error() string {
	return "server expected twice, and differently, so nothing was done: make the two agree\n" +
		sideBySide(
			[]string{"", "expected", "and also"},
			[]string{"server", e.First.Server, e.Second.Server},
			[]string{"uid", e.First.UID, e.Second.UID},
			[]string{"from", e.First.Origin, e.Second.Origin},
		)
}

// ExitCode is that of a wrong server.
func (e *ConflictError) ExitCode() int { return exitUnproved }

// MismatchError says that the server is not the expected one.
type MismatchError struct {
	Expected Expectation
	Found    Identity
	// Reason is the sentence why.
	Reason string
	// Cause is what the TLS handshake said, where that was the reason.
	Cause error
}

func (e *MismatchError) Error() string {
	return "server is not the expected one, so nothing was done: " + e.Reason + "\n" +
		sideBySide(
			[]string{"", "expected", "found"},
			[]string{"server", e.Expected.Server, e.Found.URL},
			[]string{"uid", orText(e.Expected.UID, "(any)"), orText(e.Found.UID, "(not asked)")},
			[]string{"from", e.Expected.Origin, contextName(e.Found.Context)},
		) +
		"Choose the cluster that you mean with --context; nothing overrides this check."
}

func (e *MismatchError) Unwrap() error { return e.Cause }

// ExitCode is that of a wrong server.
func (e *MismatchError) ExitCode() int { return exitUnproved }

// UnprovedError says that nothing proves which cluster the server is: no
// expectation was given, or the connection can never be proof.
type UnprovedError struct {
	// Found is what the server said it is, as far as it was asked.
	Found Identity
	// Reason is the sentence why.
	Reason string
}

func (e *UnprovedError) Error() string {
	if e.Found.UID == "" || e.Found.Unprovable != "" {
		return fmt.Sprintf("server %s is not proved, so nothing was done: %s", e.Found.URL, e.Reason)
	}
	return fmt.Sprintf("server %s is not proved, so nothing was done: %s\n%s", e.Found.URL, e.Reason, e.Found.Paste())
}

// ExitCode is that of an unproved server.
func (e *UnprovedError) ExitCode() int { return exitUnproved }

// RefusedError is a request that the guard did not send.
type RefusedError struct {
	// Verb and Resource say what was asked for; the object is named as far as
	// the URL names it.
	Verb, Resource, Namespace, Name string
	// Reason is the sentence why.
	Reason string
	// Transient is true when the server is still the proved one as far as is
	// known, but could not be asked again just now: the same request may be
	// sent later.
	Transient bool
	// Cause is set when the identity could not be read again, or changed.
	Cause error
}

func (e *RefusedError) Error() string {
	return e.subject() + " was refused and not sent: " + e.Reason
}

func (e *RefusedError) subject() string {
	object := strings.Trim(e.Namespace+"/"+e.Name, "/")
	if object != "" {
		object = " " + object
	}
	return e.Verb + " of " + e.Resource + object
}

func (e *RefusedError) Unwrap() error { return e.Cause }

// ExitCode is that of an unproved server.
func (e *RefusedError) ExitCode() int { return exitUnproved }

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func contextName(name string) string {
	if name == "" {
		return "no context"
	}
	return "context " + printable(name)
}

func sideBySide(rows ...[]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// printable keeps control characters of a kubeconfig or a server out of the
// terminal, and leaves ordinary text as it is.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// sanitized is an error whose text came from a server.
type sanitized struct{ error }

func (e sanitized) Error() string { return printable(e.error.Error()) }
func (e sanitized) Unwrap() error { return e.error }
