// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// killedCases: unwedge itself is killed (SIGKILL) after an act of a repair, and
// run again. A HelmRelease that it had suspended is resumed then, and whatever
// was left is done.
func killedCases() []releaseCase {
	var cases []releaseCase
	for _, choice := range []string{"keep", "finish"} {
		acts := []string{"suspend HelmRelease", "mark-failed Secret", "resume HelmRelease"}
		if choice == "finish" {
			acts = []string{"suspend HelmRelease", "delete Service", "delete ServiceAccount", "wait HelmRelease", "delete Secret", "resume HelmRelease"}
		}
		for _, act := range acts {
			cases = append(cases, releaseCase{"killed after " + act + ", " + choice, func(t *testing.T, s *releaseScene) {
				s.release(t, values("hook", "pre-delete"))
				s.remember(t)
				s.killed(t, 4, 1, "uninstalling", "uninstall", "web")
			}, func(t *testing.T, s *releaseScene) { mendKilled(t, s, choice, act) }})
		}
	}
	leave := func(t *testing.T, s *releaseScene) {
		s.release(t, values("hook", "pre-delete"))
		s.remember(t)
		s.killed(t, 4, 1, "uninstalling", "uninstall", "web")
	}
	return append(cases,
		releaseCase{"interrupted while it waits, finish", leave, mendInterrupted},
		releaseCase{"somebody resumes it meanwhile, finish", leave, mendResumed})
}

// waiting starts a repair that cannot end, since a finalizer holds an object.
func (s *releaseScene) waiting(t *testing.T) (run *running, args []string, let func()) {
	t.Helper()
	held := s.objects()["ConfigMap"]
	s.merge(t, held, `{"metadata":{"finalizers":["example.org/hold"]}}`)
	args = slices.Concat([]string{"unwedge", s.tier(), waitsAtMost, "--backup-dir", s.backups, "--uninstalling=finish", "--confirm-destructive"}, s.named)
	run = s.sh.start(t, args...)
	run.says(t, "ConfigMap/"+s.ns+"/web is still there, held by finalizer example.org/hold")
	return run, args, func() { s.merge(t, held, `{"metadata":{"finalizers":null}}`) }
}

// mendInterrupted: at Ctrl-C the HelmRelease is resumed, and the rest is done
// by the next run.
func mendInterrupted(t *testing.T, s *releaseScene) {
	run, args, let := s.waiting(t)
	if err := run.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	o := run.wait(t)
	if o.code != 130 {
		t.Errorf("%s\nwant exit code 130", o)
	}
	o.holds(t, o.stderr, "done resume HelmRelease/"+s.ns+"/web", "interrupted")
	s.notOurs(t)
	if got := s.records(t); got != "v1 uninstalling" {
		t.Errorf("%s: a record went before its objects", got)
	}
	let()
	s.sh.want(t, 0, args...)
	s.reinstalled(t)
}

// mendResumed: records are not touched once the HelmRelease is at work again.
func mendResumed(t *testing.T, s *releaseScene) {
	run, args, let := s.waiting(t)
	s.merge(t, s.hr(), `{"spec":{"suspend":false}}`)
	let()
	o := run.wait(t)
	if o.code != 1 {
		t.Errorf("%s\nwant exit code 1", o)
	}
	o.holds(t, o.stderr, "HelmRelease/"+s.ns+"/web has changed: spec.suspend is ")
	if got := s.records(t); got != "v1 uninstalling" {
		t.Errorf("%s: a record was deleted under its controller", got)
	}
	s.sh.want(t, 0, args...)
	s.reinstalled(t)
}

func mendKilled(t *testing.T, s *releaseScene, choice, act string) {
	args := slices.Concat([]string{"unwedge", s.tier(), waitsAtMost, "--backup-dir", s.backups, "--uninstalling=" + choice, "--confirm-destructive"}, s.named)
	run := s.sh.start(t, args...)
	verb, kind, _ := strings.Cut(act, " ")
	run.says(t, "done "+verb+" "+kind+"/"+s.ns+"/")
	if err := run.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.cmd.Wait() // it was killed
	run.cancel()

	s.sh.want(t, 0, args...)
	s.untilReady(t, s.hr())
	if choice == "finish" {
		s.reinstalled(t)
		return
	}
	s.kept(t)
	s.notOurs(t)
	s.healthy(t, s.tier())
	if got := s.records(t); got != "v1 superseded, v2 deployed" {
		t.Errorf("%s: its history is lost", got)
	}
}
