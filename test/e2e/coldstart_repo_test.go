// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// coldRepo is a repository whose Flux lives in a namespace of its own, so that
// many can come up on one control plane and never meet.
type coldRepo struct {
	// id is that namespace, part of all others, and of every API group of ours.
	id string
	// name is what people call it: a fixture, or a seed.
	name  string
	files cluster.Files
}

// gotkSync is where `flux bootstrap` puts the root and its source.
const gotkSync = "clusters/test/flux-system/gotk-sync.yaml"

// byHand is what somebody has applied before Flux begins.
const byHand = "by-hand.yaml"

var (
	fluxNamespace = regexp.MustCompile(`(namespace: ["']?)flux-system\b`)
	ownNamespace  = regexp.MustCompile(`\bx-[a-z0-9]+`)
	sourceURL     = regexp.MustCompile(`\burl: [^\s,}]+`)
	anyInterval   = regexp.MustCompile(`(?m)^( *)interval: .*$`)
	quickRetry    = regexp.MustCompile(`\bretryInterval: \w+`)
	// deadlockOrRace are the fixtures that come up beside the generated ones.
	deadlockOrRace = regexp.MustCompile(`^(crd-0[1346]|crd-1[25]|cs001-(behind|child|whole)|cs004-containment|cs007-sops|dg006-root)`)
	documentEnd    = regexp.MustCompile(`(?m)^---\s*$`)
)

// newColdRepo moves a repository that is written for flux-system into
// namespaces and groups of its own. Its root is what it would be after a
// bootstrap from url, file and object alike: the root applies itself unchanged.
func newColdRepo(id, name, url string, files cluster.Files) *coldRepo {
	moved := cluster.Files{}
	for path, text := range files {
		text = strings.ReplaceAll(text, "https://git.example.com/fleet.git", url) // of any source
		text = fluxNamespace.ReplaceAllString(text, "${1}"+id)
		text = strings.ReplaceAll(text, "example.com", id+".example.com")
		text = ownNamespace.ReplaceAllStringFunc(text, func(ns string) string {
			if ns == "x-kubernetes" { // of an OpenAPI schema
				return ns
			}
			return "x-" + id + ns[1:]
		})
		if path == gotkSync {
			text = sourceURL.ReplaceAllLiteralString(text, "url: "+url)
		}
		moved[path] = withRetry(text)
	}
	return &coldRepo{id: id, name: name, files: moved}
}

// withRetry lets every Kustomization of a text be retried in seconds, also one
// whose case is that it has no retryInterval: whether a retry heals it does not
// depend on when it comes.
func withRetry(text string) string {
	documents := documentEnd.Split(text, -1)
	for i, d := range documents {
		if strings.Contains(d, "kind: GitRepository\nmetadata") { // nothing is pushed twice
			documents[i] = anyInterval.ReplaceAllString(d, "${1}interval: 1h")
			continue
		}
		if !strings.Contains(d, "kustomize.toolkit.fluxcd.io/") || !strings.Contains(d, "kind: Kustomization") {
			continue
		}
		if quickRetry.MatchString(d) {
			documents[i] = quickRetry.ReplaceAllString(d, "retryInterval: "+coldRetry)
			continue
		}
		if at := anyInterval.FindStringSubmatchIndex(d); at != nil {
			documents[i] = d[:at[1]] + "\n" + d[at[2]:at[3]] + "retryInterval: " + coldRetry + d[at[1]:]
		}
	}
	return strings.Join(documents, "---\n")
}

// owns is true of a namespace of the repository.
func (r *coldRepo) owns(namespace string) bool {
	return namespace == r.id || strings.HasPrefix(namespace, "x-"+r.id+"-")
}

// dir writes the repository to a folder, for who reads working trees.
func (r *coldRepo) dir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), r.id)
	for path, text := range r.files {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// root are the manifests of the root, as flux bootstrap applies them.
func (r *coldRepo) root(t *testing.T) (source, kustomization string) {
	t.Helper()
	for _, d := range documentEnd.Split(r.files[gotkSync], -1) {
		switch {
		case strings.Contains(d, "kind: GitRepository\nmetadata"):
			source = d
		case strings.Contains(d, "kind: Kustomization\nmetadata"):
			kustomization = d
		}
	}
	if source == "" || kustomization == "" {
		t.Fatalf("%s: %s holds no GitRepository and Kustomization:\n%s", r.name, gotkSync, r.files[gotkSync])
	}
	return source, kustomization
}

const fixtureDir = "../../pkg/lint/testdata/repositories"

// coldFixtures are the repositories of the lint rules that can come up here. Of
// those that can, the ones of deadlocks and races; with COLDSTART=all in the
// environment all, which takes a machine of two cores some minutes; with another
// COLDSTART, which is a regular expression, those whose names it matches.
func coldFixtures(t *testing.T, c *cluster.Cluster) []*coldRepo {
	t.Helper()
	names, err := fs.Glob(os.DirFS(fixtureDir), "*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	chosen := deadlockOrRace
	switch which := os.Getenv("COLDSTART"); {
	case which == "all":
		chosen = regexp.MustCompile("")
	case which != "":
		chosen = regexp.MustCompile(which)
	}
	left := cannotRun()
	var repos []*coldRepo
	for i, file := range names {
		name := strings.TrimSuffix(file, ".txtar")
		if _, skip := left[name]; skip {
			delete(left, name)
			continue
		}
		if !chosen.MatchString(name) {
			continue
		}
		id := fmt.Sprintf("f%02d", i)
		repos = append(repos, newColdRepo(id, name, c.RepoURL(id), readFixture(t, name)))
	}
	for name := range left {
		t.Errorf("%s is not among the fixtures: take it off the list", name)
	}
	return repos
}

// someFixtures is true where COLDSTART names those that are looked at, and
// nothing else is.
func someFixtures() bool {
	which := os.Getenv("COLDSTART")
	return which != "" && which != "all"
}

func readFixture(t *testing.T, name string) cluster.Files {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(fixtureDir, name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := cluster.Files{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}
