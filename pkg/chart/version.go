// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/version"
)

// offered is one version of a chart that a repository offers.
type offered struct {
	Version string    `json:"version"`
	URLs    []string  `json:"urls"`
	Created time.Time `json:"created"`
	// Digest is the archive's SHA-256, empty where the index has none.
	Digest string `json:"digest"`
}

// choose is the version that source-controller takes: the one that is named,
// else the highest in the range, and of equal ones the newest
// (source-controller internal/helm/repository chart_repository.go
// getChartVersion, oci_chart_repository.go getLastMatchingVersionOrConstraint).
func choose(all []offered, wanted string) (offered, error) {
	for _, o := range all {
		if wanted != "" && o.Version == wanted {
			return o, nil
		}
	}
	in, err := semver.NewConstraint(cmp.Or(wanted, "*"))
	if err != nil {
		return offered{}, fmt.Errorf("version %q is neither there nor a range: %w", wanted, err)
	}
	type candidate struct {
		offered
		parsed *semver.Version
	}
	var fitting []candidate
	for _, o := range all {
		if v, err := version.ParseVersion(o.Version); err == nil && in.Check(v) {
			fitting = append(fitting, candidate{o, v})
		}
	}
	if len(fitting) == 0 {
		return offered{}, fmt.Errorf("none of its %d versions is in the range %q", len(all), cmp.Or(wanted, "*"))
	}
	best := slices.MaxFunc(fitting, func(a, b candidate) int {
		return cmp.Or(a.parsed.Compare(b.parsed), a.Created.Compare(b.Created))
	})
	return best.offered, nil
}

// withMetadata sets the build metadata of a version (source-controller
// internal/helm/chart builder_remote.go setBuildMetaData).
func withMetadata(v, metadata string) (string, error) {
	parsed, err := semver.NewVersion(v)
	if err != nil {
		return "", fmt.Errorf("its version %q is not a semantic one: %w", v, err)
	}
	changed, err := parsed.SetMetadata(metadata)
	if err != nil {
		return "", fmt.Errorf("its version %q cannot carry the revision %q: %w", v, metadata, err)
	}
	return changed.String(), nil
}

// shortRevision is how many characters of a digest go into a version.
const shortRevision = 12

// withRevision is the version under which helm-controller releases a chart of
// an OCIRepository or ExternalArtifact: with the digest of its revision, so
// that a tag that moved is noticed (helm-controller
// internal/controller helmrelease_controller.go mutateChartWithSourceRevision).
func withRevision(v, revision string) (string, error) {
	_, digest, tagged := strings.Cut(revision, "@")
	if !tagged {
		digest = revision
	}
	_, hex, ok := strings.Cut(digest, ":")
	if !ok || len(hex) < shortRevision {
		return "", fmt.Errorf("revision %q of its source names no digest", revision)
	}
	return withMetadata(v, hex[:shortRevision])
}
