// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

func TestChoosingSteps(t *testing.T) {
	for _, tt := range []struct {
		from string
		skip []string
		want string
	}{
		{"", nil, "preflight crds unwedge resume verify"},
		{"unwedge", nil, "unwedge resume verify"},
		{"", []string{"unwedge", "verify"}, "preflight crds resume"},
		{"resume", []string{"resume"}, "verify"},
		{"restore", nil, `"restore" is no step: the steps are preflight, crds, unwedge, resume, verify`},
		{"", []string{"verifi"}, `"verifi" is no step: the steps are preflight, crds, unwedge, resume, verify`},
		{"verify", []string{"verify"}, "no step is left: of verify, all are skipped"},
	} {
		steps, err := Choose(tt.from, tt.skip)
		got := strings.Join(names(steps), " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("from %q without %q: got %s, want %s", tt.from, tt.skip, got, tt.want)
		}
	}
}

// steps are a recipe of which each step ends as said: ok, findings, blocks, or
// an error.
func steps(ran *[]string, how ...string) []Step {
	var all []Step
	for i, h := range how {
		name := []string{"preflight", "crds", "unwedge", "resume", "verify"}[i]
		all = append(all, Step{Name: name, Run: func(context.Context, *Env) (*StepReport, error) {
			*ran = append(*ran, name)
			r := &StepReport{Next: "next of " + name}
			switch h {
			case "error":
				return nil, errors.New("boom")
			case "findings", "blocks":
				r.Checks = []Check{{Findings: []finding.Finding{{Severity: finding.Error, Blocks: h == "blocks"}}}}
			case "ok":
				r.Next = ""
			}
			r.close()
			return r, nil
		}})
	}
	return all
}

// TestAll: a finding that blocks ends the sequence, and so does a failure; any
// other finding is what the later steps are there for.
func TestAll(t *testing.T) {
	env := &Env{Command: func(plugin, rest string) string { return "kubectl " + plugin + " " + rest }}
	for _, tt := range []struct {
		how  string
		want string // result of each step, and the last word
		good bool
		err  bool
	}{
		{"ok ok ok ok ok", "ok ok ok ok ok: ", true, false},
		{"findings ok ok ok ok", "findings ok ok ok ok: ", true, false},
		{"ok ok findings ok ok", "ok ok findings ok ok: ", false, false},
		{"ok ok ok ok findings", "ok ok ok ok findings: next of verify", false, false},
		{"findings", "findings: next of preflight", false, false},
		{"blocks ok ok ok ok", "findings skipped skipped skipped skipped: kubectl standup all", false, false},
		{"ok error ok ok ok", "ok failed skipped skipped skipped: kubectl standup all --from-step crds", false, true},
		{"findings ok ok error ok", "findings ok ok failed skipped: kubectl standup all --from-step resume", false, true},
	} {
		var ran, told []string
		next := ""
		reports, good, err := All(t.Context(), env, steps(&ran, strings.Fields(tt.how)...), func(r *StepReport) error {
			told = append(told, string(r.Result))
			if r.Result != Skipped {
				next = r.Next
			}
			return nil
		})
		if got := strings.Join(told, " ") + ": " + next; got != tt.want || good != tt.good || (err != nil) != tt.err {
			t.Errorf("%s: got %s, %t, %v", tt.how, got, good, err)
		}
		for i, r := range reports {
			if (r.Result == Skipped) != (i >= len(ran)) || r.Name == "" {
				t.Errorf("%s: ran %v, reported %+v", tt.how, ran, r)
			}
		}
		if len(reports) != len(strings.Fields(tt.how)) {
			t.Errorf("%s: %d reports", tt.how, len(reports))
		}
	}
}

func TestAllEndsWhereNobodyReads(t *testing.T) {
	var ran []string
	_, good, err := All(t.Context(), &Env{}, steps(&ran, "ok", "ok"), func(*StepReport) error { return errors.New("closed") })
	if err == nil || good || fmt.Sprint(ran) != "[preflight]" {
		t.Errorf("ran %v, %t, %v", ran, good, err)
	}
}
