// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubestandup/kubestandup/pkg/standup"
)

// TestReportFile: what is wrong with the name is said before anything has run,
// and the file is replaced as a whole.
func TestReportFile(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"r.txt":         "has to end in .json, or in .xml",
		"report":        "has to end in .json, or in .xml",
		"none/r.json":   "there is no directory",
		"folder.json":   "is a directory",
		"r.json, r.xml": "",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "folder.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		for path := range strings.SplitSeq(name, ", ") {
			_, err := newReportFile(filepath.Join(dir, path))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", path, err, want)
			}
		}
	}
	for name, begins := range map[string]string{"r.json": "{", "r.xml": "<?xml"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("old ", 10_000)), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := newReportFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report := &standup.Report{Steps: []standup.StepReport{{Name: "preflight", Result: standup.OK}}}
		report.APIVersion, report.Kind = "kubestandup.dev/v1alpha1", "StandupReport"
		if err := file.write(report); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), begins) || strings.Contains(string(text), "old ") || !strings.Contains(string(text), "preflight") {
			t.Errorf("%s: %.80s, %v", name, text, err)
		}
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("r.json", link); err != nil {
		t.Fatal(err)
	}
	if file, err := newReportFile(link); err != nil || filepath.Base(file.path) != "r.json" {
		t.Errorf("a link leads to %v, %v", file, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := (reportFile{}).write(nil); err != nil {
		t.Error(err)
	}
}
