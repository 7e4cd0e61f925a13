// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCacheDamaged: a file that is not what was written is noticed, and fetched
// again where that is allowed.
func TestCacheDamaged(t *testing.T) {
	t.Parallel()
	s := newHelmServer(t, false, false)
	s.offer(t, "", "1.0.0")
	manifests := objects(helmRelease(helmRepository), repositoryOf(s.URL+"/charts", "", "{}"))
	for _, folder := range []string{chartsFolder, requestsFolder} {
		for name, damage := range map[string]func(string) error{
			"truncated": func(file string) error { return os.Truncate(file, 100) },
			"empty":     func(file string) error { return os.Truncate(file, 0) },
			"another": func(file string) error {
				return os.WriteFile(file, []byte(`{"url":"x","version":"1","sha256":"../../../../etc/passwd"}`), 0o600)
			},
			"of another request": func(file string) error {
				raw, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				return os.WriteFile(file, append(bytes.ReplaceAll(raw, []byte(`"demo"`), []byte(`"other"`)), '\n'), 0o600)
			},
			"too large": func(file string) error { return os.Truncate(file, maxChart+1) },
		} {
			t.Run(folder+" "+name, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "cache")
				first, err := cached(t, manifests, NewCache(dir, true))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range cachedFiles(t, dir)[folder] {
					if err := damage(file); err != nil {
						t.Fatal(err)
					}
				}
				_, err = cached(t, manifests, NewCache(dir, false))
				fails(t, err, "of the cache is damaged: fetch the chart again (--fetch-charts), or remove the file")
				remoteError(t, err)
				second, err := cached(t, manifests, NewCache(dir, true))
				if err != nil {
					t.Fatal(err)
				}
				sameCharts(t, first, second)
				mustCached(t, manifests, dir)
			})
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, chartsFolder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := cached(t, manifests, NewCache(dir, true))
	fails(t, err, "cache: mkdir ")
}

// TestCacheFails: what is not right is not kept.
func TestCacheFails(t *testing.T) {
	t.Parallel()
	changed := newHelmServer(t, false, false)
	changed.files["/charts/index.yaml"] = bytes.ReplaceAll(changed.offer(t, "", "1.0.0"), []byte("}\n"), []byte(", digest: sha256:"+strings.Repeat("0", 64)+"}\n"))
	page := newHelmServer(t, false, false)
	page.offer(t, "", "1.0.0")
	page.files["/charts/demo-1.0.0.tgz"] = []byte("<html>log in</html>")
	closed := newHelmServer(t, false, true)
	sealed := strings.Replace(credentials(), "kind: Secret", "sops: {mac: x}\nkind: Secret", 1)
	gone := newHelmServer(t, false, false)
	gone.Close()
	for _, tt := range []struct{ name, live, says string }{
		{"a chart that was changed", repositoryOf(changed.URL+"/charts", "", "{}"), "is not what the index of its repository describes: the SHA-256 differs"},
		{"no chart", repositoryOf(page.URL+"/charts", "", "{}"), page.URL + "/charts/demo-1.0.0.tgz is no chart"},
		{"an account that nobody applies", repositoryOf(closed.URL+"/charts", ", secretRef: {name: account}", "{}"), "answered 401 Unauthorized"},
		{"an account that is encrypted", objects(repositoryOf(closed.URL+"/charts", ", secretRef: {name: account}, certSecretRef: {name: account}", "{}"), sealed), "answered 401 Unauthorized"},
		{"nobody there", repositoryOf(gone.URL+"/charts", "", "{}"), gone.URL + "/charts/index.yaml cannot be fetched from here: dial"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			_, err := cached(t, objects(helmRelease(helmRepository), tt.live), NewCache(dir, true))
			fails(t, err, tt.says)
			remoteError(t, err)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Error("it was kept")
			}
		})
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := offlineCharts(t, objects(helmRelease(helmRepository), repositoryOf(page.URL+"/charts", "", "{}")), gitRepository, nil, NewCache(t.TempDir(), true)).Load(interrupted, "apps", "demo")
	if _, ok := errors.AsType[*RemoteError](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("got %T %v", err, err)
	}
}
