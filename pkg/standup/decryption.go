// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// decryption reports the Secrets that Kustomizations are to decrypt with and
// that are not there, or hold no key (incident 12). It takes one GET for each
// distinct Secret that the builds have not read.
func (p *preflight) decryption(ctx context.Context) (Check, error) {
	var c Check
	b, err := p.builds(ctx)
	if err != nil {
		return c, err
	}
	var order []flux.Ref
	tiers := map[flux.Ref][]flux.Ref{}
	for i := range b.all {
		f := &b.all[i]
		decryption, found, _ := unstructured.NestedMap(f.Kustomization.Object, "spec", "decryption")
		if !found {
			continue
		}
		if provider, _ := decryption["provider"].(string); provider != "sops" {
			c.Findings = append(c.Findings, finding.Finding{
				Rule: "decryption-provider", Severity: finding.Error, Object: &f.Tier, Tier: &f.Tier,
				Message: fmt.Sprintf("%s has spec.decryption with provider %q, so nothing is decrypted", f.Tier, provider),
				Fix:     "set spec.decryption.provider to sops in git",
			})
		}
		name, _, _ := unstructured.NestedString(decryption, "secretRef", "name")
		if name == "" {
			continue // the controller's own identity or key
		}
		ref := flux.Ref{APIVersion: "v1", Kind: "Secret", Namespace: f.Tier.Namespace, Name: name}
		if tiers[ref] == nil {
			order = append(order, ref)
		}
		tiers[ref] = append(tiers[ref], f.Tier)
	}
	slices.SortFunc(order, flux.Ref.Compare)
	good := 0
	for _, ref := range order {
		keys, err := p.secretKeys(ctx, b, ref)
		if f, bad := p.decryptionFinding(b, ref, tiers[ref], keys, err); bad {
			c.Findings = append(c.Findings, f)
			continue
		}
		good++
	}
	if good > 0 {
		c.Message = plural(good, "Secret holds a key", "Secrets hold keys")
	} else if len(order) == 0 {
		c.Message = "no tier names a Secret to decrypt with"
	}
	return c, ctx.Err()
}

// secretKeys are the names of a Secret's fields, with whether they are empty.
func (p *preflight) secretKeys(ctx context.Context, b *builds, ref flux.Ref) (map[string]bool, error) {
	data, err := b.variables.Secret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]bool, len(data))
	for name, value := range data {
		keys[name] = len(value) > 0
	}
	return keys, nil
}

func (p *preflight) decryptionFinding(b *builds, ref flux.Ref, tiers []flux.Ref, keys map[string]bool, err error) (finding.Finding, bool) {
	f := finding.Finding{
		Rule: "decryption-secret-missing", Severity: finding.Error, Blocks: true, Object: &ref, Tier: &tiers[0],
		Fix: "put the key there before Flux needs it: " + p.command(fmt.Sprintf(
			"kubectl -n %s create secret generic %s --from-file=identity.agekey=FILE", ref.Namespace, ref.Name)),
	}
	needed := listed(tiers) + " cannot be decrypted without it"
	switch {
	case apierrors.IsNotFound(err):
		f.Message = fmt.Sprintf("%s does not exist; %s", ref, needed)
		if o, ok := b.authored(ref); ok {
			f.Causes = append(f.Causes, fmt.Sprintf("%s builds it, but has not been applied", o.tier.Tier))
		}
		if i := slices.IndexFunc(tiers, func(t flux.Ref) bool { return p.graph.Node(t) == nil }); i >= 0 {
			f.Causes = append(f.Causes, fmt.Sprintf("%s is not on the cluster yet", tiers[i]))
		}
	case err != nil:
		f.Rule = "decryption-secret-unseen"
		f.Message = fmt.Sprintf("%s could not be looked at: %v; %s", ref, err, needed)
		f.Fix = "let this user get that Secret, then: " + p.env.Command("standup", "preflight")
	case !slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(name string) bool { return keys[name] && isKeyField(name) }):
		f.Rule = "decryption-secret-without-key"
		f.Fix = "put the key into it before Flux needs it: " + p.command(fmt.Sprintf( // it is there, so it cannot be created
			"kubectl -n %s create secret generic %s --from-file=identity.agekey=FILE --dry-run=client -o yaml", ref.Namespace, ref.Name)) +
			" | " + p.command("kubectl apply --server-side --force-conflicts -f -")
		f.Message = fmt.Sprintf("%s holds no key: its fields are %s; %s", ref, fieldNames(keys), needed)
		f.Causes = append(f.Causes, "kustomize-controller takes *.agekey, *.asc, sops.vault-token, sops.aws-kms, sops.azure-kv and sops.gcp-kms")
	default:
		return f, false
	}
	return f, true
}

// isKeyField is true for the fields that kustomize-controller imports
// (internal/decryptor/decryptor.go ImportKeys, v1.9.6).
func isKeyField(name string) bool {
	switch filepath.Ext(name) {
	case ".asc", ".agekey":
		return true
	}
	switch name {
	case "sops.vault-token", "sops.aws-kms", "sops.azure-kv", "sops.gcp-kms":
		return true
	}
	return false
}

func fieldNames(keys map[string]bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if !keys[name] {
			name += " (empty)"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
