// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestBoundedFunctions: they are Helm's, except for what no chart needs.
func TestBoundedFunctions(t *testing.T) {
	t.Parallel()
	render := func(template string) (string, error) {
		c := local(t, map[string]string{"demo/templates/x.txt": template})
		if err := c.enable(server()); err != nil {
			t.Fatal(err)
		}
		files, err := c.files(&rendering{ctx: t.Context()}, server())
		return files["demo/templates/x.txt"], err
	}
	for template, want := range map[string]string{
		`{{ default "x" .Values.none }} {{ quote "a" 1 }} {{ printf "%s-%d" "a" 2 }} {{ print "a" }}`: `x "a" "1" a-2 a`,
		`{{ list 1 "b" nil | toJson }} {{ dict "a" (list) | toYaml }}`:                                `[1,"b",null] a: []`,
		`{{ range until 3 }}{{ . }}{{ end }} {{ seq 3 }} {{ repeat 3 "ab" }}{{ "x\ny" | nindent 2 }}`: "012 1 2 3 ababab\n  x\n  y",
		`{{ coalesce nil "" "c" }} {{ ternary "a" "b" true }} {{ hasKey .Values "crds" }}`:            "c a true",
		`{{ getHostByName "example.com" }}{{ regexReplaceAll "a+" "caat" "o" }}`:                      "cot",
		`{{ tpl "{{ upper .Values.plural }}" . }} {{ lookup "v1" "Pod" "a" "b" }}`:                    "WIDGETS map[]",
		`{{ indent 4 (repeat 100000 "abcdefghij") | len }}`:                                           "1000004",
	} {
		if got, err := render(template); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", template, got, err, want)
		}
	}
	for template, says := range map[string]string{
		`{{ until 2000000000 }}`:                    "until repeats something 2000000000 times",
		`{{ untilStep 0 -2000000000 -1 }}`:          "untilStep repeats something 2000000000 times",
		`{{ seq 1 2000000000 }}`:                    "seq repeats something 2000000000 times",
		`{{ repeat 1000000 (repeat 1000000 "x") }}`: "repeat repeats something 1000000 times",
		`{{ until 1e30 }}`:                          "expected integer",
		`{{ indent 1000000000 "x" }}`:               "indent repeats something",
		`{{ randAlphaNum 2000000000 }}`:             "randAlphaNum repeats something",
		`{{ $x := "xx" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`: "printf makes more than 64 MiB",
		`{{ $x := list 1 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}`:      "concat makes more than 64 MiB, or 1048576 items",
		`{{ fail "no" }}`:              "no",
		`{{ env "HOME" }}`:             `function "env" not defined`,
		`{{ required "give it" nil }}`: "give it",
		`{{ mustFirst 1 }}`:            "mustFirst",
	} {
		if _, err := render(template); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", template, err, says)
		}
	}
}

// TestAbandonedTemplate ends when it calls a function, so that it does not go on
// beside the next chart.
func TestAbandonedTemplate(t *testing.T) {
	t.Parallel()
	const loop = `{{ range until 1000000 }}{{ range until 1000000 }}{{ default 1 2 }}{{ end }}{{ end }}`
	c := local(t, map[string]string{"demo/templates/x.yaml": loop})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := c.files(&rendering{ctx: ctx}, server()) // returns at all
	if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("got %v", err)
	}
	c = local(t, map[string]string{"demo/templates/x.yaml": loop})
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = c.Render(ctx, DefaultServer()); err == nil {
		t.Fatal("it has an end")
	}
	if _, ok := errors.AsType[*SlowError](err); !ok {
		t.Errorf("got %T %v", err, err)
	}
}
