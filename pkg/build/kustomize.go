// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// kustomizeLock is held for every build: kustomize keeps the OpenAPI schema
// that it merges by in a variable of its own package
// (kubernetes-sigs/kustomize#3659).
var kustomizeLock sync.Mutex

// runKustomize is fluxcd/pkg/kustomize Build (v1.35.7 and v1.41.0), except
// that it throws the built-in schema away only after a build that brought a
// schema of its own. Parsing it takes longer than all the rest of a build:
// some 0.2 s, which two thousand tiers would spend seven minutes on.
func runKustomize(files *overlay, dir string) (m resmap.ResMap, err error) {
	kustomizeLock.Lock()
	defer kustomizeLock.Unlock()
	defer func() {
		// kustomize panics on some malformed objects.
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered from kustomize build panic: %v", r)
		}
		if files.openAPI {
			openapi.ResetOpenAPI()
		}
	}()
	_ = openapi.Schema() // schemas of the build add to the built-in ones
	return krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(files, dir)
}

// hasKustomization is true when the directory holds a kustomization file.
func hasKustomization(dir string) bool {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}
