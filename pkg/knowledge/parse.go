// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxFile bounds a file, in bytes: what we ship is a twentieth of it.
const maxFile = 4 << 20

// parse is strict, and says where in the file an unknown field is.
func parse(content []byte) (*File, error) {
	if len(content) > maxFile {
		return nil, fmt.Errorf("it has %d bytes, and the most that is read is %d: split it", len(content), maxFile)
	}
	// Aliases that multiply are refused by the parser itself (go-yaml decode.go
	// allowedAliasRatio).
	raw, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, err
	}
	var file File
	unknown, err := json.UnmarshalStrict(raw, &file)
	for i, u := range unknown {
		if found := fieldIn.FindStringSubmatch(u.Error()); found != nil {
			unknown[i] = at(content, found[1], u)
		}
	}
	return &file, errors.Join(append(unknown, mistyped(err))...)
}

// mistyped says of a value of another type where it is, in words of YAML.
func mistyped(err error) error {
	if err == nil {
		return nil
	}
	found := typeIn.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	is := cmp.Or(map[string]string{"array": "list", "object": "mapping"}[found[1]], found[1])
	if found[2] == "" {
		return fmt.Errorf("it is a %s, not a file of knowledge", is)
	}
	want := found[3]
	switch {
	case strings.HasPrefix(want, "[]"):
		want = "list"
	case slices.Contains([]string{"knowledge.Class", "knowledge.Confidence", "knowledge.Scope"}, want):
		want = "string"
	case want != "bool" && want != "string": // nothing else is of another type
		want = "mapping"
	}
	return fmt.Errorf("%s is a %s, not a %s", found[2], is, want)
}

var (
	// fieldIn is how sigs.k8s.io/json names an unknown field.
	fieldIn = regexp.MustCompile(`unknown field "([^"]+)"`)
	// typeIn is how it names a value of another type.
	typeIn = regexp.MustCompile(`cannot unmarshal (\w+) into Go (?:struct field \w+\.(\S+)|value) of type (\S+)`)
	step   = regexp.MustCompile(`[^.\[\]]+`)
)

// flaw is what is wrong with a file, and where: relations[0].class.
type flaw struct {
	path string
	error
}

func (f *flaw) Unwrap() error { return f.error }

// at adds the line to a flaw, when the file has the path or a part of it.
func (f *flaw) at(content []byte) error { return at(content, f.path, f.error) }

func at(content []byte, path string, err error) error {
	var document yamlv3.Node
	if yamlv3.Unmarshal(content, &document) != nil || len(document.Content) == 0 {
		return err
	}
	line := 0
	node := document.Content[0]
	for _, name := range step.FindAllString(path, -1) {
		for node.Kind == yamlv3.AliasNode {
			node = node.Alias
		}
		next, at := child(node, name)
		if next == nil {
			break
		}
		node, line = next, at
	}
	if line == 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// child is a field of a mapping, or an item of a sequence, and its line.
func child(node *yamlv3.Node, name string) (*yamlv3.Node, int) {
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	}
	return nil, 0
}

func orNothing(s string) string {
	if strings.TrimSpace(s) == "" {
		return "nothing"
	}
	return s
}
