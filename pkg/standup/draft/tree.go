// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

const (
	// A manifest that is larger holds nothing that varies between clusters.
	maxFile  = 1 << 20
	maxFiles = 20000
)

// Tree is what a working tree says.
type Tree struct {
	// Dir is the folder as a person would type it.
	Dir string
	// Stopped is true when there were more files than are read.
	Stopped bool

	sets     []treeSet
	releases []treeRelease
	uses     []use
}

// treeSet is a Set as one file has it. Values is nil for a Secret.
type treeSet struct {
	Set
	file   string
	values map[string]string
	names  []string
}

type treeRelease struct {
	Tier
	file string
}

// use is the variables that one file refers to.
type use struct {
	file  string
	names []string
}

// Checkout is the top of the git work tree that dir is in, "" when it is in
// none.
func Checkout(dir string) string {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// Scan reads the manifests below the root of fsys. Symbolic links are not
// followed, other repositories not entered, and what is no manifest is passed
// over. The values of Secrets are left where they are.
func Scan(ctx context.Context, fsys fs.FS, dir string) (*Tree, error) {
	t := &Tree{Dir: dir}
	files := 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name != ".":
			return nil // what cannot be read is no manifest of ours
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == ".git" || isRepository(fsys, name)):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)):
			return nil
		}
		if files++; files > maxFiles {
			t.Stopped = true
			return fs.SkipAll
		}
		text, err := readFile(fsys, name)
		if err == nil {
			t.file(fsys, name, text)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("working tree %s cannot be read: %w", dir, err)
	}
	return t, nil
}

func isRepository(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, ".git"))
	return err == nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("it is too large")
	}
	return text, err
}

// interesting is what a document that holds variables or a chart begins a line
// with; most files of a repository have none.
var interesting = regexp.MustCompile(`(?m)^(- )?["']?kind["']?:\s*["']?(ConfigMap|Secret|Kustomization|HelmRelease)\b|^(configMap|secret)Generator:`)

// reference is ${NAME}, also with what may follow the name.
var reference = regexp.MustCompile(`\$\{([_A-Za-z][_A-Za-z0-9]*)`)

func (t *Tree) file(fsys fs.FS, name string, text []byte) {
	found := map[string]bool{}
	for _, match := range reference.FindAllSubmatch(text, -1) {
		found[string(match[1])] = true
	}
	if len(found) > 0 {
		t.uses = append(t.uses, use{name, sortedKeys(found)})
	}
	if !interesting.Match(text) {
		return
	}
	documents := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var m manifest
		err := documents.Decode(&m)
		var mistyped *yaml.TypeError
		if err != nil && !errors.As(err, &mistyped) {
			return // the end, or a template
		}
		t.add(fsys, name, &m)
	}
}

// manifest is what is looked at of a document, whatever its kind.
type manifest struct {
	Kind     string `yaml:"kind"`
	API      string `yaml:"apiVersion"`
	Metadata struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Data       map[string]yaml.Node `yaml:"data"`
	StringData map[string]yaml.Node `yaml:"stringData"`
	Spec       struct {
		PostBuild struct {
			Substitute map[string]yaml.Node `yaml:"substitute"`
		} `yaml:"postBuild"`
		Values     map[string]any `yaml:"values"`
		ValuesFrom []any          `yaml:"valuesFrom"`
		Install    struct {
			CRDs string `yaml:"crds"`
		} `yaml:"install"`
	} `yaml:"spec"`
	ConfigMaps []generator `yaml:"configMapGenerator"`
	Secrets    []generator `yaml:"secretGenerator"`
}

// generator is an entry of kustomize's configMapGenerator or secretGenerator.
type generator struct {
	Name      string   `yaml:"name"`
	Namespace string   `yaml:"namespace"`
	Literals  []string `yaml:"literals"`
	Envs      []string `yaml:"envs"`
	Env       string   `yaml:"env"`
}

func (t *Tree) add(fsys fs.FS, file string, m *manifest) {
	group, _, _ := strings.Cut(m.API, "/")
	s := treeSet{Set: Set{m.Kind, m.Metadata.Namespace, m.Metadata.Name}, file: file}
	switch {
	case m.Kind == configMapKind && m.API == "v1":
		s.values = texts(m.Data)
	case m.Kind == secretKind && m.API == "v1":
		s.names = append(sortedKeys(m.Data), sortedKeys(m.StringData)...)
	case m.Kind == flux.KustomizationKind && group == flux.KustomizeGroup:
		s.values = texts(m.Spec.PostBuild.Substitute)
	case m.Kind == flux.HelmReleaseKind && group == flux.HelmGroup:
		t.releases = append(t.releases, treeRelease{Tier{
			Ref:       flux.Ref{APIVersion: m.API, Kind: m.Kind, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name},
			Values:    m.Spec.Values,
			SkipsCRDs: m.Spec.Install.CRDs == "Skip", MoreValues: len(m.Spec.ValuesFrom) > 0,
		}, file})
		return
	default:
		t.generated(fsys, file, m)
		return
	}
	t.keep(s)
}

func (t *Tree) keep(s treeSet) {
	if s.values != nil {
		s.names = sortedKeys(s.values)
	}
	if s.Name != "" && len(s.names) > 0 {
		t.sets = append(t.sets, s)
	}
}

// generated reads what a kustomization.yaml makes ConfigMaps and Secrets from.
func (t *Tree) generated(fsys fs.FS, file string, m *manifest) {
	for _, kind := range []struct {
		name       string
		generators []generator
	}{{configMapKind, m.ConfigMaps}, {secretKind, m.Secrets}} {
		for _, g := range kind.generators {
			values := map[string]string{}
			for _, literal := range g.Literals {
				key, value, _ := strings.Cut(literal, "=")
				values[key] = strings.Trim(value, `"'`)
			}
			envs := slices.Clone(g.Envs)
			if g.Env != "" {
				envs = append(envs, g.Env)
			}
			for _, env := range envs {
				readEnv(fsys, path.Join(path.Dir(file), env), values)
			}
			s := treeSet{Set: Set{kind.name, g.Namespace, g.Name}, file: file, values: values}
			if kind.name == secretKind {
				s.names, s.values = sortedKeys(values), nil
			}
			t.keep(s)
		}
	}
}

// readEnv reads KEY=VALUE lines, as kustomize does (api/kv).
func readEnv(fsys fs.FS, name string, into map[string]string) {
	text, err := readFile(fsys, name)
	if err != nil {
		return // outside of the tree, or not there
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), " \t")
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			into[key] = value
		}
	}
}

// texts are the plain values of a mapping. An encrypted one is none.
func texts(nodes map[string]yaml.Node) map[string]string {
	values := map[string]string{}
	for key, n := range nodes {
		if n.Kind == yaml.AliasNode && n.Alias != nil {
			n = *n.Alias
		}
		if n.Kind == yaml.ScalarNode && !strings.HasPrefix(n.Value, "ENC[") {
			values[key] = n.Value
		}
	}
	return values
}
