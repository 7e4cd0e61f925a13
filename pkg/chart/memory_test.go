// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
)

// bombs are templates that take all memory, or all of a stack. running is "yes"
// of those that call no function, so that they cannot be stopped, and empty where
// it depends on the machine how far they get.
func bombs() map[string]struct {
	template string
	says     string
	running  string
} {
	deep := `{{ define "a" }}{{ template "a" . }}{{ end }}`
	return map[string]struct {
		template string
		says     string
		running  string
	}{
		"nested ranges":       {`{{ range until 100000 }}{{ range until 100000 }}` + strings.Repeat("x", 1000) + `{{ end }}{{ end }}`, "MiB of memory to be rendered, in demo/templates/x.yaml, and was given up", ""},
		"nested ranges alone": {`{{ $l := until 100000 }}{{ range $l }}{{ range $l }}` + strings.Repeat("x", 1000) + `{{ end }}{{ end }}`, "MiB of memory to be rendered, in demo/templates/x.yaml, and was given up", "yes"},
		"maps":                {`{{ $d := dict }}{{ range until 1000000 }}{{ $_ := set $d (toString .) (repeat 100000 "x") }}{{ end }}`, "MiB of memory to be rendered", "no"},
		"repeat":              {`{{ repeat 2000000000 "x" }}`, "repeat repeats something 2000000000 times", ""},
		"printf width":        {`{{ printf "%1000000000d" 1 }}`, "a document is no YAML object", ""},
		"printf widths":       {`{{ printf (repeat 1000000 "%999999[1]d") 1 }}`, "MiB of memory to be rendered", "yes"},
		"join":                {`{{ join (repeat 1000000 "x") (until 1000000) }}`, "join makes", ""},
		"replace":             {`{{ replace "x" (repeat 1000000 "y") (repeat 1000000 "x") }}`, "replace makes", ""},
		"wrapWith":            {`{{ wrapWith 1 (repeat 1000000 "y") (repeat 1000000 "x ") }}`, "wrapWith makes", ""},
		"include": {`{{ define "a" }}{{ $x := include "b" . }}{{ $x }}{{ $x }}{{ $x }}{{ $x }}{{ end }}` +
			doubling("b", 28), "MiB of memory to be rendered", "yes"},
		"tpl":            {`{{ $x := "{{ tpl .x . }}" }}{{ tpl $x (dict "x" $x "Template" .Template) }}`, "MiB of memory to be rendered", "yes"},
		"tpl with calls": {`{{ $x := "{{ tpl (print .x) . }}" }}{{ tpl $x (dict "x" $x "Template" .Template) }}`, "", ""},
		"toYaml":         {`{{ $x := list "x" }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}`, "MiB of memory to be rendered", "yes"},
		"toYamlPretty":   {`{{ $x := list "x" }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ toYamlPretty $x }}`, "toYamlPretty gets more than", ""},
		"a cycle":        {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ printf "%v" $d }}`, "printf gets more than", ""},
		"a deep cycle":   {`{{ $d := dict }}{{ $_ := set $d "d" (list (dict "e" $d)) }}{{ toYamlPretty $d }}`, "toYamlPretty gets more than", ""},
		"a copied cycle": {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $e := deepCopy $d }}`, "deepCopy gets more than", ""},
		"templates":      {deep + `{{ template "a" . }}`, "exceeded maximum template depth", ""},
		"templates in includes": {
			`{{ define "b" }}{{ if lt .n 90000 }}{{ template "b" (dict "n" (add1 .n)) }}{{ else }}{{ include "b" (dict "n" 0) }}{{ end }}{{ end }}{{ template "b" (dict "n" 0) }}`,
			"MiB of memory to be rendered", "",
		},
	}
}

// doubling are templates of which each includes the next twice.
func doubling(name string, times int) string {
	text, last := "", name
	for i := range times {
		next := fmt.Sprint(name, i)
		text += fmt.Sprintf(`{{ define %q }}{{ template %q . }}{{ template %q . }}{{ end }}`, last, next, next)
		last = next
	}
	return text + fmt.Sprintf(`{{ define %q }}%s{{ end }}{{ include "a" . }}`, last, strings.Repeat("x", 100))
}

const (
	theBomb = "KUBESTANDUP_TEST_BOMB"
	// thePeak is what a bomb may take, in MiB, with all that the test itself
	// takes. Without a bound each takes all there is.
	thePeak    = 1500
	testing256 = 256 << 20
)

// TestMemory renders each bomb in a process of its own: what cannot be stopped
// goes on until that ends.
func TestMemory(t *testing.T) {
	if name := os.Getenv(theBomb); name != "" {
		ignite(t, name)
		return
	}
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(bombs())) {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), program, "-test.run", "^TestMemory$", "-test.v")
			c.Env = append(os.Environ(), theBomb+"="+name)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out[:min(len(out), 4000)])
			}
		})
	}
}

func ignite(t *testing.T, name string) {
	bomb := bombs()[name]
	c := local(t, map[string]string{"demo/templates/x.yaml": bomb.template, "demo/templates/a.yaml": "", "demo/templates/z.yaml": ""})
	c.memory = testing256
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := c.Render(ctx, DefaultServer())
	if err == nil || !strings.Contains(err.Error(), bomb.says) {
		t.Errorf("got %v, want %s", err, bomb.says)
	}
	e, ok := errors.AsType[*MemoryError](err)
	if ok && bomb.running != "" && e.Running() != (bomb.running == "yes") {
		t.Errorf("it is running: %t", e.Running())
	}
	if ok != strings.Contains(bomb.says, "MiB of memory") && bomb.says != "" {
		t.Errorf("got %T", err)
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	total := sample[0].Value.Uint64() >> 20
	t.Logf("%d MiB: %v", total, err)
	if total > thePeak {
		t.Errorf("the program takes %d MiB", total)
	}
}

// TestGarbageDoesNotCount: what a chart makes and drops is no reason to give it
// up.
func TestGarbageDoesNotCount(t *testing.T) {
	t.Parallel()
	c := local(t, map[string]string{"demo/templates/x.yaml": `{{ range until 3000 }}{{ $x := repeat 1000000 "x" }}{{ end }}`})
	c.memory = 512 << 20 // of 3 GB
	if _, err := c.Render(t.Context(), DefaultServer()); err != nil {
		t.Error(err)
	}
}

// TestMarks: what tells which template is rendered is in nothing that comes out.
func TestMarks(t *testing.T) {
	t.Parallel()
	c := local(t, map[string]string{
		"demo/templates/a.yaml": `{{ include (print .Template.BasePath "/b.yaml") . | quote }}{{ .Template.Name }}`,
		"demo/templates/b.yaml": "b: 1", "demo/templates/_c.tpl": "{{ fail \"no\" }}", "demo/templates/NOTES.txt": "{{ .Release.Name }}",
		"demo/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "demo/charts/sub/templates/d.yaml": "d: {{ .Template.Name }}",
	})
	if err := c.enable(server()); err != nil {
		t.Fatal(err)
	}
	r := &rendering{ctx: t.Context()}
	files, err := c.files(r, server())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"demo/templates/a.yaml": `"b: 1"demo/templates/a.yaml`, "demo/templates/b.yaml": "b: 1", "demo/charts/sub/templates/d.yaml": "d: demo/charts/sub/templates/d.yaml",
	} {
		if files[name] != want {
			t.Errorf("%s: %q, want %q", name, files[name], want)
		}
		delete(files, name)
	}
	for name := range files {
		if strings.Contains(name, marks) || strings.Contains(name, "NOTES") {
			t.Errorf("%q is there", name)
		}
	}
}
