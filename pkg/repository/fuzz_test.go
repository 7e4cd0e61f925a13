// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// outsideText is in a file outside of the repository, and may get into nothing
// that is made of it.
const outsideText = "text-from-outside"

// FuzzRepository makes a repository of anything: it is read, or refused, but
// nothing of the machine around it gets in.
func FuzzRepository(f *testing.F) {
	outside := filepath.Join(f.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte(cm(outsideText)), 0o600); err != nil {
		f.Fatal(err)
	}
	up := strings.Repeat("../", 12)
	f.Add("resources: [a.yaml]\n", cm("a"), "apps", "kustomization.yaml")
	f.Add("resources: ["+up+outside[1:]+"]\n", cm("a"), "apps", outside)
	f.Add("resources: ["+outside+"]\ncomponents: ["+up+"]\n", cm("a"), up, filepath.Dir(outside))
	f.Add("configMapGenerator: [{name: a, files: [a="+up+outside[1:]+"], envs: ["+outside+"]}]\n", "", ".", "/")
	f.Add("resources: [linked]\npatches: [{path: "+outside+"}]\n", ks("b", up+outside[1:], ""), filepath.Dir(outside), outside)
	f.Add("resources: [.]\n", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "apps", ".")
	f.Add("resources: [../apps]\nopenapi: {path: a.yaml}\n", "kind: List\nitems: [[{}], {kind: List, items: [x]}]\n", "apps", "")
	f.Add("helmCharts: [{name: a, repo: https://example.com}]\n", instance, "clusters/prod", "a.yaml")
	f.Add("resources: [a.yaml]\n", ks("${A}", "${B}", "", "postBuild: {substituteFrom: [{kind: Secret, name: s}], substitute: {A: '${A}'}}"), "apps", "a.yaml")
	f.Add("resources: [a.yaml]\n", ks("flux-system", "apps", "", "components: [../../..]", "patches: [{patch: 'a', target: {kind: x}}]"), "apps", "a.yaml")
	f.Fuzz(func(t *testing.T, kustomization, manifest, folder, link string) {
		if len(kustomization)+len(manifest) > 1<<16 || strings.ContainsAny(folder+link, "\x00\n") {
			return // larger than a mutation needs to be
		}
		dir := write(t, map[string]string{
			"c/flux-system/gotk-sync.yaml": gotkSync("c"), "c/apps.yaml": ks("apps", quoted(folder), ""),
			"apps/kustomization.yaml": kustomization, "apps/a.yaml": manifest, "c/more.yaml": manifest,
		})
		if link != "" {
			if err := os.Symlink(link, filepath.Join(dir, "apps", "linked")); err != nil {
				return // no link of that name can be made
			}
		}
		before := allocated()
		began := time.Now()
		r, err := Open(t.Context(), dir, Options{})
		if took, grew := time.Since(began), allocated()-before; took > time.Minute || grew > 4<<30 {
			t.Errorf("it took %s and %d MiB", took, grew>>20)
		}
		if err != nil {
			if strings.Contains(err.Error(), outsideText) {
				t.Errorf("the error holds what is outside: %v", err)
			}
			return
		}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, c := range r.Clusters {
			inspect(t, r, c)
		}
	})
}

func inspect(t *testing.T, r *Repository, c *Cluster) {
	t.Helper()
	for i := range c.Tiers {
		built := &c.Tiers[i]
		if built.Err != nil && strings.Contains(built.Err.Error(), outsideText) {
			t.Errorf("the error holds what is outside: %v", built.Err)
		}
		if built.Result == nil {
			continue
		}
		for _, o := range built.Result.Objects {
			raw, err := json.Marshal(o.Object)
			if err == nil && bytes.Contains(raw, []byte(outsideText)) {
				t.Errorf("%s holds what is outside", o)
			}
			at := c.LocateField(built.Tier, o.Ref(), "spec")
			if at.File == "" {
				continue
			}
			if at.Line < 1 || path.IsAbs(at.File) || path.Clean(at.File) != at.File || strings.HasPrefix(at.File, "..") {
				t.Errorf("%s is at %v", o, at)
			}
			if _, err := os.Stat(filepath.Join(r.Dir, at.File)); err != nil {
				t.Errorf("%s is at %v, which is not there", o, at)
			}
		}
		c.Locate(flux.Ref{}, built.Tier)
	}
}

// quoted is a YAML string.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return "''"
	}
	return string(raw)
}

// allocated is how many bytes were ever allocated.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}
