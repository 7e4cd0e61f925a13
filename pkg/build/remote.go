// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// RemoteBaseError says that a kustomization file refers to something that only
// the network has.
type RemoteBaseError struct {
	// Base is the reference as it is written, File the file that holds it,
	// relative to the root of the tree.
	Base, File string
}

func (e *RemoteBaseError) Error() string {
	return fmt.Sprintf("remote base %s, named in %s, is not fetched: a build uses no network; "+
		"copy it into the repository, or allow remote bases", e.Base, e.File)
}

// checkKustomization looks at a kustomization file before kustomize does. Each
// file of the build passes here, so nothing has to be followed.
func (o *overlay) checkKustomization(name string, content []byte) error {
	var k types.Kustomization
	// kustomize's own parser: what it cannot read, kustomize reports in its
	// own words before it loads anything.
	if err := k.Unmarshal(content); err != nil {
		return nil // as above
	}
	k.FixKustomization() // moves the deprecated fields to where they belong
	if len(k.OpenAPI) > 0 && !o.alone {
		return errOwnSchema
	}
	for _, path := range loaded(&k) {
		o.parts[filepath.Join(filepath.Dir(name), path)] = true
	}
	if o.allowRemote {
		return nil
	}
	dir := filepath.Join(o.tree.root, filepath.Dir(name))
	for _, base := range bases(&k) {
		if o.isRemoteBase(dir, base) {
			return &RemoteBaseError{Base: base, File: name}
		}
	}
	for _, path := range loaded(&k) {
		if isRemoteFile(path) {
			return &RemoteBaseError{Base: path, File: name}
		}
	}
	for _, configs := range [][]string{k.Generators, k.Transformers, k.Validators} {
		for _, config := range configs {
			if err := o.checkConfig(name, []byte(config)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSchema looks at a kustomization file of a remote base.
func (o *overlay) checkSchema(content []byte) error {
	var k types.Kustomization
	if k.Unmarshal(content) == nil && len(k.OpenAPI) > 0 && !o.alone {
		return errOwnSchema
	}
	return nil
}

// isRemoteBase is true of what kustomize would fetch for a kustomization file of
// the folder. A file of that name is read as a file.
func (o *overlay) isRemoteBase(dir, base string) bool {
	return isRemote(base) && !o.isFile(filepath.Join(dir, base))
}

// local is a kustomization file without its remote bases. What is left of it is
// built as if it were all: a patch of something remote then fails.
func (o *overlay) local(path string, content []byte) []byte {
	var fields map[string]any
	if err := yaml.Unmarshal(content, &fields); err != nil {
		return content // kustomize says what is wrong
	}
	for _, field := range []string{"resources", "bases", "components"} {
		list, _ := fields[field].([]any)
		fields[field] = slices.DeleteFunc(list, func(entry any) bool {
			base, _ := entry.(string)
			remote := o.isRemoteBase(filepath.Dir(path), base)
			if remote && !slices.Contains(o.bases, base) {
				o.bases = append(o.bases, base)
			}
			return remote
		})
		if list == nil {
			delete(fields, field)
		}
	}
	left, err := yaml.Marshal(fields)
	if err != nil {
		return content
	}
	return left
}

func (o *overlay) isFile(path string) bool { return o.Exists(path) && !o.IsDir(path) }

// bases are what kustomize takes as a file, a directory or a repository
// (kustomize api internal/target accumulateResources, accumulateComponents).
func bases(k *types.Kustomization) []string {
	var all []string
	for _, list := range [][]string{k.Resources, k.Components, k.Generators, k.Transformers, k.Validators} {
		all = append(all, list...)
	}
	return all
}

// loaded are what kustomize takes as a file or a URL of one (kustomize api
// internal/loader FileLoader.Load).
func loaded(k *types.Kustomization) []string {
	all := append([]string{k.OpenAPI["path"]}, k.Crds...)
	all = append(all, k.Configurations...)
	for _, patch := range k.Patches {
		all = append(all, patch.Path)
	}
	for _, patch := range k.PatchesJson6902 { //nolint:staticcheck // deprecated, and in use
		all = append(all, patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // as above
		all = append(all, string(patch))
	}
	for _, replacement := range k.Replacements {
		all = append(all, replacement.Path)
	}
	for _, generator := range k.ConfigMapGenerator {
		all = append(all, sources(generator.KvPairSources)...)
	}
	for _, generator := range k.SecretGenerator {
		all = append(all, sources(generator.KvPairSources)...)
	}
	return all
}

func sources(pairs types.KvPairSources) []string {
	all := append([]string{pairs.EnvSource}, pairs.EnvSources...)
	for _, file := range pairs.FileSources {
		if _, path, named := strings.Cut(file, "="); named {
			file = path
		}
		all = append(all, file)
	}
	return all
}

// checkConfig looks at the configuration of kustomize's builtin plugins, which
// may name files to load as a kustomization file does.
func (o *overlay) checkConfig(name string, content []byte) error {
	if o.allowRemote || !bytes.Contains(content, []byte("builtin")) {
		return nil
	}
	for _, document := range bytes.Split(content, []byte("\n---")) {
		var config map[string]any
		if err := yaml.Unmarshal(document, &config); err != nil || config["apiVersion"] != "builtin" {
			continue
		}
		for _, path := range paths(config) {
			if isRemoteFile(path) {
				return &RemoteBaseError{Base: path, File: name}
			}
		}
	}
	return nil
}

// paths are the files that a plugin's configuration names.
func paths(config map[string]any) []string {
	var all []string
	for key, value := range config {
		switch key {
		case "path", "paths", "files", "env", "envs":
			all = append(all, texts(value)...)
		case "replacements":
			list, _ := value.([]any)
			for _, entry := range list {
				if entry, ok := entry.(map[string]any); ok {
					all = append(all, texts(entry["path"])...)
				}
			}
		}
	}
	return all
}

func texts(value any) []string {
	switch value := value.(type) {
	case string:
		_, path, named := strings.Cut(value, "=")
		if named && !isRemoteFile(value) {
			return []string{path}
		}
		return []string{value}
	case []any:
		var all []string
		for _, entry := range value {
			all = append(all, texts(entry)...)
		}
		return all
	}
	return nil
}

// isRemoteFile is kustomize's test (api internal/loader IsRemoteFile).
func isRemoteFile(path string) bool {
	u, err := url.Parse(path)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// isRemote holds for all that kustomize would clone or download, and for some
// that it would only fail at (api internal/git NewRepoSpecFromURL). file:// is
// a clone as well, of any repository of this machine.
func isRemote(base string) bool {
	lower := strings.ToLower(base)
	for _, prefix := range []string{"git::", "ssh://", "http://", "https://", "file://", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return isRemoteFile(base) || scpStyle.MatchString(base)
}

// scpStyle is user@host:path or user@host/path, as git takes it.
var scpStyle = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@[^\n]*[:/]`)
