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
	bundle := files["charts/policy-engine/templates/crds.yaml"]
	if mib := float64(len(bundle)) / (1 << 20); mib < 5.4 || mib > 5.8 {
		t.Errorf("the bundle has %.1f MiB", mib)
	}
	for i, d := range strings.Split(bundle, "---\n")[1:] {
		if len(d) < 262144 || len(d) > 1<<20 {
			t.Errorf("definition %d has %d bytes", i, len(d))
		}
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
