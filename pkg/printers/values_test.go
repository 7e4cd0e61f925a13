// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		30 * time.Second:     "30s",
		312 * time.Second:    "5m12s",
		3 * 24 * time.Hour:   "3d",
		800 * 24 * time.Hour: "2y70d",
	} {
		if got := Age(now.Add(-ago), now); got != want {
			t.Errorf("%s ago: got %q, want %q", ago, got, want)
		}
	}
	if got := Age(time.Time{}, now); got != "<unknown>" {
		t.Errorf("never: got %q", got)
	}
}

func TestName(t *testing.T) {
	for want, ref := range map[string]flux.Ref{
		"kustomization.kustomize.toolkit.fluxcd.io/apps": {
			APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: "apps",
		},
		"secret/sops-age": {APIVersion: "v1", Kind: "Secret", Namespace: "flux-system", Name: "sops-age"},
	} {
		if got := Name(ref); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOrNone(t *testing.T) {
	if OrNone("") != "<none>" || OrNone("x") != "x" {
		t.Errorf("got %q and %q", OrNone(""), OrNone("x"))
	}
}

func TestFit(t *testing.T) {
	for _, tc := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"exact", 5, "exact"},
		{"too long for it", 8, "too lon…"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
	} {
		if got := Fit(tc.text, tc.columns); got != tc.want {
			t.Errorf("Fit(%q, %d) = %q, want %q", tc.text, tc.columns, got, tc.want)
		}
	}
}

func TestColorState(t *testing.T) {
	for text, want := range map[string]string{
		"wedged: x":        red + "wedged" + reset + ": x",
		"Ready":            green + "Ready" + reset,
		"retrying at 3:04": yellow + "retrying" + reset + " at 3:04",
		"suspended":        faint + "suspended" + reset,
		"readyish":         "readyish",
		"platform":         "platform",
		"":                 "",
	} {
		if got := colorState(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestNoTerminalHasNoColorAndNoSize(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if AllowsColor(file, false) || AllowsColor(&bytes.Buffer{}, false) {
		t.Error("a file and a buffer are no terminals, yet colour is on")
	}
	if w := TerminalWidth(file); w != 0 {
		t.Errorf("a file is %d columns wide", w)
	}
	if w, h := TerminalSize(&bytes.Buffer{}); w != 0 || h != 0 {
		t.Errorf("a buffer is %d by %d", w, h)
	}
}

type report struct {
	metav1.TypeMeta `json:",inline"`
	Message         string `json:"message,omitempty"`
}

func TestPrintObject(t *testing.T) {
	r := report{TypeMeta("TierList"), `kind "A" <b> & c`}
	for format, want := range map[string]string{
		"json": `{
    "kind": "TierList",
    "apiVersion": "kubestandup.dev/v1alpha1",
    "message": "kind \"A\" <b> & c"
}
`,
		"yaml": `apiVersion: kubestandup.dev/v1alpha1
kind: TierList
message: kind "A" <b> & c
`,
	} {
		var b strings.Builder
		if err := PrintObject(&b, format, r); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, &b, want)
		}
	}
}

func TestPrintObjectRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		format string
		report any
		want   string
	}{
		"an unknown format":     {"xml", report{TypeMeta: TypeMeta("TierList")}, "only json and yaml"},
		"a report without kind": {"json", report{}, "no apiVersion and kind"},
		"no object at all":      {"json", []string{"x"}, "no apiVersion and kind"},
		"what cannot be said":   {"json", map[string]any{"f": func() {}}, "report as json"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			err := PrintObject(&b, tc.format, tc.report)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
			if b.Len() > 0 {
				t.Errorf("it wrote %q all the same", &b)
			}
		})
	}
}
