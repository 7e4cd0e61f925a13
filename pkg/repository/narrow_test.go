// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// TestNarrow asks for the clusters that a folder concerns: too few of them would
// hide what is wrong, too many would blame what was not asked for.
func TestNarrow(t *testing.T) {
	files := bootstrapped("clusters/one", bootstrapped("clusters/two", bootstrapped("clusters/made", map[string]string{
		"clusters/one/tiers.yaml": ks("apps", "./apps/one", "") + ks("whole", "./", "GitRepository/other"),
		"clusters/two/tiers.yaml": ks("apps", "./apps/two", "") +
			// Another repository has folders of the same names.
			ks("outside", "./apps/one", "GitRepository/other"),
		"clusters/made/tiers.yaml":     ks("infra", "./", "ExternalArtifact/infra") + ks("apps", "./prod", "ExternalArtifact/apps"),
		"clusters/made/artifacts.yaml": generator("flux-system"),
		"apps/one/deep/a.yaml":         cm("a"), "apps/two/a.yaml": cm("a"), "apps/nobody/a.yaml": "a: b\n", "prod/a.yaml": "a: b\n",
		"apps/prod/a.yaml": cm("a"), "apps/base/a.yaml": cm("b"), "apps/whole/a.yaml": cm("d"), "more.yaml": cm("e"), "infra/a.yaml": cm("c"), ".git/HEAD": "ref: refs/heads/main\n",
	})))
	dir := write(t, files)
	for below, want := range map[string][]string{
		".":                        {"clusters/made", "clusters/one", "clusters/two"},
		"clusters":                 {"clusters/made", "clusters/one", "clusters/two"},
		"clusters/two":             {"clusters/two"},
		"clusters/two/flux-system": {"clusters/two"},
		"apps":                     {"clusters/made", "clusters/one", "clusters/two"},
		"apps/one":                 {"clusters/one"},
		"apps/one/deep":            {"clusters/one"},
		"apps/two":                 {"clusters/two"},
		"apps/prod":                {"clusters/made"},
		"infra":                    {"clusters/made"},
	} {
		r := open(t, filepath.Join(dir, below), Options{})
		var got []string
		for _, c := range r.Clusters {
			got = append(got, c.Entry)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: clusters %v, want %v", below, got, want)
		}
		if r.Narrowed != (below != ".") {
			t.Errorf("%s: narrowed is %t", below, r.Narrowed)
		}
	}
	// An artifact holds apps/base too, but not where its tier builds, and that
	// it has a folder prod says nothing of one of the repository.
	for _, below := range []string{"apps/nobody", "apps/base", "prod"} {
		if _, err := Open(t.Context(), filepath.Join(dir, below), Options{}); !errors.Is(err, ErrNoEntry) {
			t.Errorf("%s is of no cluster: %v, want %v", below, err, ErrNoEntry)
		}
	}
}
