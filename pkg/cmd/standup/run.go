// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/standup"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// run proves the server, runs the steps and prints their reports. A report is
// printed also where its step failed, and the exit code is then the failure's.
func (f *Flags) run(ctx context.Context, o *options) error {
	if o.timeout <= 0 {
		return util.UsageError(fmt.Errorf("--timeout %s leaves no time", o.timeout))
	}
	file, err := newReportFile(o.report)
	if err != nil {
		return util.UsageError(err)
	}
	target, err := f.shell.Target(ctx, f.Target, true)
	if err != nil {
		return err
	}
	env, err := newEnv(target)
	if err != nil {
		return err
	}
	defer env.CRDs.Close()
	bar := progress.For(f.shell.ErrOut)
	defer bar.Close()
	env.DryRun, env.Timeout, env.Options = o.dryRun, o.timeout, o.repeated()
	env.Say = func(line string) { bar.Println(printers.OneLine(line)) }
	env.Warn = func(err error) { bar.Println("Warning: " + util.Message(err) + "; trying again") }

	env.Observe = util.NewFollower(bar, printers.AllowsRedraw(f.shell.ErrOut), func(*tiers.Node) bool { return false }).Observe

	report := &standup.Report{
		TypeMeta: printers.TypeMeta("StandupReport"),
		Server:   tiers.Server{URL: target.Identity.URL, UID: target.Identity.UID}, DryRun: o.dryRun,
	}
	steps, good, err := standup.All(ctx, env, o.steps, func(s *standup.StepReport) error {
		if o.output.String() != "" {
			return nil
		}
		return f.print(s, o.sequence)
	})
	bar.Close()
	report.Add(steps)
	if o.output.String() != "" {
		err = errors.Join(err, printers.PrintObject(f.shell.Out, o.output.String(), report))
	}
	if o.sequence && o.output.String() == "" {
		f.conclude(report, good && err == nil, o.dryRun)
	}
	err = errors.Join(err, file.write(report))
	if err != nil {
		return err
	}
	if !good {
		return util.Silent(util.ExitNotReady)
	}
	return nil
}
