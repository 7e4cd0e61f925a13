// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaw: the artifact comes as it is, when it is what the source states.
func TestRaw(t *testing.T) {
	archive := simple(t)
	f := fetcher(t, NewFetcher(nil, nil))
	source := sourceOf(serve(t, serving(archive)), archive)
	got, err := f.Raw(t.Context(), source)
	if err != nil || !bytes.Equal(got, archive) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(archive))
	}

	limited := fetcher(t, NewFetcher(nil, nil))
	limited.limit.download = int64(len(archive) - 1)
	for _, tt := range []struct {
		name     string
		fetcher  *Fetcher
		handler  http.HandlerFunc
		says     string
		sentinel error
	}{
		{"changed", f, serving(append(bytes.Clone(archive), 0)), "do not have the digest that the source states", ErrUnreachable},
		{"gone", f, http.NotFound, "does not have it any more", ErrUnreachable},
		{"too large", limited, serving(archive), "its artifact is not used", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.fetcher.Raw(t.Context(), sourceOf(serve(t, tt.handler), archive))
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.sentinel != nil && !errors.Is(err, tt.sentinel) {
				t.Errorf("got %v", err)
			}
		})
	}
	source.Artifact = nil
	if _, err := f.Raw(t.Context(), source); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("got %v", err)
	}
}

// TestPathStaysInTheTree, whatever is asked for.
func TestPathStaysInTheTree(t *testing.T) {
	tree := openTree(t, writeTree(t, map[string]string{"charts/a/Chart.yaml": "name: a"}))
	for _, name := range []string{"charts/a", "./charts/a", "/charts/a", "../../charts/a"} {
		path, err := tree.Path(name)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(path, "Chart.yaml")); err != nil || string(content) != "name: a" {
			t.Errorf("%s: got %q, %v", name, content, err)
		}
	}
	if path, err := tree.Path("../../../etc/passwd"); err != nil || !strings.HasPrefix(path, tree.root) {
		t.Errorf("got %s, %v", path, err)
	}
}
