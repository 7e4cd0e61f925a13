// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// TargetFlags say which cluster a command is meant for.
type TargetFlags struct {
	Expect guard.ExpectFlags
	Config config.Flags
}

// AddFlags registers --expect-server, --expect-uid and --config.
func (f *TargetFlags) AddFlags(fs *pflag.FlagSet) {
	f.Expect.AddFlags(fs)
	f.Config.AddFlags(fs)
}

// Target is the cluster that a command talks to.
type Target struct {
	*guard.Server
	// Expected is what the server was compared with.
	Expected guard.Expectation
	// Identity is what the server said of itself when the command started.
	Identity guard.Identity
	// File is the standup.yaml, nil when there is none.
	File *config.Config
}

// Target resolves the server and holds it against the expectation of the flags
// and of standup.yaml. Where one is required and none is given, the error
// carries the lines to paste (exit 5). Where none is required and none given,
// it says on stderr whom the command talks to.
func (s *Shell) Target(ctx context.Context, f TargetFlags, required bool) (*Target, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	file, err := f.Config.Load(dir)
	if err != nil {
		return nil, err
	}
	expected, err := guard.Merge(f.Expect.Expectation(), file.Expectation())
	if err != nil {
		return nil, err
	}
	server, err := s.Connect()
	if err != nil {
		return nil, err
	}
	t := &Target{Server: server, Expected: expected, File: file}
	if required || !expected.Empty() {
		if err := server.Prove(ctx, expected); err != nil {
			return nil, err
		}
	}
	if t.Identity, err = server.Identity(ctx); err != nil {
		return nil, err
	}
	if expected.Empty() {
		fmt.Fprintf(s.ErrOut, "Server %s (context %s, UID %s), not checked: no standup.yaml and no --expect-server\n",
			t.Identity.URL, printers.OrNone(printers.OneLine(t.Identity.Context)), printers.OrNone(t.Identity.UID))
	}
	return t, nil
}
