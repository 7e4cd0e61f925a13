// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubestandup/kubestandup/pkg/printers"
)

// Message turns an error into what a person reads: what happened, to which
// object or server, and what to do next. What the server said is made safe for
// a terminal. There is no "error: " before it; Execute adds that, once. It is
// empty when nothing is left to say: no error, Silent, or a reader of our
// output that has gone.
func Message(err error) string {
	return printers.EscapeTerminal(strings.TrimSpace(words(err)))
}

func words(err error) string {
	if err == nil || isSilent(err) || isBrokenPipe(err) {
		return ""
	}
	if many := members(err); many != nil {
		var lines []string
		for _, e := range many {
			if line := words(e); line != "" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	}
	if coded, ok := errors.AsType[*exitError](err); ok && err == error(coded) {
		return words(coded.err)
	}
	inner, said := translate(err)
	if inner == nil {
		return err.Error()
	}
	// Whoever wrapped the error said which object it is about: keep that.
	if whole := err.Error(); strings.Contains(whole, inner.Error()) {
		return strings.Replace(whole, inner.Error(), said, 1)
	}
	return err.Error() + ": " + said
}

// translate finds the error in the chain that has better words than its own,
// and gives them. Our own errors with an exit code are sentences already.
func translate(err error) (inner error, said string) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case *exitError:
			continue
		case exitCoder:
			return ownWords(err, e.(error))
		case apierrors.APIStatus:
			return e.(error), statusWords(e.Status())
		}
		if meta.IsNoMatchError(e) {
			return e, noMatchWords(e)
		}
	}
	if inner, said := networkWords(err); inner != nil {
		return inner, said
	}
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled, "interrupted: nothing more was started, and the same command can be run again"
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded, "there was no time left for it: allow more with --timeout or --request-timeout"
	default:
		return nil, ""
	}
}

// ownWords drops what net/http puts before an error of our own transport, such
// as `Get "https://…": `.
func ownWords(err, own error) (error, string) {
	if outer := urlError(err); outer != nil {
		return outer, own.Error()
	}
	return own, own.Error()
}

func isSilent(err error) bool {
	_, silent := err.(*silentError)
	return silent
}

// members are the errors of a join or an aggregate at the top of the tree.
// Further down they belong to a sentence, which is left whole.
func members(err error) []error {
	switch many := err.(type) {
	case interface{ Unwrap() []error }:
		// fmt.Errorf with two %w is one sentence, not a list.
		if parts := many.Unwrap(); errors.Join(parts...).Error() == err.Error() {
			return parts
		}
	case interface{ Errors() []error }:
		return many.Errors()
	}
	return nil
}

// isBrokenPipe is true when whoever reads our stdout went away, as head does:
// there is nobody to tell. (Where SIGPIPE is not ignored it has already ended
// the program.)
func isBrokenPipe(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	if !ok || path.Op != "write" || path.Path != os.Stdout.Name() {
		return false
	}
	errno, ok := errors.AsType[syscall.Errno](path.Err)
	if !ok {
		return false
	}
	const windowsBrokenPipe, windowsNoData = 109, 232
	if runtime.GOOS == "windows" {
		return errno == windowsBrokenPipe || errno == windowsNoData
	}
	return errno == syscall.EPIPE
}
