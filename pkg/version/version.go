// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package version says which build is running.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker (-X), and never written at run time.
var version string

// Info describes the running build.
type Info struct {
	// Version is the release, "v1.2.3", or "(devel)" for a build from a tree.
	Version string `json:"version"`
	// Commit is the git commit of the tree, when the toolchain recorded it.
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get reads the version that the linker set, and without one what the Go
// toolchain recorded, so that `go install …@v1.2.3` reports truly too.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return infoOf(version, build)
}

func infoOf(linked string, build *debug.BuildInfo) Info {
	info := Info{
		Version:   linked,
		GoVersion: runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build != nil {
		info.Version = cmp.Or(info.Version, build.Main.Version)
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				info.Commit = setting.Value
			}
		}
	}
	info.Version = cmp.Or(info.Version, "(devel)")
	return info
}

// String is the version on one line, for people.
func (i Info) String() string {
	if i.Commit == "" {
		return fmt.Sprintf("%s (%s, %s)", i.Version, i.GoVersion, i.Platform)
	}
	return fmt.Sprintf("%s (commit %.12s, %s, %s)", i.Version, i.Commit, i.GoVersion, i.Platform)
}
