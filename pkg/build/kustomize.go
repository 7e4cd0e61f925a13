// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// schemaLock guards the OpenAPI schema that kustomize merges by and asks for
// the scope of a kind, which it keeps in a variable of its own package
// (kubernetes-sigs/kustomize#3659). Once parsed it is only read, so that builds
// run side by side; one that brings a schema of its own runs alone
// (kyaml openapi/openapi.go SetSchema, initSchema, v0.21.1).
var schemaLock sync.RWMutex

// errOwnSchema ends a build that must run alone.
var errOwnSchema = errors.New("it sets an OpenAPI schema of its own, and is built again")

// withSchema runs whatever uses kustomize: its parser, its build, and the names
// of what it built. alone is false at first; where the work then ends in
// errOwnSchema it is repeated with nothing beside it.
func withSchema(work func(alone bool) error) error {
	guarded := func(alone bool) (err error) {
		defer func() {
			// kustomize panics on some malformed objects, and so does what reads
			// the objects that it made.
			if r := recover(); r != nil {
				err = fmt.Errorf("recovered from kustomize build panic: %v", r)
			}
		}()
		return work(alone)
	}
	err := func() error {
		schemaLock.RLock()
		defer schemaLock.RUnlock()
		// The build adds its schema to the built-in one, which parses when it is
		// first asked for: some 0.2 s, under a lock of its own.
		_ = openapi.Schema()
		return guarded(false)
	}()
	if !errors.Is(err, errOwnSchema) {
		return err
	}
	schemaLock.Lock()
	defer schemaLock.Unlock()
	defer openapi.ResetOpenAPI()
	_ = openapi.Schema()
	return guarded(true)
}

// runKustomize is fluxcd/pkg/kustomize Build (v1.35.7 and v1.41.0), except
// that the built-in schema is thrown away only after a build that brought a
// schema of its own: two thousand tiers would spend seven minutes on it.
func runKustomize(files filesys.FileSystem, dir string) (resmap.ResMap, error) {
	return krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(files, dir)
}

// kustomizationFile is the file by which kustomize builds the directory.
func kustomizationFile(dir string) (string, bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, true
		}
	}
	return "", false
}

// hasKustomization is true when the directory holds a kustomization file.
func hasKustomization(dir string) bool {
	_, found := kustomizationFile(dir)
	return found
}
