// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"encoding/hex"
)

// A release's name is at most 53 characters, so that a Secret, and a label, can
// hold it with what Helm adds.
const (
	maxName   = 53
	shortHash = 12
)

// ShortenName is the name under which helm-controller releases: the name itself,
// or, above 53 bytes, its first 40, a hyphen, and the first 12 hexadecimal
// digits of its SHA-256 (helm-controller, internal/release/name.go).
func ShortenName(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-shortHash-1] + "-" + hex.EncodeToString(sum[:])[:shortHash]
}

// NameFor is the name of the release of the HelmRelease name: its
// spec.releaseName, else its own name, after spec.targetNamespace and a hyphen
// where that is set; shortened (helm-controller, api/v2
// HelmRelease.GetReleaseName).
func NameFor(releaseName, targetNamespace, name string) string {
	switch {
	case releaseName != "":
		return ShortenName(releaseName)
	case targetNamespace != "":
		return ShortenName(targetNamespace + "-" + name)
	}
	return ShortenName(name)
}
