// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/printers"
)

type row struct{ name, ready, path, status string }

func columns() []Column[row] {
	return []Column[row]{
		{Name: "NAME", Value: func(r row) string { return r.name }},
		{Name: "READY", State: true, Value: func(r row) string { return r.ready }},
		{Name: "PATH", Wide: true, Value: func(r row) string { return r.path }},
		{Name: "STATUS", State: true, Value: func(r row) string { return r.status }},
	}
}

func rows() []row {
	return []row{
		{"platform", "True", "./platform", "ready"},
		{"platform-config", "False", "./platform-config", `wedged: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`},
		{"apps", "False", "./apps", "blocked by platform-config"},
	}
}

func TestPrintTable(t *testing.T) {
	for name, tc := range map[string]struct {
		rows    []row
		options TableOptions
		want    string
	}{
		"no terminal: never cut, never wrapped": {rows(), TableOptions{}, `
NAME              READY   STATUS
platform          True    ready
platform-config   False   wedged: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"
apps              False   blocked by platform-config
`},
		"wide, without headers": {rows(), TableOptions{Wide: true, NoHeaders: true}, `
platform          True    ./platform          ready
platform-config   False   ./platform-config   wedged: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"
apps              False   ./apps              blocked by platform-config
`},
		"a narrow terminal continues the last column": {rows(), TableOptions{Width: 64}, `
NAME              READY   STATUS
platform          True    ready
platform-config   False   wedged: no matches for kind
                          "StorageProfile" in version
                          "cdi.kubevirt.io/v1beta1"
apps              False   blocked by platform-config
`},
		"a very narrow one gives it lines of its own": {rows(), TableOptions{Width: 40}, `
NAME              READY   STATUS
platform          True    ready
platform-config   False
    wedged: no matches for kind
    "StorageProfile" in version
    "cdi.kubevirt.io/v1beta1"
apps              False
    blocked by platform-config
`},
		"colour for state words alone, in lines of equal shape": {rows()[:2], TableOptions{Color: true, Width: 64}, `
NAME              READY   STATUS
platform          ` + green + `True` + reset + `    ` + green + `ready` + reset + `
platform-config   ` + red + `False` + reset + `   ` + red + `wedged` + reset + `: no matches for kind
                          "StorageProfile" in version
                          "cdi.kubevirt.io/v1beta1"
`},
		"what a server says cannot reach the terminal": {
			[]row{{"a\x1b[2J", "True", "", "one\ntwo\x07"}}, TableOptions{NoHeaders: true}, `
a^[[2J   True   one two^G
`,
		},
		"wide letters are counted as the terminal shows them": {
			[]row{{"日本", "True", "", "x"}, {"abcdef", "True", "", "y"}}, TableOptions{NoHeaders: true}, `
日本     True   x
abcdef   True   y
`,
		},
		"nothing but headers": {nil, TableOptions{}, `
NAME   READY   STATUS
`},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := PrintTable(&b, columns(), tc.rows, tc.options); err != nil {
				t.Fatal(err)
			}
			if got, want := b.String(), strings.TrimPrefix(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The look is kubectl's own: its tab writer lays the same cells out alike.
func TestPrintTableLooksLikeKubectl(t *testing.T) {
	var ours, theirs strings.Builder
	if err := PrintTable(&ours, columns(), rows(), TableOptions{Wide: true}); err != nil {
		t.Fatal(err)
	}
	w := printers.GetNewTabWriter(&theirs)
	w.Write([]byte("NAME\tREADY\tPATH\tSTATUS\n"))
	for _, r := range rows() {
		w.Write([]byte(r.name + "\t" + r.ready + "\t" + r.path + "\t" + r.status + "\n"))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if ours.String() != theirs.String() {
		t.Errorf("ours\n%s\nkubectl's\n%s", &ours, &theirs)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestPrintTableReportsAWriteThatFailed(t *testing.T) {
	if err := PrintTable(brokenWriter{}, columns(), rows(), TableOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}
