// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

const decryptAnnotation = flux.KustomizeGroup + "/decrypt"

func sopsWithoutDecryption() Rule {
	return Rule{
		ID: "CS007", Name: "sops-without-decryption", Severity: finding.Error,
		Title: "A tier without spec.decryption holds a Secret that SOPS encrypted, so that Flux applies nothing of it.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for i := range s.World.Tiers {
				if f := &s.World.Tiers[i]; f.Result != nil && f.Result.Rejected != nil {
					all = append(all, l.rejected(f))
				}
			}
			return all
		},
	}
}

func (l *look) rejected(f *build.Followed) finding.Finding {
	var secrets []flux.Ref
	for _, o := range f.Result.Objects {
		if refused(o) {
			secrets = append(secrets, o.Ref())
		}
	}
	object := f.Tier
	if len(secrets) > 0 {
		object = secrets[0]
	}
	tail := ""
	if n := l.below(f.Tier); n > 0 {
		tail = fmt.Sprintf(", and the %s below it %s down", finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
	}
	r := l.report("CS007", finding.Error, f.Tier, object, fmt.Sprintf(
		"%s holds %s, which SOPS encrypted, and has no spec.decryption: Flux applies nothing of the tier, no retry heals it%s",
		l.name(f.Tier), finding.Some(refs(secrets)), tail))
	for _, s := range secrets {
		r.Causes = append(r.Causes, l.place(f.Tier, s)+" holds values that SOPS encrypted")
	}
	r.Causes = append(r.Causes, l.place(f.Tier, f.Tier)+" has no spec.decryption; that of its parent is not inherited")
	r.Fix = "Say how it is decrypted, with the Secret that holds your key, in " + addTo(l, f.Tier, specYAML{Decryption: l.decryption()})
	return r
}

// refused is true for what the controller will not apply: it looks at Secrets
// of v1 alone.
func refused(o build.Object) bool {
	_, sops := o.Object["sops"]
	return sops && o.GetKind() == "Secret" && o.GetAPIVersion() == "v1" && !decryptDisabled(o)
}

func decryptDisabled(o build.Object) bool {
	return strings.EqualFold(o.GetAnnotations()[decryptAnnotation], "disabled")
}

// decryption is what other tiers say.
func (l *look) decryption() *decryptionYAML {
	d := &decryptionYAML{Provider: "sops", SecretRef: &nameYAML{Name: "sops-age"}}
	for _, t := range l.World.Tiers {
		its := l.spec(t.Tier).Decryption
		if its == nil {
			continue
		}
		d.Provider, d.SecretRef = its.Provider, nil
		if its.SecretRef != nil {
			d.SecretRef = &nameYAML{Name: its.SecretRef.Name}
		}
		break
	}
	return d
}

func ciphertext() Rule {
	return Rule{
		ID: "CS008", Name: "ciphertext", Severity: finding.Error,
		Title: "A tier ships values that SOPS encrypted as they are.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for i := range s.World.Tiers {
				f := &s.World.Tiers[i]
				if f.Result == nil || f.Result.Rejected != nil {
					continue // it ships nothing
				}
				var shipped, wanted []build.Object
				for _, o := range l.objects(f) {
					switch {
					case !o.Encrypted || l.decrypts(f.Tier) && !decryptDisabled(o) || decryptsItself(o):
					case decryptDisabled(o):
						wanted = append(wanted, o)
					default:
						shipped = append(shipped, o)
					}
				}
				all = append(all, l.shipped(f, finding.Error, shipped)...)
				// Somebody has asked for it.
				all = append(all, l.shipped(f, finding.Warning, wanted)...)
			}
			return all
		},
	}
}

func (l *look) decrypts(tier flux.Ref) bool {
	d := l.spec(tier).Decryption
	return d != nil && d.Provider != ""
}

// decryptsItself is true for the kinds of operators that decrypt in the
// cluster: SopsSecret of several groups.
func decryptsItself(o build.Object) bool {
	return strings.Contains(strings.ToLower(o.GetKind()+o.GroupVersionKind().Group), "sops")
}

func (l *look) shipped(f *build.Followed, severity finding.Severity, objects []build.Object) []finding.Finding {
	if len(objects) == 0 {
		return nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Ref().String())
	}
	why := "the tier has no spec.decryption, and of what is encrypted Flux refuses only Secrets with a sops field"
	fix := "Say how they are decrypted, with the Secret that holds your key, in " + addTo(l, f.Tier, specYAML{Decryption: l.decryption()})
	if severity == finding.Warning {
		why = "annotation " + decryptAnnotation + ": disabled says so"
		fix = fmt.Sprintf("Take the annotation off %s, unless something in the cluster decrypts it.", finding.Some(names))
	}
	end := "the tier is Ready, and what reads them fails"
	if objects[0].GroupVersionKind().Group != "" && strings.Contains(objects[0].GroupVersionKind().Group, ".") {
		end = "what reads them fails, where the API server does not refuse the field sops"
	}
	r := l.report("CS008", severity, f.Tier, objects[0].Ref(), fmt.Sprintf(
		"%s applies %s with the ciphertext of SOPS instead of %s values, since %s: %s",
		l.name(f.Tier), finding.Some(names), finding.Verb(len(names), "its", "their"), why, end))
	for _, o := range objects {
		r.Causes = append(r.Causes, l.place(f.Tier, o.Ref())+" holds values that SOPS encrypted"+encryptedFields(o.Unstructured))
	}
	r.Fix = fix
	return []finding.Finding{r}
}

// encryptedFields names the fields, never what they hold.
func encryptedFields(o *unstructured.Unstructured) string {
	var fields []string
	for _, top := range []string{"data", "stringData", "spec"} {
		m, _, _ := unstructured.NestedMap(o.Object, top)
		for name, v := range m {
			if text, ok := v.(string); ok && strings.HasPrefix(text, "ENC[") {
				fields = append(fields, top+"."+name)
			}
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return ": " + finding.Some(sorted(fields))
}
