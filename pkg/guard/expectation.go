// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Expectation names the cluster that a person means: a server URL, with or
// without the UID of its Namespace kube-system. The zero value expects nothing
// and proves nothing.
type Expectation struct {
	Server string
	UID    string
	// Origin says in words where it was written, for messages:
	// `--expect-server`, `clusters/prod/standup.yaml:3:11`.
	Origin string
}

// Empty is true when nothing is expected.
func (e Expectation) Empty() bool { return e.Server == "" && e.UID == "" }

// ExpectFlags are --expect-server and --expect-uid.
type ExpectFlags struct {
	Server string
	UID    string
}

// AddFlags registers the two flags.
func (f *ExpectFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Server, "expect-server", f.Server,
		"URL of the API server that this command is meant for; any other is refused")
	fs.StringVar(&f.UID, "expect-uid", f.UID,
		"UID of the Namespace kube-system of the cluster that this command is meant for; needs a server too")
}

// Expectation is what the flags say.
func (f ExpectFlags) Expectation() Expectation {
	var from []string
	if f.Server != "" {
		from = append(from, "--expect-server")
	}
	if f.UID != "" {
		from = append(from, "--expect-uid")
	}
	return Expectation{Server: f.Server, UID: f.UID, Origin: strings.Join(from, ", ")}
}

// Merge makes one expectation of several, say of the flags and of
// standup.yaml. A server or a UID that two of them name differently is a
// *ConflictError; one that cannot be used is a *UsageError.
func Merge(expectations ...Expectation) (Expectation, error) {
	var merged Expectation
	for _, e := range expectations {
		if e.Empty() {
			continue
		}
		if e.Server != "" {
			server, why := parseServer(e.Server)
			if why != "" {
				return Expectation{}, &UsageError{Message: fmt.Sprintf("server URL of %s %s", e.Origin, why)}
			}
			e.Server = server.String()
		}
		if e.UID != "" && !validUID(e.UID) {
			return Expectation{}, &UsageError{Message: fmt.Sprintf("uid of %s is not one: it looks like 3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11", e.Origin)}
		}
		if differ(merged.Server, e.Server) || differ(merged.UID, e.UID) {
			return Expectation{}, &ConflictError{First: merged, Second: e}
		}
		merged.Server = orText(merged.Server, e.Server)
		merged.UID = orText(merged.UID, e.UID)
		merged.Origin = joinOrigins(merged.Origin, e.Origin)
	}
	if merged.UID != "" && merged.Server == "" {
		return Expectation{}, &UsageError{Message: fmt.Sprintf(
			"uid of %s names no server: a UID survives a restore of etcd into another cluster, so give the server's URL too", merged.Origin)}
	}
	return merged, nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

func joinOrigins(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return a + " and " + b
}

// validUID accepts what an API server hands out and nothing that could carry
// an escape sequence or need quoting in a shell.
func validUID(uid string) bool {
	return uid != "" && len(uid) <= 128 && strings.Trim(uid,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}
