// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package bringup

import (
	"strings"
	"testing"
)

// TestTheBundleIsAsLargeAsTheOneOfTheIncident: more than kubectl's annotation
// takes, and no definition more than etcd does.
func TestTheBundleIsAsLargeAsTheOneOfTheIncident(t *testing.T) {
	files, err := Extended("")
	if err != nil {
		t.Fatal(err)
	}
	bundle := 0
	for path, text := range files {
		if !strings.Contains(path, "/templates/crd-") {
			continue
		}
		if bundle += len(text); len(text) < 262144 || len(text) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	}
	if mib := float64(bundle) / (1 << 20); mib < 5.4 || mib > 5.8 {
		t.Errorf("the bundle has %.1f MiB", mib)
	}
}

func TestTheSecretIsEncrypted(t *testing.T) {
	files, err := Extended("")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		if strings.Contains(text, SecretValue) || strings.Contains(text, AgeKey) {
			t.Errorf("%s holds a secret in the clear", path)
		}
	}
	for _, name := range Suspended() {
		if files[name+"/"+name+".yaml"] == "" {
			t.Errorf("there is no tier %s", name)
		}
	}
}
