// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Plan is the versioned report of `kubectl unwedge -o json`.
type Plan struct {
	metav1.TypeMeta `json:",inline"`
	Server          tiers.Server `json:"server"`
	// Verdicts are in the order in which they are repaired.
	Verdicts []Verdict `json:"verdicts"`
	// Gaps are what could not be looked at, so that nothing is known of it.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Gap is a part of the cluster that could not be looked at.
type Gap struct {
	// What is empty where Why says it all.
	What string `json:"what,omitempty"`
	Why  string `json:"why"`
	// Object is what could not be judged, absent where it is a whole kind.
	Object *flux.Ref `json:"object,omitempty"`
}

// Resolves says whether a controller leaves the state by itself.
type Resolves string

// Whether a state ends by itself.
const (
	Never  Resolves = "no"
	Itself Resolves = "yes"
	When   Resolves = "when"
)

// Verdict is one state that somebody should know of, and what is to be done.
type Verdict struct {
	// Cause is stable: --only and scripts select on it.
	Cause  Cause    `json:"cause"`
	Object flux.Ref `json:"object"`
	// State is the word for the state that the object is in.
	State string `json:"state"`
	// Since is when that began, absent where nothing tells.
	Since *time.Time `json:"since,omitempty"`
	// Summary is one sentence: what is wrong.
	Summary string `json:"summary"`
	// Evidence is what was seen, the most telling first.
	Evidence []Evidence `json:"evidence,omitempty"`
	// ResolvesItself says whether a controller ends the state; ResolvesWhen
	// when, a clause that begins with "as soon as" or "at".
	ResolvesItself Resolves `json:"resolvesItself"`
	ResolvesWhen   string   `json:"resolvesWhen,omitempty"`
	// Why says why no controller ends the state, or which one does.
	Why string `json:"why,omitempty"`
	// Repair says in words what a person has to do where no action does it.
	Repair string `json:"repair,omitempty"`
	// Commands do the repair, or look closer. They carry the target.
	Commands []string `json:"commands,omitempty"`
	// Choice is what a person has to decide before anything is done.
	Choice *Choice `json:"choice,omitempty"`
	// Refused is why the repair is not safe to be carried out now: exit 6.
	Refused string   `json:"refused,omitempty"`
	Actions []Action `json:"actions,omitempty"`
}

// Evidence is one value that was read.
type Evidence struct {
	Object flux.Ref `json:"object"`
	// Field is a path such as status.phase, or the type of a condition.
	Field string `json:"field"`
	Value string `json:"value"`
}

// Choice is a decision that no program should make for a person.
type Choice struct {
	Flag    string   `json:"flag"`
	Options []Option `json:"options"`
}

// Option is one way to decide: what it deletes and what it keeps.
type Option struct {
	Value   string   `json:"value"`
	Deletes []string `json:"deletes,omitempty"`
	Keeps   []string `json:"keeps,omitempty"`
	// Notes are what else comes of it.
	Notes []string `json:"notes,omitempty"`
	// Command makes this choice, and carries it out.
	Command string `json:"command,omitempty"`
	// Refused is why this way is not open, absent when it is.
	Refused string `json:"refused,omitempty"`
}

// Open is true for a verdict that asks for something to be done.
func (v *Verdict) Open() bool {
	return len(v.Actions) > 0 || v.Choice != nil || v.Refused != "" || v.ResolvesItself == Never
}

// Address completes the commands of the verdicts with the arguments that lead
// to the cluster: to it alone, whatever the current context is by then.
func Address(verdicts []Verdict, complete func(command string) string) {
	for i := range verdicts {
		for j, c := range verdicts[i].Commands {
			verdicts[i].Commands[j] = complete(c)
		}
	}
}

// About is true for a verdict in which an object takes part: it is what the
// verdict is about, or was seen for it, or is acted upon.
func (v *Verdict) About(name string) bool {
	return Matches(name, v.Object) ||
		slices.ContainsFunc(v.Evidence, func(e Evidence) bool { return Matches(name, e.Object) }) ||
		slices.ContainsFunc(v.Actions, func(a Action) bool { return Matches(name, a.Object) })
}

func (v *Verdict) evidence(object flux.Ref, field, value string) {
	if value != "" {
		v.Evidence = append(v.Evidence, Evidence{object, field, withoutValues(value)})
	}
}

// quoting is what a value follows in the errors of the API server:
// field.Error of apimachinery, and structured-merge-diff (typed/helpers.go),
// which prints what it did not expect. The value may hold anything, so that its
// end cannot be told.
func quoting() *regexp.Regexp {
	return regexp.MustCompile(`(?:Invalid|Unsupported|Duplicate) value: |expected [^,:;]+, got |valueUnstructured\{Value:|\bgot "`)
}

// withoutValues cuts an API server's error that names a Secret before the first
// value that it quotes: the name may come after it. Such errors stand in
// conditions and in records.
func withoutValues(text string) string {
	if !strings.Contains(strings.ToLower(text), "secret") {
		return text
	}
	if at := quoting().FindStringIndex(text); at != nil {
		return text[:at[1]] + "(left out)"
	}
	return text
}

func (v *Verdict) since(t time.Time) {
	if !t.IsZero() {
		t = t.UTC()
		v.Since = &t
	}
}
