// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// Installed is what somebody installs before Flux is there, as far as the
// repository tells: a release of a helmfile, or manifests by their URL. Whether
// it is all of the chart or its CRDs alone is not told.
type Installed struct {
	// Name and Namespace are the release's.
	Name, Namespace string
	// Chart is the chart's own name; empty where the file leaves it to a
	// template.
	Chart string
	// Project is owner/name on GitHub of manifests that are no chart.
	Project string
	build.Position
}

// bootstrapOf are the releases that helmfiles of the working tree install for
// the cluster. A helmfile below a folder that has no part of the cluster is
// another one's: kubernetes/staging/bootstrap is not for kubernetes/prod. What
// sources leave out of their artifacts is looked at too: this is where it lies.
func (r *Repository) bootstrapOf(ctx context.Context, entry string) ([]Installed, error) {
	all, err := r.installed(ctx)
	if err != nil {
		return nil, err
	}
	var mine []Installed
	for _, i := range all {
		if inside(scopeOf(i.File), entry) {
			mine = append(mine, i)
		}
	}
	return mine, nil
}

func (r *Repository) installed(ctx context.Context) ([]Installed, error) {
	if r.helmfiles == nil {
		all, err := helmfiles(ctx, r.Dir)
		if err != nil {
			return nil, err
		}
		r.helmfiles = &all
	}
	return *r.helmfiles, nil
}

// scopeOf is the folder that a helmfile is for: the one that holds the folder
// bootstrap that it lies in, or else everything.
func scopeOf(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	if i := slices.Index(parts, "bootstrap"); i > 0 {
		return path.Join(parts[:i]...)
	}
	return "."
}

func helmfiles(ctx context.Context, dir string) ([]Installed, error) {
	var all []Installed
	err := looseFiles(ctx, dir, isHelmfileName, func(name string, content []byte) {
		all = append(all, releasesOf(name, content)...)
		all = append(all, extraManifests(name, content)...)
	})
	return all, err
}

func isHelmfileName(name string) bool {
	name = strings.TrimSuffix(name, ".gotmpl")
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// releasesOf reads a helmfile; it answers nil for any other file. Where
// templates keep the file from being YAML, its lines are read one by one.
func releasesOf(file string, content []byte) []Installed {
	begin := regexp.MustCompile(`(?m)^releases:[ \t]*(#.*)?\r?$`)
	if !begin.Match(content) || bytes.Contains(content, []byte("\nkind:")) {
		return nil
	}
	var all []Installed
	var one *Installed
	field := regexp.MustCompile(`^(\s*(?:-\s+)?)(name|namespace|chart):\s*["']?([^"'\s#]+)`)
	inside, depth := false, -1 // depth is where the fields of a release begin
	for i, line := range strings.Split(string(content), "\n") {
		if begin.MatchString(line) {
			inside = true
			continue
		}
		if inside && line != "" && !strings.ContainsAny(line[:1], " \t-#\r{") {
			inside = false // the next field of the file
		}
		m := field.FindStringSubmatch(line)
		if !inside || m == nil {
			continue
		}
		if depth < 0 {
			depth = len(m[1])
		}
		if len(m[1]) != depth {
			continue // of something in the release
		}
		if strings.Contains(m[1], "-") {
			all = append(all, Installed{Position: build.Position{File: file, Line: i + 1}})
			one = &all[len(all)-1]
		}
		if one == nil || strings.Contains(m[3], "{{") {
			continue
		}
		switch m[2] {
		case "name":
			one.Name = m[3]
		case "namespace":
			one.Namespace = m[3]
		case "chart":
			one.Chart = path.Base(strings.TrimSuffix(m[3], "/"))
		}
	}
	return slices.DeleteFunc(all, func(i Installed) bool { return i.Name == "" })
}

// extraManifests are those that Talos applies when it brings up the control
// plane: cluster.extraManifests of a machine configuration or a patch of one,
// which may be in a file that is YAML only in part.
func extraManifests(file string, content []byte) []Installed {
	if !bytes.Contains(content, []byte("extraManifests:")) {
		return nil
	}
	var all []Installed
	begin := regexp.MustCompile(`^\s*(?:-\s+)?extraManifests:\s*$`)
	item := regexp.MustCompile(`^\s*-\s+["']?https://(?:raw\.githubusercontent\.com|github\.com)/([^/\s]+)/([^/\s"']+)/`)
	inside := false
	for i, line := range strings.Split(string(content), "\n") {
		text := strings.TrimSpace(line)
		switch m := item.FindStringSubmatch(line); {
		case begin.MatchString(line):
			inside = true
		case !inside, text == "", strings.HasPrefix(text, "#"):
		case m != nil:
			all = append(all, Installed{Name: m[2], Project: m[1] + "/" + m[2], Position: build.Position{File: file, Line: i + 1}})
		case !strings.HasPrefix(text, "- "):
			inside = false
		}
	}
	return all
}
