// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

func run(templates, dist, out string) error {
	tag, err := tagOf(dist)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(templates, "kubectl-*.yaml"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s holds no template", templates)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		// A template has the binary's name: by the plugin's own, the one of
		// standup would be taken for a cluster's standup.yaml.
		base := strings.TrimPrefix(filepath.Base(name), "kubectl-")
		manifest, err := render(name, dist, tag)
		if err != nil {
			return fmt.Errorf("template %s: %w", base, err)
		}
		written, err := os.ReadFile(filepath.Join(dist, "krew", base))
		if err != nil {
			return fmt.Errorf("template %s: goreleaser wrote no such manifest: %w", base, err)
		}
		if err := same(manifest, written); err != nil {
			return fmt.Errorf("template %s: %w", base, err)
		}
		if err := os.WriteFile(filepath.Join(out, base), manifest, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tagOf is the tag that a release of this snapshot would have.
func tagOf(dist string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dist, "metadata.json"))
	if err != nil {
		return "", fmt.Errorf("no snapshot, run make dist: %w", err)
	}
	var metadata struct{ Version string }
	if err := json.Unmarshal(data, &metadata); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Join(dist, "metadata.json"), err)
	}
	if metadata.Version == "" {
		return "", fmt.Errorf("%s names no version", filepath.Join(dist, "metadata.json"))
	}
	return "v" + metadata.Version, nil
}

// render fills a template in. The functions and their quirks are those of
// krew-release-bot (pkg/source/template.go): the address is a template itself,
// and the checksum stands on a line of its own, four spaces in.
func render(name, dist, tag string) ([]byte, error) {
	values := struct{ TagName string }{tag}
	t, err := template.New(filepath.Base(name)).Funcs(template.FuncMap{
		"addURIAndSha": func(address, tag string) (string, error) {
			t, err := template.New("address").Parse(address)
			if err != nil {
				return "", err
			}
			var uri bytes.Buffer
			if err := t.Execute(&uri, struct{ TagName string }{tag}); err != nil {
				return "", err
			}
			sum, err := sumOf(filepath.Join(dist, path.Base(uri.String())))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("uri: %s\n    sha256: %s", &uri, sum), nil
		},
	}).ParseFiles(name)
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	if err := t.Execute(&manifest, values); err != nil {
		return nil, err
	}
	return manifest.Bytes(), nil
}

func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// manifest is what of a krew manifest is ours to keep in step.
type manifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []platform
	}
}

type platform struct {
	Selector         struct{ MatchLabels map[string]string }
	URI, SHA256, Bin string
}

// same holds what the template became against what goreleaser wrote.
func same(ours, theirs []byte) error {
	a, err := parse(ours)
	if err != nil {
		return err
	}
	b, err := parse(theirs)
	if err != nil {
		return err
	}
	for field, pair := range map[string][2]string{
		"metadata.name":         {a.Metadata.Name, b.Metadata.Name},
		"spec.version":          {a.Spec.Version, b.Spec.Version},
		"spec.homepage":         {a.Spec.Homepage, b.Spec.Homepage},
		"spec.shortDescription": {a.Spec.ShortDescription, b.Spec.ShortDescription},
		"spec.description":      {a.Spec.Description, b.Spec.Description},
		"spec.caveats":          {a.Spec.Caveats, b.Spec.Caveats},
	} {
		if strings.TrimSpace(pair[0]) != strings.TrimSpace(pair[1]) {
			return fmt.Errorf("%s is %q, and in .goreleaser.yaml %q", field, pair[0], pair[1])
		}
	}
	mine, yours := byPlatform(a), byPlatform(b)
	for at, p := range yours {
		if !reflect.DeepEqual(mine[at], p) {
			return fmt.Errorf("platform %s is %+v, and in .goreleaser.yaml %+v", at, mine[at], p)
		}
	}
	if len(mine) != len(yours) || len(a.Spec.Platforms) != len(mine) {
		return fmt.Errorf("%d platforms, and %d in .goreleaser.yaml", len(a.Spec.Platforms), len(b.Spec.Platforms))
	}
	return nil
}

func parse(data []byte) (manifest, error) {
	var m manifest
	err := yaml.Unmarshal(data, &m)
	if err == nil && m.Metadata.Name == "" {
		err = errors.New("manifest has no metadata.name")
	}
	return m, err
}

func byPlatform(m manifest) map[string]platform {
	all := map[string]platform{}
	for _, p := range m.Spec.Platforms {
		all[p.Selector.MatchLabels["os"]+"/"+p.Selector.MatchLabels["arch"]] = p
	}
	return all
}
