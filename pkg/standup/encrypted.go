// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// encrypted reports what SOPS encrypted in tiers that do not decrypt: a Secret
// fails the whole tier, and any other kind ships its ciphertext (incident 11).
func (p *preflight) encrypted(ctx context.Context) (Check, error) {
	var c Check
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	count := 0
	for i := range b.all {
		f := &b.all[i]
		if f.Result == nil {
			continue
		}
		var ciphertext []flux.Ref
		for _, o := range f.Result.Objects {
			if !o.Encrypted {
				continue
			}
			count++
			if !decrypted(f, o) && !o.Ignored {
				ciphertext = append(ciphertext, o.Ref())
			}
		}
		if finding, bad := encryptedFinding(f, ciphertext); bad {
			c.Findings = append(c.Findings, finding)
		}
	}
	c.Message = plural(count, "encrypted object", "encrypted objects") + " in the tiers' builds" + b.unknown()
	return c, nil
}

// decrypted is true when the controller would decrypt the object. It is not
// asked to for an object that says so (kustomize.toolkit.fluxcd.io/decrypt:
// disabled), and then ships the ciphertext on purpose.
func decrypted(f *build.Followed, o build.Object) bool {
	provider, _, _ := unstructured.NestedString(f.Kustomization.Object, "spec", "decryption", "provider")
	return provider != "" || o.GetAnnotations()["kustomize.toolkit.fluxcd.io/decrypt"] != ""
}

func encryptedFinding(f *build.Followed, ciphertext []flux.Ref) (finding.Finding, bool) {
	found := finding.Finding{
		Severity: finding.Error, Tier: &f.Tier, Object: &f.Tier,
		Fix: "add spec.decryption to that Kustomization in git, with the Secret that holds the key; it is not inherited from a parent",
	}
	switch {
	case f.Result.Rejected != nil:
		found.Rule = "encrypted-secret-rejected"
		found.Message = fmt.Sprintf("%s is not applied at all: %v", f.Tier, f.Result.Redact(f.Result.Rejected))
	case len(ciphertext) > 0:
		found.Rule = "encrypted-not-decrypted"
		found.Message = fmt.Sprintf("%s has no spec.decryption, so it ships the ciphertext of %s", f.Tier, listed(ciphertext))
	default:
		return found, false
	}
	if len(ciphertext) > 0 {
		found.Object = &ciphertext[0]
	}
	return found, true
}
