// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// waitTimeout is how long each wait of a repair may take: an operator that
// creates its kinds, objects that go away, a controller that answers.
const waitTimeout = 5 * time.Minute

// Flags are what can be typed.
type Flags struct {
	Target             *util.TargetFlags
	Apply              bool
	ConfirmDestructive bool
	DryRun             bool
	Only               []string
	BackupDir          string
	Allow              []string
	Uninstalling       *util.Enum
	RunHooks           bool
	OlderThan          time.Duration
	ExitCode           bool
	AllNamespaces      bool
	Timeout            time.Duration
	Output             *util.Enum

	shell *util.Shell
	// step is true for `kubectl standup unwedge`, which no server is shown to
	// unproved.
	step bool
}

// AddFlags registers the flags.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.Timeout = waitTimeout
	fs.BoolVar(&f.Apply, "apply", f.Apply, "Carry out what deletes nothing; needs --expect-server or a standup.yaml")
	fs.BoolVar(&f.ConfirmDestructive, "confirm-destructive", f.ConfirmDestructive, "Carry out what deletes, too, after a backup of each object; implies --apply")
	fs.BoolVar(&f.DryRun, "dry-run", f.DryRun, "Change nothing, which is what happens without --apply anyway")
	fs.StringSliceVar(&f.Only, "only", f.Only, "Only these causes")
	fs.StringVar(&f.BackupDir, "backup-dir", f.BackupDir, "Directory for the backups (default: one for this run below ~/.kube/kubestandup)")
	fs.StringSliceVar(&f.Allow, "allow", f.Allow, "An object that may be lost or acted upon where the plan asks for it by name: TYPE/NAMESPACE/NAME, or TYPE/NAME for one that has no namespace")
	fs.BoolVar(&f.RunHooks, "run-hooks", f.RunHooks, "With --uninstalling=finish: run the deletion hooks of the release, which are left out else")
	fs.DurationVar(&f.OlderThan, "older-than", f.OlderThan, "Take an operation of plain Helm for abandoned when it began longer ago than this (default: never)")
	fs.BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 3 when the plan is not empty")
	fs.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", f.AllNamespaces, "Look at all namespaces, whatever -n says; this is the default")
	fs.DurationVar(&f.Timeout, "timeout", f.Timeout, "How long each wait of a repair may take")
	f.Uninstalling = util.NewEnum("", "finish", "keep")
	f.Uninstalling.Add(cmd, "uninstalling", "", "What becomes of a release whose uninstallation was not finished; see the plan for what each deletes")
	f.Output = util.NewOutput("json", "yaml")
	f.Output.AddOutput(cmd)
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(causes(), cobra.ShellCompDirectiveNoFileComp))
}

// Options are the flags, checked.
type Options struct {
	Target             util.TargetFlags
	Apply              bool
	ConfirmDestructive bool
	Names              []string
	Only               []string
	Namespace          string
	BackupDir          string
	Choices            wedge.Choices
	ExitCode           bool
	Timeout            time.Duration
	Output             string

	shell *util.Shell
	now   time.Time
	proof bool
}

// ToOptions checks what was typed. Its errors are usage errors.
func (f *Flags) ToOptions(args []string) (*Options, error) {
	o := &Options{
		Target: *f.Target, proof: f.step, Apply: f.Apply || f.ConfirmDestructive, ConfirmDestructive: f.ConfirmDestructive,
		Names: args, Only: f.Only, BackupDir: f.BackupDir, ExitCode: f.ExitCode, Timeout: f.Timeout, Output: f.Output.String(),
		Choices: wedge.Choices{Names: args, Timeout: f.Timeout, Uninstalling: f.Uninstalling.String(), Hooks: f.RunHooks, OlderThan: f.OlderThan, Allow: f.Allow},
		shell:   f.shell, now: time.Now(),
	}
	if ns := f.shell.ConfigFlags.Namespace; ns != nil && !f.AllNamespaces {
		o.Namespace = *ns
		o.Choices.Namespace = *ns
	}
	switch {
	case f.DryRun && f.ConfirmDestructive:
		return nil, usage("--dry-run and --confirm-destructive contradict each other: leave one out")
	case f.DryRun && f.Apply:
		return nil, usage("--dry-run and --apply contradict each other: leave one out")
	case f.Timeout <= 0:
		return nil, usage("--timeout %s leaves no time", f.Timeout)
	case f.OlderThan < 0:
		return nil, usage("--older-than %s is no age", f.OlderThan)
	}
	for _, only := range f.Only {
		if !slices.Contains(causes(), only) {
			return nil, usage("--only %s: no such cause; choose one of: %s", only, strings.Join(causes(), ", "))
		}
	}
	for _, name := range args {
		if _, rest, _ := strings.Cut(name, "/"); o.Namespace != "" && strings.Contains(rest, "/") && !strings.HasPrefix(rest, o.Namespace+"/") {
			return nil, usage("-n %s contradicts %s: leave one out", o.Namespace, name)
		}
	}
	for _, name := range slices.Concat(args, f.Allow) {
		if kind, rest, found := strings.Cut(name, "/"); !found || kind == "" || rest == "" || strings.HasSuffix(rest, "/") {
			return nil, usage("%q names no object: write TYPE/NAME or TYPE/NAMESPACE/NAME, such as hr/apps/db", name)
		}
	}
	for _, name := range f.Allow {
		if wedge.LacksNamespace(name) {
			return nil, usage("--allow %s: say in which namespace, as TYPE/NAMESPACE/NAME", name)
		}
	}
	return o, nil
}

func usage(format string, args ...any) error { return util.UsageError(fmt.Errorf(format, args...)) }

func causes() []string {
	var names []string
	for _, c := range wedge.Causes() {
		names = append(names, string(c))
	}
	return names
}

// backups is the directory of this run's backups. By default it is not the
// working directory, which is often a checkout: a Secret must not be committed
// by mistake.
func (o *Options) backups(target *util.Target) (string, error) {
	stamp := o.now.UTC().Format("20060102T150405.000Z")
	if o.BackupDir != "" {
		dir, err := filepath.Abs(o.BackupDir)
		if err != nil {
			return "", fmt.Errorf("--backup-dir %s: %w", o.BackupDir, err)
		}
		return filepath.Join(dir, stamp), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("backups have no place, since there is no home directory: say where with --backup-dir")
	}
	host := target.Identity.URL
	if u, err := url.Parse(host); err == nil {
		host = u.Host
	}
	return filepath.Join(home, ".kube", "kubestandup", "backups", regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(host, "_"), stamp), nil
}
