// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// steps are the actions of a verdict: "nudge web, delete! v1".
func steps(v *wedge.Verdict) string {
	var out []string
	for _, a := range v.Actions {
		name := a.Object.Name
		if i := strings.LastIndex(name, ".v"); a.Object.Kind == "Secret" && i > 0 {
			name = name[i+1:]
		}
		mark := ""
		if a.Destructive {
			mark = "!"
		}
		out = append(out, string(a.Verb)+mark+" "+name)
	}
	return strings.Join(out, ", ")
}

func wantSteps(t *testing.T, v *wedge.Verdict, want string) {
	t.Helper()
	if got := steps(v); got != want {
		t.Errorf("the plan is\n  %s\nwant\n  %s", got, want)
	}
}

// mentions fails the test when a text is nowhere in the verdict.
func mentions(t *testing.T, v *wedge.Verdict, texts ...string) {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(b.String(), text) {
			t.Errorf("%s\ndoes not say: %s", b.String(), text)
		}
	}
}

// paste types a command that was printed, with the real Helm.
func (s *releaseScene) paste(t *testing.T, major int, command string) {
	t.Helper()
	args := strings.Fields(strings.ReplaceAll(command, "CHART", s.chart()))
	if len(args) == 0 || args[0] != "helm" || !slices.Contains(args, "--kube-context") || !slices.Contains(args, s.ns) {
		t.Fatalf("%q leads to no cluster, or to no namespace", command)
	}
	if _, err := s.c.Helm(t.Context(), major, args[1:]...); err != nil {
		t.Error(err)
	}
}
