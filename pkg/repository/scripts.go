// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// standing are the Namespaces, ConfigMaps and Secrets that the scripts of the
// working tree apply with kubectl: tasks, just files, Makefiles, shell scripts.
// Whoever begins a cluster runs them first, as far as anybody can tell.
func (r *Repository) standing(ctx context.Context) ([]flux.Ref, error) {
	var all []flux.Ref
	err := looseFiles(ctx, r.Dir, isScript, func(_ string, content []byte) {
		for _, a := range applications(content) {
			all = append(all, r.applied(a)...)
		}
	})
	slices.SortFunc(all, flux.Ref.Compare)
	return slices.Compact(all), err
}

func isScript(name string) bool {
	parts := strings.Split(name, "/")
	base := strings.ToLower(parts[len(parts)-1])
	switch path.Ext(base) {
	case ".sh", ".bash", ".just", ".mk":
		return true
	case ".yaml", ".yml":
		return strings.HasPrefix(base, "taskfile") || slices.Contains(parts, ".taskfiles")
	}
	return base == "makefile" || base == "justfile" || base == ".justfile"
}

// application is one call of kubectl in a script.
type application struct {
	// files end the names of manifests, folders those of kustomizations.
	files, folders []string
	// namespace is that of the command line; spaces are those that it creates.
	namespace string
	spaces    []string
}

var (
	applies       = regexp.MustCompile(`\bkubectl\b.*\s(?:apply|create)\b`)
	creates       = regexp.MustCompile(`\bkubectl\b[^|]*\screate\s+(?:namespace|ns)\s+["']?([a-z0-9][a-z0-9-]*)(?:["'\s]|$)`)
	inNamespace   = regexp.MustCompile(`\bkubectl\b[^|]*\s(?:-n|--namespace)[=\s]+["']?([a-z0-9][a-z0-9-]*)`)
	shellVariable = regexp.MustCompile(`\$[A-Za-z_][A-Za-z0-9_]*`)
	// tail is what a word ends with that no variable or template is in.
	tail = regexp.MustCompile(`[^\s"'{}$()]*$`)
)

// applications finds the calls of kubectl that create what a file of the tree
// holds. A name that begins with a variable is what follows it.
func applications(content []byte) []application {
	var all []application
	text := strings.ReplaceAll(string(content), "\\\n", " ")
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") || !applies.MatchString(line) {
			continue
		}
		var a application
		if m := creates.FindStringSubmatch(line); m != nil {
			a.spaces = append(a.spaces, m[1])
		}
		if m := inNamespace.FindStringSubmatch(line); m != nil {
			a.namespace = m[1]
		}
		before := ""
		for _, word := range strings.Fields(line) {
			if option, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(option, "-") {
				before, word = option, value
			}
			word = strings.Trim(word, `"'`)
			name := tail.FindString(shellVariable.ReplaceAllString(word, "}"))
			switch {
			case name == "", strings.HasPrefix(word, "/"), strings.Contains(word, "://"):
			case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
				a.files = append(a.files, name)
			case before == "-k" || before == "--kustomize":
				a.folders = append(a.folders, name)
			}
			before = word
		}
		if len(a.files)+len(a.folders)+len(a.spaces) > 0 {
			all = append(all, a)
		}
	}
	return all
}

// applied are the objects that a call creates.
func (r *Repository) applied(a application) []flux.Ref {
	var all []flux.Ref
	for _, space := range a.spaces {
		all = append(all, flux.Ref{APIVersion: "v1", Kind: "Namespace", Name: space})
	}
	var files []string
	for _, name := range a.files {
		files = append(files, r.survey.ending(name, r.survey.manifests)...)
	}
	for _, name := range a.folders {
		for _, folder := range r.survey.ending(name, r.survey.folders) {
			manifests, _ := r.survey.tree.Reads(folder)
			files = append(files, manifests...)
		}
	}
	for _, file := range files {
		all = append(all, r.survey.plain(file, a.namespace)...)
	}
	return all
}

// ending are those of the names that the name of a script means: it itself, or,
// where it begins with a variable, those that end with it.
func (s *survey) ending(name string, of []string) []string {
	relative := !strings.HasPrefix(name, "/")
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	var all []string
	for _, each := range of {
		if each == name || !relative && strings.Contains(name, "/") && strings.HasSuffix(each, "/"+name) {
			all = append(all, each)
		}
	}
	return all
}

// plain are the Namespaces, ConfigMaps and Secrets that a manifest holds.
func (s *survey) plain(file, namespace string) []flux.Ref {
	name, err := s.tree.Path(file)
	if err != nil {
		return nil
	}
	content, err := os.ReadFile(name) // of our own copy
	if err != nil {
		return nil
	}
	var all []flux.Ref
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var node yaml.Node
		if decoder.Decode(&node) != nil || len(node.Content) == 0 {
			return all
		}
		for _, object := range objectsOf(node.Content[0]) {
			meta := valueOf(object, "metadata")
			ref := flux.Ref{
				APIVersion: valueOf(object, "apiVersion").Value, Kind: valueOf(object, "kind").Value,
				Namespace: valueOf(meta, "namespace").Value, Name: valueOf(meta, "name").Value,
			}
			if ref.Namespace == "" {
				ref.Namespace = namespace
			}
			switch {
			case ref.APIVersion != "v1" || ref.Name == "":
			case ref.Kind == "Namespace":
				ref.Namespace = ""
				all = append(all, ref)
			case (ref.Kind == "ConfigMap" || ref.Kind == "Secret") && ref.Namespace != "":
				all = append(all, ref)
			}
		}
	}
}
