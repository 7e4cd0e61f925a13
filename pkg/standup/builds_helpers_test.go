// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func yamlObject(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return u
}

func ks(name string) flux.Ref {
	return flux.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: flux.KustomizationKind, Namespace: "flux-system", Name: name}
}

// builtTier is a Kustomization with that spec, in YAML, and the objects that it
// builds.
func builtTier(t *testing.T, name, spec string, objects ...string) build.Followed {
	t.Helper()
	u := yamlObject(t, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "+name+", namespace: flux-system}\nspec: "+spec)
	f := build.Followed{Tier: ks(name), Kustomization: u, Result: &build.Result{Tier: ks(name)}}
	for _, manifest := range objects {
		o := yamlObject(t, manifest)
		f.Result.Objects = append(f.Result.Objects, build.Object{
			Unstructured: o, Stage: build.Stage(o, nil), Encrypted: strings.Contains(manifest, "sops"),
		})
	}
	return f
}

// lookingAtBuilds is a look at a cluster on which these tiers are, suspended.
func lookingAtBuilds(all ...build.Followed) *preflight {
	s := &flux.Snapshot{}
	for i := range all {
		s.Tiers = append(s.Tiers, flux.Tier{Ref: all[i].Tier, Suspended: true})
	}
	return lookingAt(s, all...)
}

// one is the only finding of a rule.
func one(t *testing.T, all []finding.Finding, rule string) finding.Finding {
	t.Helper()
	var found []finding.Finding
	for _, f := range all {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one %s in %+v", rule, all)
	}
	return found[0]
}

func text(f finding.Finding) string {
	return strings.Join(append([]string{f.Message, f.Fix}, f.Causes...), "\n")
}
