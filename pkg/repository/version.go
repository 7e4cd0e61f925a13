// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/kubestandup/kubestandup/pkg/build"
)

// strictSince is the first kustomize-controller, v1.N, and the first Flux, v2.N,
// in which feature gate StrictPostBuildSubstitutions is on (kustomize-controller
// CHANGELOG.md).
const strictSince = 9

var (
	strictGate        = regexp.MustCompile(`StrictPostBuildSubstitutions=(true|false)`)
	controllerVersion = regexp.MustCompile(`(?:kustomize-controller:v([01])|Flux Version: v([02]))\.(\d+)`)
)

// looseController is true when texts, the manifests of the controllers or
// patches of them, say that a variable that is not set is empty: by the feature
// gate, or by the version. Without either the controller is a new one.
func looseController(texts []string) bool {
	loose := false
	for _, text := range texts {
		if gate := strictGate.FindStringSubmatch(text); gate != nil {
			return gate[1] == "false"
		}
		if version := controllerVersion.FindStringSubmatch(text); version != nil {
			minor, err := strconv.Atoi(version[3])
			loose = err == nil && (version[1] == "0" || version[2] == "0" || minor < strictSince)
		}
	}
	return loose
}

// texts are the manifests and kustomization files of a folder.
func (s *survey) texts(folder string) []string {
	dir, err := s.tree.Path(folder)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []string
	for _, entry := range entries {
		if entry.IsDir() || !build.IsManifest(entry.Name()) {
			continue
		}
		if content, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil { // of our own copy
			all = append(all, string(content))
		}
	}
	return all
}
