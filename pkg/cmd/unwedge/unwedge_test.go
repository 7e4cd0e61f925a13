// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// typed is what was typed, checked, and the streams that it writes to.
func typed(t *testing.T, args ...string) (*Options, string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd, f := newCmd(streams)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	o, err := f.ToOptions(cmd.Flags().Args())
	return o, out.String(), err
}

func TestWhatIsTypedWrongly(t *testing.T) {
	for _, tt := range []struct{ args, says string }{
		{"--apply --dry-run", "--dry-run and --apply contradict each other"},
		{"--confirm-destructive --dry-run", "--dry-run and --confirm-destructive contradict each other"},
		{"hr/apps/db -n other", "-n other contradicts hr/apps/db"},
		{"--timeout 0s", "--timeout 0s leaves no time"},
		{"--older-than -1s", "--older-than -1s is no age"},
		{"--only nothing", "--only nothing: no such cause; choose one of: controller-missing,"},
		{"db", `"db" names no object`},
		{"hr/", `"hr/" names no object`},
		{"/db", `"/db" names no object`},
		{"--allow db", `"db" names no object`},
		{"--allow pvc/data", "--allow pvc/data: say in which namespace"},
	} {
		_, _, err := typed(t, strings.Fields(tt.args)...)
		if err == nil || !strings.Contains(err.Error(), tt.says) || util.ExitCode(err) != util.ExitUsage {
			t.Errorf("%s: %v (exit code %d), want %q", tt.args, err, util.ExitCode(err), tt.says)
		}
	}
}

func TestConfirmingImpliesApplying(t *testing.T) {
	for args, apply := range map[string]bool{"": false, "--dry-run": false, "--apply": true, "--confirm-destructive": true, "--uninstalling=keep": false} {
		o, _, err := typed(t, strings.Fields(args)...)
		if err != nil || o.Apply != apply {
			t.Errorf("%q: apply %v, %v", args, o.Apply, err)
		}
	}
}

// TestWhatIsWanted: names, causes and a namespace narrow what is shown and done.
func TestWhatIsWanted(t *testing.T) {
	v := &wedge.Verdict{Cause: wedge.ReleasePending, Object: flux.Ref{Kind: "HelmRelease", Namespace: "apps", Name: "db"}}
	for args, want := range map[string]bool{
		"": true, "hr/db": true, "hr/apps/db": true, "hr/other": false, "hr/other hr/db": true,
		"--only release-pending": true, "--only asleep": false, "--only asleep,release-pending": true,
		"-n apps": true, "-n other": false, "-n other -A": true,
	} {
		o, _, err := typed(t, strings.Fields(args)...)
		if err != nil || o.wants(v) != want {
			t.Errorf("%q: %v, want %v (%v)", args, o.wants(v), want, err)
		}
	}
}

// TestWhatANamespaceLeavesOut is said: what was seen, and what was not looked at.
func TestWhatANamespaceLeavesOut(t *testing.T) {
	in := func(namespace string) *tiers.Node {
		return &tiers.Node{Tier: &flux.Tier{Ref: flux.Ref{Kind: "HelmRelease", Namespace: namespace, Name: "db"}}}
	}
	world := &wedge.World{Releases: []*wedge.Release{{Node: in("apps")}, {Node: in("a"), Unlooked: true}, {Node: in("b"), Unlooked: true}}}
	seen := func(objects ...flux.Ref) (all []wedge.Verdict) {
		for _, o := range objects {
			all = append(all, wedge.Verdict{Cause: wedge.Asleep, Object: o})
		}
		return all
	}
	here, there := flux.Ref{Kind: "Kustomization", Namespace: "apps", Name: "x"}, flux.Ref{Kind: "CustomResourceDefinition", Name: "x"}
	for _, tt := range []struct {
		args string
		seen []wedge.Verdict
		says string
	}{
		{"-n apps", seen(here, there), "not shown: 1 verdict about other namespaces, or what is in none; not looked at: 2 releases in other namespaces. Leave -n out to see them\n"},
		{"-n apps", seen(here), "not looked at: 2 releases in other namespaces. Leave -n out to see them\n"},
		{"-n apps ks/x", seen(here, there), ""},
		{"-n apps --only dependency-cycle ks/x", seen(there), ""},
		{"-n apps -A", nil, ""}, // then none is left out
	} {
		streams, _, _, out := genericiooptions.NewTestIOStreams()
		cmd, f := newCmd(streams)
		if err := cmd.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		o, err := f.ToOptions(cmd.Flags().Args())
		if err != nil {
			t.Fatal(err)
		}
		if o.Choices.Namespace != o.Namespace {
			t.Errorf("%s: namespace %q is observed, and %q is shown", tt.args, o.Choices.Namespace, o.Namespace)
		}
		w := world
		if o.Namespace == "" {
			w = &wedge.World{}
		}
		o.noteElsewhere(w, &wedge.Plan{Verdicts: tt.seen})
		if out.String() != tt.says {
			t.Errorf("%s: %q, want %q", tt.args, out, tt.says)
		}
	}
}

