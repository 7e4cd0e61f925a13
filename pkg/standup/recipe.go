// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one part of a bring-up: a sentence, and a function that can be run
// again at any time.
type Step struct {
	Name string
	// Short says what the step does.
	Short string
	// Changes is true for a step that changes the cluster unless it is told not
	// to.
	Changes bool
	// Run does the step. Its report is nil only where nothing could be looked
	// at; what is wrong with the cluster is in the report, and the error says
	// with which code the command ends.
	Run func(context.Context, *Env) (*StepReport, error)
}

// Recipe is the bring-up, in its order.
func Recipe() []Step {
	return []Step{
		{Name: "preflight", Run: Preflight, Short: "Look at everything that a bring-up needs, and change nothing"},
		{Name: "crds", Run: CRDs, Changes: true, Short: "Apply the CRDs that nobody installs, and break the deadlocks of those made at run time"},
		{Name: "unwedge", Run: Unwedge, Short: "Find what no controller will leave by itself; change nothing unless told to"},
		{Name: "resume", Run: Resume, Changes: true, Short: "Un-suspend what is meant to run, in the order of the graph, and wait for it"},
		{Name: "verify", Run: Verify, Short: "Prove that every tier is Ready, and what that proves; change nothing"},
	}
}

// Choose narrows the recipe: to what begins with the step from, and without
// those in skip. Either may be empty. The error is one of usage.
func Choose(from string, skip []string) ([]Step, error) {
	all := Recipe()
	for _, name := range append([]string{from}, skip...) {
		if name != "" && !slices.ContainsFunc(all, func(s Step) bool { return s.Name == name }) {
			return nil, fmt.Errorf("%q is no step: the steps are %s", name, strings.Join(names(all), ", "))
		}
	}
	first := max(0, slices.IndexFunc(all, func(s Step) bool { return s.Name == from }))
	chosen := slices.DeleteFunc(all[first:], func(s Step) bool { return slices.Contains(skip, s.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no step is left: of %s, all are skipped", strings.Join(names(Recipe()[first:]), ", "))
	}
	return chosen, nil
}

func names(steps []Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Name)
	}
	return out
}

// All runs the steps in turn, and tells done of each report as it comes. It
// stops at the first step that fails, and at a finding that blocks; what is
// then left is in the report as skipped. The error is the failure's.
//
// Nothing is left to do, and Done is true, when no step failed and the last
// word of each was good. Before other steps preflight has none: what it finds is
// what these are there for.
func All(ctx context.Context, env *Env, steps []Step, done func(*StepReport) error) (reports []StepReport, good bool, err error) {
	good = true
	for i, step := range steps {
		if len(steps) > 1 {
			env.say(fmt.Sprintf("── %s: %s", step.Name, step.Short))
		}
		report, err := step.run(ctx, env)
		stop := err != nil || report.blocks()
		switch {
		case err != nil && len(steps) > 1:
			report.Next = env.again("all --from-step " + cmp.Or(report.from, step.Name))
		case err != nil && env.DryRun:
			report.Next = env.again(step.Name)
		case err != nil:
			report.Next = cmp.Or(report.Next, env.again(step.Name))
		case stop && len(steps) > 1:
			report.Next = env.again("all") // once what blocks is mended
		case len(steps) > 1 && (i < len(steps)-1 || report.Result == OK):
			report.Next = "" // the sequence goes on by itself, or is at its end
		}
		reports = append(reports, *report)
		if err := done(report); err != nil {
			return reports, false, err
		}
		if step.Name != "preflight" || stop || len(steps) == 1 {
			good = good && report.Result == OK
		}
		if !stop {
			continue
		}
		for _, left := range steps[i+1:] {
			skipped := StepReport{Name: left.Name, Result: Skipped}
			reports = append(reports, skipped)
			if err := done(&skipped); err != nil {
				return reports, false, err
			}
		}
		return reports, false, err
	}
	return reports, good, nil
}

// run runs one step and gives its report what all have.
func (s Step) run(ctx context.Context, env *Env) (*StepReport, error) {
	start := time.Now()
	report, err := s.Run(ctx, env)
	if report == nil {
		report = &StepReport{}
	}
	if err != nil {
		report.Result, report.Error = Failed, err.Error()
	}
	if ctx.Err() != nil {
		report.Error = "interrupted"
	}
	report.Name, report.Seconds = s.Name, time.Since(start).Seconds()
	return report, err
}

func (s *StepReport) blocks() bool {
	for _, f := range s.Findings {
		if f.Blocks {
			return true
		}
	}
	return false
}
