// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/lint"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/version"
)

// runLint looks at a repository: lint.Run.
type runLint func(context.Context, lint.Options) (*lint.Report, error)

func newCmdLint(shell *util.Shell, run runLint) *cobra.Command {
	f := &lintFlags{
		shell: shell, run: run,
		Output: util.NewEnum("text", "text", "json", "yaml", "sarif"),
		FailOn: util.NewEnum(string(finding.Error), string(finding.Error), string(finding.Warning)),
	}
	cmd := &cobra.Command{
		Use:   "lint [PATH]",
		Short: "Prove, before merging, that an empty cluster converges",
		Long: templates.LongDesc(`
			Build each tier of a Flux repository as Flux would, simulate an empty cluster, and
			say what does not come up, what only does by a retry, and which gates prove nothing.
			Each finding has the chain of its cause and the smallest fix.

			PATH is a checkout, or a folder in one; the working directory when it is left out.
			The clusters that the repository holds are found; --entry names them. What comes from
			another repository is reported as outside, and never guessed.

			No cluster is asked: kubectl's own options do nothing here, and neither do
			--expect-server, --expect-uid and --config.

			A finding that is meant to be so is suppressed where it is, with a reason:
			the annotation lint.kubestandup.dev/ignore: "CS003: why" on the Kustomization, or
			on the object that the finding is about.

			Exit status: 0 no finding at or above --fail-on; 1 error; 2 usage; 3 findings; 130
			interrupted.`),
		Example: templates.Examples(`
			# Look at the checkout in which this is typed
			kubectl tiers lint

			# One cluster of it, and fail on warnings too
			kubectl tiers lint --entry clusters/prod --fail-on warning

			# What was proved: who registers which kind, and when
			kubectl tiers lint --kinds

			# Mend what can be mended by moving, and by adding edges and gates
			kubectl tiers lint --suggest | git apply

			# For code scanning
			kubectl tiers lint -o sarif > lint.sarif`),
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.ToOptions(args)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddFlags(cmd)
	return cmd
}

// lintFlags are what can be typed.
type lintFlags struct {
	Output      *util.Enum
	FailOn      *util.Enum
	Entries     []string
	Knowledge   []string
	FetchCharts bool
	ChartCache  string
	RemoteBases bool
	Loose       bool
	Kinds       bool
	Suggest     bool

	shell *util.Shell
	run   runLint
}

// AddFlags registers the flags.
func (f *lintFlags) AddFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.Output.AddOutput(cmd)
	f.FailOn.Add(cmd, "fail-on", "", "End with exit status 3 where a finding is at least that bad")
	fs.StringArrayVar(&f.Entries, "entry", f.Entries, "File or folder, relative to the root of the repository, that Flux begins with: clusters/prod. Can be given several times; without it they are found")
	fs.BoolVar(&f.Kinds, "kinds", f.Kinds, "Print the audit too: each kind that is not built in, who registers it, and where it is first known")
	fs.BoolVar(&f.Suggest, "suggest", f.Suggest, "Print a patch that mends findings on stdout, for git apply, and the findings on stderr")
	fs.StringArrayVar(&f.Knowledge, "knowledge", f.Knowledge, "File that says who creates which kinds, beside what is known; can be given several times")
	fs.BoolVar(&f.FetchCharts, "fetch-charts", f.FetchCharts, "Fetch the charts of HelmReleases, at the versions that they name, into the cache; without it only what the cache and the repository hold is rendered")
	fs.StringVar(&f.ChartCache, "chart-cache", f.ChartCache, "Folder that keeps fetched charts; without it, one below the user's cache folder")
	fs.BoolVar(&f.RemoteBases, "remote-bases", f.RemoteBases, "Let kustomize fetch remote bases, as Flux does")
	fs.BoolVar(&f.Loose, "loose-substitution", f.Loose, "Make a variable that is not set empty, as kustomize-controller before v1.9 does, and as its feature gate StrictPostBuildSubstitutions=false does")
	for _, folder := range []string{"entry", "chart-cache"} {
		_ = cmd.MarkFlagDirname(folder) // it fails only for a flag that is not there
	}
	_ = cmd.MarkFlagFilename("knowledge", "yaml", "yml", "json") // as above
}

// lintOptions are what is needed to run.
type lintOptions struct {
	lint.Options
	Output string
	FailOn finding.Severity
	Kinds  bool

	shell *util.Shell
	run   runLint
}

// ToOptions checks what was typed, and reads the files that it names.
func (f *lintFlags) ToOptions(args []string) (*lintOptions, error) {
	o := &lintOptions{
		Options: lint.Options{
			Path: ".", Entries: f.Entries, FetchCharts: f.FetchCharts, ChartCache: f.ChartCache,
			RemoteBases: f.RemoteBases, LooseSubstitution: f.Loose, Suggest: f.Suggest,
		},
		Output: f.Output.String(), FailOn: finding.Severity(f.FailOn.String()), Kinds: f.Kinds,
		shell: f.shell, run: f.run,
	}
	if len(args) > 0 {
		o.Path = args[0]
	}
	switch {
	case o.Path == "":
		return nil, util.UsageError(errors.New("PATH is empty: leave it out for the working directory"))
	case slices.Contains(f.Entries, ""):
		return nil, util.UsageError(errors.New("--entry is empty: write the file or folder that Flux begins with, such as clusters/prod"))
	case o.Suggest && o.Output == "sarif":
		return nil, util.UsageError(errors.New("--suggest does not go with -o sarif, which has no place for a patch"))
	case o.Kinds && o.Output == "sarif":
		return nil, util.UsageError(errors.New("--kinds does not go with -o sarif, which has no place for the audit"))
	case o.Kinds && o.Suggest && o.Output == "text":
		return nil, util.UsageError(errors.New("--kinds and --suggest contradict each other: either the audit or the patch is printed"))
	}
	if o.ChartCache == "" {
		// Where there is no such folder, no chart was kept either.
		if folder, err := os.UserCacheDir(); err == nil {
			o.ChartCache = filepath.Join(folder, "kubestandup", "charts")
		} else if o.FetchCharts {
			return nil, util.UsageError(fmt.Errorf("--fetch-charts: there is no folder to keep charts in (%w): name one with --chart-cache", err))
		}
	}
	for _, name := range f.Knowledge {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--knowledge %s cannot be read: %w", name, errors.Unwrap(err))
		}
		o.Knowledge = append(o.Knowledge, lint.KnowledgeFile{Name: name, Content: content})
	}
	return o, nil
}

// Run looks at the repository, prints what was found, and ends with it.
func (o *lintOptions) Run(ctx context.Context) error {
	report, err := o.run(ctx, o.Options)
	if err != nil {
		return err
	}
	report.TypeMeta = printers.TypeMeta("LintReport")
	if err := o.print(report); err != nil {
		return err
	}
	if report.Worst(o.FailOn) {
		return util.Silent(util.ExitNotReady)
	}
	return nil
}

func (o *lintOptions) print(report *lint.Report) error {
	switch o.Output {
	case "json", "yaml":
		return printers.PrintObject(o.shell.Out, o.Output, report)
	case "sarif":
		return report.WriteSARIF(o.shell.Out, strings.TrimPrefix(version.Get().Version, "v"))
	}
	if o.Suggest {
		// The patch alone is what is piped on.
		if err := patches(o.shell.Out, report); err != nil {
			return err
		}
		if err := o.text(o.shell.ErrOut, report); err != nil {
			return err
		}
		return o.patched(o.shell.ErrOut, report)
	}
	return o.text(o.shell.Out, report)
}
