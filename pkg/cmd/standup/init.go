// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup/draft"
)

func newCmdInit(f *Flags) *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Draft a standup.yaml from the cluster and the working tree",
		Long: templates.LongDesc(`
			Look at the cluster and at the working tree, and print a standup.yaml with everything
			that can be guessed from them: who the server is, where Flux is, the nodes as they are
			now, the variables that have other values in other environments, placeholders, charts
			that run without their CRDs, and the tiers that are suspended. Each guess says why it
			was made; what could not be read is said too.

			Nothing is changed, neither in the cluster nor in the working tree, and no value of a
			Secret is read. Read the draft before you keep it: what it says is what every later
			step will insist on.`),
		Example: templates.Examples(`
			# In a checkout of the GitOps repository, beside the cluster's entry point
			kubectl standup init > clusters/prod/standup.yaml

			# See what has changed since
			kubectl standup init | diff clusters/prod/standup.yaml -

			# With a working tree that is elsewhere
			kubectl standup init --path ../gitops > standup.yaml`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.init(cmd.Context(), path)
		},
	}
	cmd.Flags().StringVar(&path, "path", path, "The working tree to compare environments in; by default the git checkout that the working directory is in, if any")
	_ = cmd.MarkFlagDirname("path") // fails where there is no such flag
	return cmd
}

// init needs no expectation, as there is nothing yet that could hold one. One
// that is given in flags is kept all the same. The standup.yaml that may be
// there is not: this is how it is made anew.
func (f *Flags) init(ctx context.Context, path string) error {
	if file := f.Target.Config.File; file != "" {
		return util.UsageError(fmt.Errorf("--config %s: init drafts a standup.yaml and reads none, so leave it out; --expect-server says which cluster is meant", file))
	}
	dir, err := workingTree(path)
	if err != nil {
		return err
	}
	server, err := f.shell.Connect()
	if err != nil {
		return err
	}
	if expected := f.Target.Expect.Expectation(); !expected.Empty() {
		if err := server.Prove(ctx, expected); err != nil {
			return err
		}
	}
	identity, err := server.Identity(ctx)
	if err != nil {
		return err
	}
	live, err := draft.Read(ctx, server.Config(), identity)
	if err != nil {
		return err
	}
	var tree *draft.Tree
	if dir != "" {
		if tree, err = draft.Scan(ctx, os.DirFS(dir), dir); err != nil {
			return err
		}
	}
	if identity.Unprovable != "" {
		fmt.Fprintf(f.shell.ErrOut, "Warning: this connection can prove nothing: %s\n", identity.Unprovable)
	}
	for _, u := range live.Unread {
		fmt.Fprintf(f.shell.ErrOut, "Warning: %s could not be read: %s\n", u.What, printers.OneLine(u.Why))
	}
	if live.NoFlux {
		fmt.Fprintln(f.shell.ErrOut, "Warning: the cluster serves no kind of Flux, so the draft rests on its identity and nodes alone")
	}
	_, err = fmt.Fprint(f.shell.Out, draft.Write(live, tree))
	return err
}

// workingTree is the folder that was named, else the checkout that the working
// directory is in, "" where there is none.
func workingTree(path string) (string, error) {
	if path == "" {
		here, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("working directory: %w", err)
		}
		return draft.Checkout(here), nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", util.UsageError(fmt.Errorf("--path %s cannot be opened: %w", path, errors.Unwrap(err)))
	case !info.IsDir():
		return "", util.UsageError(fmt.Errorf("--path %s is a file: name the folder of the working tree", path))
	}
	return path, nil
}
