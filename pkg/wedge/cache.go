// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/homedir"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	// cacheTTL is for how long kubectl believes its discovery cache
	// (cli-runtime genericclioptions toDiscoveryClient, v0.37).
	cacheTTL       = 6 * time.Hour
	cacheFolder    = "discovery"
	cachedKinds    = "serverresources.json"
	cachedGroups   = "servergroups.json"
	cacheMaxBytes  = 16 << 20
	cacheMaxLevels = 3 // group/version/file
)

// Cache is what kubectl, and every tool that is made with its libraries, has
// kept of the discovery of one API server.
type Cache struct {
	// Dir is the folder of that server alone; Host what it was made from.
	Dir, Host string
	// Listed are the group versions of servergroups.json, Written when that
	// was. Both are empty where there is none.
	Listed  []string
	Written time.Time
	Lists   []CachedList
}

// CachedList is one serverresources.json.
type CachedList struct {
	GroupVersion schema.GroupVersion
	Written      time.Time
	// Namespaced are the kinds of the group version, and whether their objects
	// have a namespace.
	Namespaced map[string]bool
}

// CacheRoot is where kubectl keeps its caches: as --cache-dir says, else
// KUBECACHEDIR, else ~/.kube/cache.
func CacheRoot(flag string) string {
	if flag != "" {
		return flag
	}
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir
	}
	return filepath.Join(homedir.HomeDir(), ".kube", "cache")
}

// ObserveCache reads what is cached of an API server, which is rest.Config's
// Host. It is nil where nothing is. A file that kubectl could not decode it
// does not use either, so it is left out.
func ObserveCache(root, host string) (*Cache, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("discovery cache: %w", err)
	}
	c := &Cache{Dir: filepath.Join(root, cacheFolder, cacheName(host)), Host: host}
	files, err := cacheFiles(c.Dir, host)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is cached, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("discovery cache: %w", err)
	}
	for _, file := range files {
		if err := c.read(file); err != nil {
			return nil, fmt.Errorf("discovery cache: %w", err)
		}
	}
	return c, nil
}

// cacheName is the name of a server's folder, as computeDiscoverCacheDir of
// cli-runtime makes it. A path of the server's URL stays a path.
func cacheName(host string) string {
	host = strings.Replace(strings.Replace(host, "https://", "", 1), "http://", "", 1)
	return regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
}

