// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"path/filepath"
	"strings"

	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlay is the file system that one build sees: the tree, confined to its
// root by Flux's own code, with the kustomization file that Flux generates
// laid over it in memory. It refuses to write, and reads along: what kustomize
// would fetch over the network is refused before it does.
type overlay struct {
	filesys.FileSystem
	tree *Tree

	// file is the path of the generated kustomization file.
	file      string
	generated []byte

	allowRemote bool
	// withoutRemote leaves remote bases out, and bases says which.
	withoutRemote bool
	bases         []string
	// refused is the first read that was refused. kustomize drops the error
	// of a kustomization file that cannot be read and says that there is none.
	refused error
	// alone is true when no other build runs beside this one, so that it may set
	// its own schema.
	alone bool
	// read are the files that went into the build, in order, relative to the
	// root of the tree.
	read []string
	seen map[string]bool
	// parts are the files that hold no objects of their own: patches, values
	// of generators and the like.
	parts map[string]bool
}

func (b Builder) newOverlay(tree *Tree, file string, generated []byte, alone bool) (*overlay, error) {
	confined := securefs.MakeFsOnDiskSecure
	if b.AllowRemoteBases {
		confined = securefs.MakeFsOnDiskSecureBuild
	}
	disk, err := confined(tree.root)
	if err != nil {
		return nil, err
	}
	return &overlay{
		FileSystem: disk, tree: tree, file: file, generated: generated,
		allowRemote: b.AllowRemoteBases, withoutRemote: b.withoutRemote, alone: alone, seen: map[string]bool{}, parts: map[string]bool{},
	}, nil
}

// ReadFile returns the content of a file, once it is known to be harmless.
func (o *overlay) ReadFile(path string) ([]byte, error) {
	content := o.generated
	if path != o.file {
		var err error
		if content, err = o.FileSystem.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if o.withoutRemote && IsKustomization(path) {
		content = o.local(path, content)
	}
	if err := o.inspect(path, content); err != nil {
		if o.refused == nil {
			o.refused = err
		}
		return nil, err
	}
	return content, nil
}

func (o *overlay) inspect(path string, content []byte) error {
	name, err := filepath.Rel(o.tree.root, path)
	if err != nil || strings.HasPrefix(name, "..") {
		// A clone of a remote base, which is allowed, or it would not be read.
		if err := checkAliases(path, content); err != nil || !IsKustomization(path) {
			return err
		}
		return o.checkSchema(content)
	}
	if !o.seen[name] {
		o.seen[name] = true
		o.read = append(o.read, name)
	}
	if err := checkAliases(name, content); err != nil {
		return err
	}
	if !IsKustomization(path) {
		return o.checkConfig(name, content)
	}
	return o.checkKustomization(name, content)
}

// manifests are the files that objects may be written in.
func (o *overlay) manifests() []string {
	var all []string
	for _, name := range o.read {
		if !o.parts[name] && !IsKustomization(name) {
			all = append(all, name)
		}
	}
	return all
}

// IsKustomization is true of the files that kustomize builds a folder by.
func IsKustomization(path string) bool {
	base := filepath.Base(path)
	for _, known := range konfig.RecognizedKustomizationFileNames() {
		if base == known {
			return true
		}
	}
	return false
}

// The tree is never written to: a build only reads.

func (o *overlay) Create(path string) (filesys.File, error) { return nil, o.readOnly("create", path) }
func (o *overlay) Mkdir(path string) error                  { return o.readOnly("make", path) }
func (o *overlay) MkdirAll(path string) error               { return o.readOnly("make", path) }
func (o *overlay) WriteFile(path string, _ []byte) error    { return o.readOnly("write", path) }

// RemoveAll lets kustomize remove its own clone of a remote base, and nothing
// else.
func (o *overlay) RemoveAll(path string) error {
	if prefix, err := securefs.TmpConfirmedDirPrefix(); err == nil && o.allowRemote && strings.HasPrefix(path, prefix) {
		return o.FileSystem.RemoveAll(path)
	}
	return o.readOnly("remove", path)
}

func (o *overlay) readOnly(verb, path string) error {
	return fmt.Errorf("cannot %s %s: a build only reads", verb, o.tree.relative(path))
}
