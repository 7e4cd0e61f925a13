// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	of := func(versions ...string) []offered {
		var all []offered
		for i, v := range versions {
			all = append(all, offered{Version: v, Created: time.Unix(int64(i), 0)})
		}
		return all
	}
	all := of("1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "not-a-version", "1.2")
	for _, tt := range []struct {
		name   string
		all    []offered
		wanted string
		want   string
	}{
		{"nothing is wanted", all, "", "1.10.0"},
		{"anything is wanted", all, "*", "1.10.0"},
		{"the very version", all, "1.9.0", "1.9.0"},
		{"a tag that is no version", all, "not-a-version", "not-a-version"},
		{"a range", all, "1.x", "1.10.0"},
		{"below", all, "<1.10.0", "1.9.0"},
		{"a pre-release, asked for", all, ">=2.0.0-0", "2.0.0-rc.1"},
		{"the newest of equal ones", of("1.0.0+a", "1.0.0+b"), "1.0.0", "1.0.0+b"},
		{"a leading v", of("v1.0.0", "v1.1.0"), ">=1.0.0", "v1.1.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose(tt.all, tt.wanted)
			if err != nil || got.Version != tt.want {
				t.Errorf("got %q, %v, want %s", got.Version, err, tt.want)
			}
		})
	}
	_, err := choose(all, ">=3")
	fails(t, err, `none of its 6 versions is in the range ">=3"`)
	_, err = choose(nil, "")
	fails(t, err, `none of its 0 versions is in the range "*"`)
	_, err = choose(all, "nonsense")
	fails(t, err, `version "nonsense" is neither there nor a range`)
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for revision, want := range map[string]string{
		"latest@" + digest: "1.2.3+0123456789ab",
		"1.2.3@" + digest:  "1.2.3+0123456789ab",
		digest:             "1.2.3+0123456789ab",
	} {
		if got, err := withRevision("1.2.3", revision); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", revision, got, err, want)
		}
	}
	_, err := withRevision("1.2.3", "latest")
	fails(t, err, "names no digest")
	_, err = withRevision("one", digest)
	fails(t, err, "not a semantic one")
	if got, err := withMetadata("1.2.3+old", "new"); err != nil || got != "1.2.3+new" {
		t.Errorf("got %q, %v", got, err)
	}
}
