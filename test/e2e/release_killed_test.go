// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
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
	return cases
}

func mendKilled(t *testing.T, s *releaseScene, choice, act string) {
	args := slices.Concat([]string{"unwedge", s.tier(), "--timeout", "40s", "--backup-dir", s.backups, "--uninstalling=" + choice, "--confirm-destructive"}, s.named)
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