// TestTheCommandIsRepeated with what narrowed it, so that what is pasted does
// what was shown.
func TestTheCommandIsRepeated(t *testing.T) {
	o, _, err := typed(t, strings.Fields("hr/apps/db --only asleep -n apps --allow pvc/apps/x --uninstalling finish --run-hooks --older-than 1h")...)
	if err != nil {
		t.Fatal(err)
	}
	want := "hr/apps/db --only asleep -n apps --allow pvc/apps/x --uninstalling=finish --run-hooks --older-than 1h0m0s --apply"
	if got := o.again("--apply"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestHowItEnds is the exit code of a run, whatever it printed.
func TestHowItEnds(t *testing.T) {
	db := flux.Ref{Kind: "HelmRelease", Namespace: "apps", Name: "db"}
	act := func(result wedge.Result, message string) wedge.Verdict {
		return wedge.Verdict{Object: db, Actions: []wedge.Action{{Object: db, Result: result, Message: message}}}
	}
	for name, tt := range map[string]struct {
		verdict wedge.Verdict
		tally   wedge.Tally
		gaps    []wedge.Gap
		code    int
		says    string
	}{
		"done":    {act(wedge.Done, ""), wedge.Tally{Done: 1}, nil, 0, ""},
		"changed": {act(wedge.Skipped, "HelmRelease/apps/db was changed since the plan"), wedge.Tally{Skipped: 1}, nil, 1, "HelmRelease/apps/db was changed since the plan"},
		"failed":  {act(wedge.Failed, "boom"), wedge.Tally{Failed: 1, Refused: 1}, nil, 1, "HelmRelease/apps/db: boom"},
		"late":    {act(wedge.Failed, "still there"), wedge.Tally{Late: 1, Refused: 1}, nil, 4, "still there"},
		"refused": {wedge.Verdict{Object: db, Refused: "it would lose data"}, wedge.Tally{Refused: 1}, nil, 6, "it would lose data"},
		"a choice": {
			wedge.Verdict{Object: db, Choice: &wedge.Choice{Options: []wedge.Option{{Command: "one"}, {Command: "two"}, {Refused: "no"}}}},
			wedge.Tally{Refused: 1},
			nil, 6, "a person has to choose: one\n  or two",
		},
		"a gap": {act(wedge.Done, ""), wedge.Tally{Done: 1}, []wedge.Gap{{What: "Helm releases", Why: "secrets is forbidden"}}, 1, "Helm releases: not looked at: secrets is forbidden"},
	} {
		o, _, err := typed(t, "--confirm-destructive")
		if err != nil {
			t.Fatal(err)
		}
		err = o.end(&wedge.Plan{Verdicts: []wedge.Verdict{tt.verdict}, Gaps: tt.gaps}, tt.tally, nil)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if util.ExitCode(err) != tt.code || said != "" && !strings.Contains(said, tt.says) || (tt.says == "") != (err == nil) {
			t.Errorf("%s: %v (exit code %d), want %d and %q", name, err, util.ExitCode(err), tt.code, tt.says)
		}
	}
}

// TestCauses: each has a few words, and they are those that --only takes.
func TestCauses(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd, _ := newCmd(streams)
	cmd.SetArgs([]string{"causes"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, c := range wedge.Causes() {
		if c.About() == "" || !strings.Contains(out.String(), string(c)+" ") || !strings.Contains(out.String(), c.About()+"\n") {
			t.Errorf("%s: %q is not listed", c, c.About())
		}
	}
}

// TestPage is how a verdict reads.
func TestPage(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd, f := newCmd(streams)
	if err := cmd.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	o, err := f.ToOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	since := o.now.Add(-3 * time.Hour)
	hr := flux.Ref{Kind: "HelmRelease", Namespace: "apps", Name: "db"}
	record := flux.Ref{Kind: "Secret", Namespace: "apps", Name: "r"}
	plan := &wedge.Plan{Verdicts: []wedge.Verdict{{
		Cause: wedge.ReleaseUninstalling, Object: hr, State: "uninstalling", Since: &since, Summary: "it is \x1b[31mstuck",
		Evidence:       []wedge.Evidence{{Object: record, Field: "info.status", Value: "uninstalling"}, {Object: hr, Field: "Ready", Value: "False"}},
		ResolvesItself: wedge.Never, Why: "nobody ends it", Repair: "choose", Commands: []string{"helm status db --kube-context prod"},
		Choice: &wedge.Choice{Flag: "--uninstalling", Options: []wedge.Option{
			{Value: "finish", Deletes: []string{"ConfigMap/apps/a"}, Refused: "it would lose data"}, {Value: "keep", Keeps: []string{"all"}, Command: "kubectl unwedge x"},
		}},
	}, {
		Cause: wedge.Asleep, Object: hr, State: "asleep", Summary: "it sleeps", ResolvesItself: wedge.Itself, ResolvesWhen: "at noon",
		Actions: []wedge.Action{{Object: hr, Description: "ask it"}, {Object: record, Description: "delete it", Destructive: true}},
	}, {
		Cause: wedge.Asleep, Object: hr, State: "asleep", Summary: "it sleeps", ResolvesItself: wedge.When, ResolvesWhen: "as soon as it wakes",
		Refused: "not safe", Actions: []wedge.Action{{Object: hr, Description: "not shown"}},
	}}}
	if err := o.print(plan); err != nil {
		t.Fatal(err)
	}
	const want = `HelmRelease/apps/db: uninstalling for 3h (release-uninstalling)
  It is ^[[31mstuck.
  seen     Secret/apps/r info.status: uninstalling
           Ready: False
  ends     not by itself: nobody ends it
  repair   Choose.
           helm status db --kube-context prod
  choose   finish deletes ConfigMap/apps/a
           and keeps nothing
           refused: it would lose data
  choose   keep deletes nothing
           and keeps all
           kubectl unwedge x

HelmRelease/apps/db: asleep
  It sleeps.
  ends     by itself, at noon
  plan     1. HelmRelease/apps/db: ask it
           2. Secret/apps/r: delete it, DESTRUCTIVE

HelmRelease/apps/db: asleep
  It sleeps.
  ends     as soon as it wakes
  refused  not safe
`
	if got := out.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
