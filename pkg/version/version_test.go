// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestInfoOf(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}},
	}
	for name, tc := range map[string]struct {
		linked  string
		build   *debug.BuildInfo
		version string
		commit  string
	}{
		"the linker's word counts first": {"v9.9.9", recorded, "v9.9.9", "0123456789abcdef"},
		"go install records the module":  {"", recorded, "v1.2.3", "0123456789abcdef"},
		"a tree without anything":        {"", &debug.BuildInfo{}, "(devel)", ""},
		"no build information at all":    {"", nil, "(devel)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := infoOf(tc.linked, tc.build)
			if got.Version != tc.version || got.Commit != tc.commit {
				t.Errorf("got %+v, want version %q commit %q", got, tc.version, tc.commit)
			}
		})
	}
}

func TestString(t *testing.T) {
	platform := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	if got, want := infoOf("v1.0.0", nil).String(), "v1.0.0 ("+platform; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	i := infoOf("v1.0.0", nil)
	i.Commit = "0123456789abcdef"
	if got, want := i.String(), "v1.0.0 (commit 0123456789ab, "+platform; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
