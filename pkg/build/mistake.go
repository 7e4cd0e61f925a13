// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// PositionOf is where in the tree the mistake is that the error of a build is
// about. It answers false where that is not known, and where it is in the tier
// itself: in its path, or in its patches.
func PositionOf(err error) (Position, bool) {
	var placed *placedError
	if !errors.As(err, &placed) {
		return Position{}, false
	}
	return placed.at, true
}

// placedError is an error of a build, and where its cause is.
type placedError struct {
	at  Position
	err error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// place finds the file that kustomize or Flux could not build by. They name
// files relative to whatever they read last, and lines from the beginning of a
// document, where they name any.
func (t *Tree) place(err error, files *overlay, dir string) error {
	m := mistake{tree: t, words: err.Error(), contents: map[string][]byte{}}
	if files != nil {
		m.read = files.read
	} else {
		m.read = t.generatorReads(dir)
	}
	var remote *RemoteBaseError
	if errors.As(err, &remote) {
		return &placedError{m.mention(remote.File, remote.Base), err}
	}
	for _, find := range []func() (Position, bool){m.syntax, m.field, m.absent, m.variable, m.object} {
		if at, found := find(); found {
			at.File = filepath.ToSlash(at.File)
			return &placedError{at, err}
		}
	}
	return err
}

// generatorReads are the files that Flux looks at before kustomize does.
func (t *Tree) generatorReads(dir string) []string {
	if file, found := kustomizationFile(dir); found {
		return []string{t.relative(file)}
	}
	manifests, _ := t.Reads(filepath.ToSlash(t.relative(dir)))
	return manifests
}

type mistake struct {
	tree *Tree
	// words are those of the error, read the files that went into the build.
	words    string
	read     []string
	contents map[string][]byte
}

func (m *mistake) content(file string) []byte {
	content, known := m.contents[file]
	if !known {
		if name, err := m.tree.Path(file); err == nil {
			content, _ = os.ReadFile(name) // what cannot be read says nothing
		}
		m.contents[file] = content
	}
	return content
}

// mention is the first line of the file that holds the text.
func (m *mistake) mention(file, text string) Position {
	at := Position{File: file, Line: 1}
	if before, _, found := bytes.Cut(m.content(file), []byte(text)); found {
		at.Line += bytes.Count(before, []byte("\n"))
	}
	return at
}

func lineOf(words string) int {
	found := regexp.MustCompile(`yaml: (?:.*?)line (\d+)`).FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	line, _ := strconv.Atoi(found[1])
	return line
}

// syntax finds a file that is not YAML: the last one that was read, mostly.
func (m *mistake) syntax() (Position, bool) {
	for _, file := range slices.Backward(m.read) {
		decoder := yaml.NewDecoder(bytes.NewReader(m.content(file)))
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return Position{File: file, Line: max(1, lineOf(err.Error()))}, true
			}
		}
	}
	return Position{}, false
}

// field finds the field that a kustomization file may not have.
func (m *mistake) field() (Position, bool) {
	found := regexp.MustCompile(`unknown field "([^"]+)"`).FindStringSubmatch(m.words)
	if found == nil {
		return Position{}, false
	}
	name := found[1][strings.LastIndex(found[1], ".")+1:]
	for _, file := range slices.Backward(m.read) {
		if IsKustomization(file) && bytes.Contains(m.content(file), []byte(name+":")) {
			return m.mention(file, name+":"), true
		}
	}
	return Position{}, false
}

// absent finds what a kustomization file names and the tree does not hold.
func (m *mistake) absent() (Position, bool) {
	for _, file := range slices.Backward(m.read) {
		var k types.Kustomization
		if !IsKustomization(file) || k.Unmarshal(m.content(file)) != nil {
			continue
		}
		k.FixKustomization()
		for _, name := range append(bases(&k), loaded(&k)...) {
			if name == "" || strings.Contains(name, "\n") || !strings.Contains(m.words, name) {
				continue
			}
			at := filepath.Join(m.tree.root, filepath.Dir(file), name)
			if _, err := os.Stat(at); err != nil || filepath.IsAbs(name) || !strings.HasPrefix(at, m.tree.root) {
				return m.mention(file, name), true
			}
		}
	}
	return Position{}, false
}

// variable finds the variable that is not set.
func (m *mistake) variable() (Position, bool) {
	found := regexp.MustCompile(`variable not set \(strict mode\): "([^"]+)"`).FindStringSubmatch(m.words)
	if found == nil {
		return Position{}, false
	}
	bare := regexp.MustCompile(`\$\{` + regexp.QuoteMeta(found[1]) + `[^A-Za-z0-9_:=+?-]`)
	for _, file := range m.read {
		content := m.content(file)
		if at := bare.FindIndex(content); at != nil && !IsKustomization(file) {
			return Position{File: file, Line: 1 + bytes.Count(content[:at[0]], []byte("\n"))}, true
		}
	}
	return Position{}, false
}

// object finds the object that the words name: one that is there twice, that a
// patch does not fit, or whose values cannot be substituted.
func (m *mistake) object() (Position, bool) {
	if strings.Contains(m.words, "missing metadata.name") {
		return m.last(func(d Document) bool { return d.Name == "" && d.Kind != "" && strings.Contains(m.words, d.Kind) })
	}
	for _, shape := range []string{
		`post build failed for '(?P<kind>[A-Za-z0-9]+)\.[^/]*/(?P<name>[^']+)': envsubst error: (?:variable substitution failed|YAMLToJSON)`,
		`already registered id: (?P<kind>[A-Za-z0-9]+)\.[^/]*/(?P<name>[^.\s]+)\.`,
		`no matches for Id (?P<kind>[A-Za-z0-9]+)\.[^/]*/(?P<name>[^.\s]+)\.`,
	} {
		if found := regexp.MustCompile(shape).FindStringSubmatch(m.words); found != nil {
			return m.last(func(d Document) bool { return d.Kind == found[1] && d.Name == found[2] })
		}
	}
	return Position{}, false
}

// last is the last of the files' objects that match.
func (m *mistake) last(match func(Document) bool) (Position, bool) {
	for _, file := range slices.Backward(m.read) {
		if IsKustomization(file) {
			continue
		}
		for _, d := range slices.Backward(m.tree.Documents(file)) {
			if match(d) {
				return Position{File: path.Clean(filepath.ToSlash(file)), Line: d.Line}, true
			}
		}
	}
	return Position{}, false
}
