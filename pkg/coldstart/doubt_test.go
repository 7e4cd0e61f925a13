// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import "testing"

func TestAlike(t *testing.T) {
	for _, tt := range []struct {
		word, other string
		want        bool
	}{
		{"metallb", "metallb", true},
		{"metallb-crds", "metallb", true},
		{"prometheus-operator", "prometheus-operator-crds", true},
		{"cdi", "cdi", true},
		{"cdi-crds", "cdi", false}, // three letters are in many words
		{"io", "io", false},
		{"operator", "prometheus-operator", false},
		{"prometheus-operator", "operator", false}, // of operator.example.io
		{"k8s", "k8s", false},
		{"", "anything", false},
		{"anything", "", false},
	} {
		if got := alike(tt.word, tt.other); got != tt.want {
			t.Errorf("%q, %q: got %t", tt.word, tt.other, got)
		}
	}
}
