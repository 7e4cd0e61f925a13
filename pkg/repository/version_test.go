// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"
)

func TestLooseController(t *testing.T) {
	tests := []struct {
		name  string
		texts []string
		want  bool
	}{
		{"nothing said", []string{"a: b"}, false},
		{"old components", []string{"# Flux Version: v2.2.3\n# Components: …"}, true},
		{"new components", []string{"# Flux Version: v2.9.0\n"}, false},
		{"newer", []string{"image: ghcr.io/fluxcd/kustomize-controller:v1.10.1"}, false},
		{"old image", []string{"image: ghcr.io/fluxcd/kustomize-controller:v1.8.4"}, true},
		{"very old image", []string{"image: ghcr.io/fluxcd/kustomize-controller:v0.35.1"}, true},
		{"any of version 2", []string{"Flux Version: v2.x"}, false},
		{"old, made strict", []string{"- --feature-gates=StrictPostBuildSubstitutions=true", "# Flux Version: v2.2.3"}, false},
		{"new, made loose", []string{"# Flux Version: v2.9.0", "- --feature-gates=A=true,StrictPostBuildSubstitutions=false"}, true},
	}
	for _, tt := range tests {
		if got := looseController(tt.texts); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestOldController: what an old Flux builds is no mistake.
func TestOldController(t *testing.T) {
	app := map[string]string{
		"clusters/prod/apps.yaml": ks("apps", "apps", "", "postBuild: {substitute: {A: a}}"),
		"apps/a.yaml":             cm("a", "a: x${UNSET}x"),
		"flux.yaml":               strings.ReplaceAll(instance, "2.x", "2.8.x"),
	}
	c := open(t, write(t, app), Options{}).Clusters[0]
	if !c.LooseSubstitution || c.Tier(tier("apps")).Err != nil {
		t.Errorf("loose %t, %v", c.LooseSubstitution, c.Tier(tier("apps")).Err)
	}
	app["flux.yaml"] = instance
	c = open(t, write(t, app), Options{}).Clusters[0]
	if c.LooseSubstitution || c.Tier(tier("apps")).Err == nil {
		t.Error("a new Flux builds it, too")
	}
}
