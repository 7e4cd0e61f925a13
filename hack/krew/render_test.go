// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const templates = "../../plugins/krew"

// goreleaser is what of .goreleaser.yaml the templates repeat.
type goreleaser struct {
	Krews []struct {
		Name, Homepage, Description, Caveats string
		ShortDescription                     string `json:"short_description"`
	}
}

// snapshot writes what goreleaser would: archives, and manifests that name
// them, out of the real .goreleaser.yaml.
func snapshot(t *testing.T) (dist string) {
	t.Helper()
	const version = "1.2.3-SNAPSHOT-abc"
	dist = t.TempDir()
	write(t, filepath.Join(dist, "metadata.json"), `{"version": "`+version+`"}`)
	data, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config goreleaser
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Krews) != 3 {
		t.Fatalf("%d plugins in .goreleaser.yaml, want three", len(config.Krews))
	}
	for _, k := range config.Krews {
		var m manifest
		m.Metadata.Name = k.Name
		m.Spec.Version, m.Spec.Homepage = "v"+version, k.Homepage
		m.Spec.ShortDescription, m.Spec.Description, m.Spec.Caveats = k.ShortDescription, k.Description, k.Caveats
		for _, at := range [][2]string{
			{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
		} {
			ending, exe := ".tar.gz", ""
			if at[0] == "windows" {
				ending, exe = ".zip", ".exe"
			}
			archive := fmt.Sprintf("kubectl-%s_v%s_%s_%s%s", k.Name, version, at[0], at[1], ending)
			write(t, filepath.Join(dist, archive), archive)
			p := platform{
				URI:    k.Homepage + "/releases/download/v" + version + "/" + archive,
				SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(archive))),
				Bin:    "kubectl-" + k.Name + exe,
			}
			p.Selector.MatchLabels = map[string]string{"os": at[0], "arch": at[1]}
			m.Spec.Platforms = append(m.Spec.Platforms, p)
		}
		text, err := yaml.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dist, "krew", k.Name+".yaml"), string(text))
	}
	return dist
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTemplatesSayWhatGoreleaserSays(t *testing.T) {
	dist, out := snapshot(t), t.TempDir()
	if err := run(templates, dist, out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"standup", "tiers", "unwedge"} {
		data, err := os.ReadFile(filepath.Join(out, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if m.Metadata.Name != name || len(m.Spec.Platforms) != 6 || strings.Contains(string(data), "{{") {
			t.Errorf("the manifest of %s is\n%s", name, data)
		}
		// krew's reviewers ask for both.
		if length := len(m.Spec.ShortDescription); length > 50 {
			t.Errorf("the short description of %s has %d letters, want 50 at most", name, length)
		}
		for line := range strings.Lines(m.Spec.Description) {
			if len(line) > 81 {
				t.Errorf("the description of %s has a line of %d letters, want 80 at most", name, len(line)-1)
			}
		}
	}
}

func TestRunFails(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, dist string)
		want  string
	}{
		"without a snapshot": {
			func(t *testing.T, dist string) { remove(t, dist, "metadata.json") }, "no snapshot, run make dist",
		},
		"with an archive that is not there": {
			func(t *testing.T, dist string) {
				remove(t, dist, "kubectl-tiers_v1.2.3-SNAPSHOT-abc_linux_arm64.tar.gz")
			}, "template tiers.yaml: ",
		},
		"with an archive that is another": {
			func(t *testing.T, dist string) {
				write(t, filepath.Join(dist, "kubectl-tiers_v1.2.3-SNAPSHOT-abc_linux_arm64.tar.gz"), "other")
			}, "platform linux/arm64 is ",
		},
		"without goreleaser's manifest": {
			func(t *testing.T, dist string) { remove(t, dist, "krew/unwedge.yaml") }, "goreleaser wrote no such manifest",
		},
		"with other words": {
			func(t *testing.T, dist string) {
				name := filepath.Join(dist, "krew", "standup.yaml")
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				write(t, name, strings.Replace(string(data), "Bring a GitOps cluster up", "Build a GitOps cluster up", 1))
			}, "spec.shortDescription is ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dist := snapshot(t)
			tc.spoil(t, dist)
			err := run(templates, dist, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
}

func remove(t *testing.T, dist, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dist, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}
