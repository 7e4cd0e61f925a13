// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"strings"
	"testing"
)

// TestDecryptionSecrets: incident 12, with every field that Flux takes.
func TestDecryptionSecrets(t *testing.T) {
	const secret, spec = "Secret/flux-system/sops-age", "{decryption: {provider: sops, secretRef: {name: sops-age}}}"
	for name, tt := range map[string]struct {
		vars   fakeVariables
		spec   string
		rules  string
		says   string
		blocks bool
	}{
		"no decryption":     {nil, "{}", "[]", "", false},
		"by its identity":   {nil, "{decryption: {provider: sops}}", "[]", "", false},
		"no provider":       {nil, "{decryption: {provider: ''}}", "[decryption-provider]", `provider ""`, false},
		"not there":         {nil, spec, "[decryption-secret-missing]", "Secret/flux-system/sops-age does not exist; Kustomization/flux-system/a cannot be decrypted", true},
		"may not be read":   {fakeVariables{secret: nil}, spec, "[decryption-secret-unseen]", "forbidden", true},
		"empty":             {fakeVariables{secret: {}}, spec, "[decryption-secret-without-key]", "its fields are none", true},
		"of another name":   {fakeVariables{secret: {"age.txt": "hidden", "vault-token": "hidden"}}, spec, "[decryption-secret-without-key]", "its fields are age.txt, vault-token", true},
		"an empty key":      {fakeVariables{secret: {"a.agekey": ""}}, spec, "[decryption-secret-without-key]", "a.agekey (empty)", true},
		"an age key":        {fakeVariables{secret: {"x.agekey": "hidden"}}, spec, "[]", "", false},
		"a PGP key":         {fakeVariables{secret: {"x.asc": "hidden"}}, spec, "[]", "", false},
		"a token of Vault":  {fakeVariables{secret: {"sops.vault-token": "hidden"}}, spec, "[]", "", false},
		"AWS":               {fakeVariables{secret: {"sops.aws-kms": "hidden"}}, spec, "[]", "", false},
		"not quite of AWS":  {fakeVariables{secret: {"x.aws-kms": "hidden"}}, spec, "[decryption-secret-without-key]", "x.aws-kms", true},
		"one that is a key": {fakeVariables{secret: {"readme": "hidden", "x.agekey": "hidden"}}, spec, "[]", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := lookingAtBuilds(builtTier(t, "a", tt.spec))
			if tt.vars != nil {
				p.built.variables = tt.vars
			}
			c, err := p.decryption(t.Context())
			if err != nil || fmt.Sprint(rules(c)) != tt.rules {
				t.Fatalf("got %v, %v", rules(c), err)
			}
			for _, f := range c.Findings {
				if piped := strings.HasSuffix(f.Fix, " | kubectl apply --server-side --force-conflicts -f -"); piped != (f.Rule == "decryption-secret-without-key") {
					t.Errorf("%s cannot be pasted: %s", f.Rule, f.Fix)
				}
				if !strings.Contains(text(f), tt.says) || f.Blocks != tt.blocks || strings.Contains(text(f), "hidden") {
					t.Errorf("got %+v", f)
				}
			}
		})
	}
}

// TestDecryptionSecretsAreToldOnce, with all tiers that need them.
func TestDecryptionSecretsAreToldOnce(t *testing.T) {
	const spec = "{decryption: {provider: sops, secretRef: {name: k}}}"
	p := lookingAtBuilds(builtTier(t, "a", spec), builtTier(t, "b", spec))
	c, err := p.decryption(t.Context())
	if err != nil || len(c.Findings) != 1 || !strings.Contains(c.Findings[0].Message, "Kustomization/flux-system/a, Kustomization/flux-system/b cannot") {
		t.Errorf("%+v, %v", c.Findings, err)
	}
	if !strings.Contains(c.Findings[0].Fix, "kubectl -n flux-system create secret generic k --from-file=identity.agekey=FILE") {
		t.Errorf("it cannot be pasted: %s", c.Findings[0].Fix)
	}
}
