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
	if coded, ok := itself[*exitError](err); ok {
		return words(coded.err)
	}
	said, inner := translate(err)
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
func translate(err error) (said string, inner error) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if _, ours := itself[*exitError](e); ours {
			continue
		}
		if _, ours := itself[exitCoder](e); ours {
			return ownWords(err, e)
		}
		if status, ok := itself[apierrors.APIStatus](e); ok {
			return statusWords(status.Status()), e
		}
		if meta.IsNoMatchError(e) {
			return noMatchWords(e), e
		}
	}
	if said, inner := networkWords(err); inner != nil {
		return said, inner
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted: nothing more was started, and the same command can be run again", context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return "there was no time left for it: allow more with --timeout or --request-timeout", context.DeadlineExceeded
	default:
		return "", nil
	}
}

// ownWords drops what net/http puts before an error of our own transport, such
// as `Get "https://…": `.
func ownWords(err, own error) (said string, inner error) {
	if outer := urlError(err); outer != nil {
		return own.Error(), outer
	}
	return own.Error(), own
}

func isSilent(err error) bool {
	_, silent := itself[*silentError](err)
	return silent
}

// members are the errors of a join or an aggregate at the top of the tree.
// Further down they belong to a sentence, which is left whole.
func members(err error) []error {
	if many, ok := itself[interface{ Unwrap() []error }](err); ok {
		// fmt.Errorf with two %w is one sentence, not a list.
		if parts := many.Unwrap(); errors.Join(parts...).Error() == err.Error() {
			return parts
		}
	}
	if many, ok := itself[interface{ Errors() []error }](err); ok {
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