// cacheFiles are the files that kubectl made for one server. The folder of a
// server behind a URL with a path is inside of that of the server without, and
// is another's.
func cacheFiles(dir, host string) ([]string, error) {
	name := cacheName(host)
	if name == "" || slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return s == "." || s == ".." }) ||
		!strings.HasSuffix(filepath.ToSlash(filepath.Clean(dir)), "/"+cacheFolder+"/"+strings.TrimSuffix(name, "/")) {
		return nil, fmt.Errorf("%s is not the folder of %s: it does not end in %s/%s", dir, host, cacheFolder, name)
	}
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		levels := strings.Count(filepath.ToSlash(rel), "/") + 1
		switch {
		case e.IsDir() && rel != "." && levels >= cacheMaxLevels:
			return fs.SkipDir
		case e.Type().IsRegular() && (e.Name() == cachedKinds && levels > 1 || e.Name() == cachedGroups && levels == 1):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func (c *Cache) read(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > cacheMaxBytes {
		return nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // one of the files that kubectl made
	if err != nil {
		return err
	}
	if filepath.Base(path) == cachedGroups {
		var list struct {
			Groups []struct {
				Versions []struct {
					GroupVersion string `json:"groupVersion"`
				} `json:"versions"`
			} `json:"groups"`
		}
		if json.Unmarshal(raw, &list) == nil {
			c.Written = info.ModTime()
			for _, g := range list.Groups {
				for _, v := range g.Versions {
					c.Listed = append(c.Listed, v.GroupVersion)
				}
			}
		}
		return nil
	}
	var list struct {
		GroupVersion string `json:"groupVersion"`
		Resources    []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil || gv.Version == "" {
		return nil //nolint:nilerr // not a list that kubectl would use
	}
	kinds := CachedList{GroupVersion: gv, Written: info.ModTime(), Namespaced: map[string]bool{}}
	for _, r := range list.Resources {
		if !strings.Contains(r.Name, "/") {
			kinds.Namespaced[r.Kind] = r.Namespaced
		}
	}
	c.Lists = append(c.Lists, kinds)
	return nil
}

// staleCache finds what kubectl still believes of this API server and that is
// not so any more (DISC-01). A kind that it does not know it looks for anew;
// one whose scope has changed, or that is gone, it does not.
func staleCache(w *World) []Verdict {
	c := w.Cache
	if c == nil || w.Served == nil {
		return nil
	}
	host := flux.Ref{Kind: "DiscoveryCache", Name: cacheName(c.Host)}
	v := Verdict{
		Cause: StaleCache, Object: host, State: "stale", ResolvesItself: Itself,
		Summary: "kubectl's discovery cache of this API server is out of date",
		Why:     "kubectl believes what it has cached for 6 hours; it finds a new kind by itself, but not one that has another scope now, or is gone",
	}
	var until time.Time
	for _, l := range c.Lists {
		expires := l.Written.Add(cacheTTL)
		if !expires.After(w.Now) || w.Served.Unknown(l.GroupVersion) != nil {
			continue
		}
		differs := w.differences(l)
		if len(differs) == 0 || len(differs) == len(l.Namespaced) && !c.lists(l.GroupVersion, w.Now) && w.noneServed(l) {
			continue
		}
		for _, d := range differs {
			v.evidence(host, l.GroupVersion.String(), d)
		}
		if expires.After(until) {
			until = expires
		}
	}
	if len(v.Evidence) == 0 {
		return nil
	}
	slices.SortFunc(v.Evidence, func(a, b Evidence) int { return strings.Compare(a.Field+a.Value, b.Field+b.Value) })
	v.ResolvesWhen = "at " + stamp(until)
	v.Actions = []Action{{
		Verb: Delete, Object: host,
		Description: fmt.Sprintf("delete what is cached of this API server in %s; kubectl asks for it anew. Other servers' caches stay", c.Dir),
		step:        removeCacheStep{dir: c.Dir, host: c.Host},
	}}
	return []Verdict{v}
}

// lists is true when kubectl would read the file of a group version: it is in
// the list of groups that it has cached.
func (c *Cache) lists(gv schema.GroupVersion, now time.Time) bool {
	return c.Written.Add(cacheTTL).After(now) && slices.Contains(c.Listed, gv.String())
}

func (w *World) differences(l CachedList) []string {
	var out []string
	for kind, namespaced := range l.Namespaced {
		res, is := w.Served.Resource(l.GroupVersion.WithKind(kind))
		switch {
		case !is:
			out = append(out, kind+" is not served any more")
		case res.Namespaced != namespaced:
			out = append(out, fmt.Sprintf("%s is %s, cached as %s", kind, scope(res.Namespaced), scope(namespaced)))
		}
	}
	return out
}

func (w *World) noneServed(l CachedList) bool {
	for kind := range l.Namespaced {
		if _, is := w.Served.Resource(l.GroupVersion.WithKind(kind)); is {
			return false
		}
	}
	return true
}

func scope(namespaced bool) string {
	if namespaced {
		return "namespaced"
	}
	return "of the cluster"
}

// removeCacheStep deletes what kubectl has cached of one server. It is of this
// machine, and touches no cluster.
type removeCacheStep struct{ dir, host string }

func (s removeCacheStep) run(context.Context, *execution, *Action) error { return s.remove() }

// remove deletes the files that kubectl made for the server, and the folders
// which that leaves empty. It refuses any other folder.
func (s removeCacheStep) remove() error {
	files, err := cacheFiles(s.dir, s.host)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("discovery cache: %w", err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("discovery cache: %w", err)
		}
		// A folder that is not empty stays: removing it fails.
		for dir := filepath.Dir(file); len(dir) >= len(filepath.Clean(s.dir)); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break
			}
		}
	}
	return nil
}
