// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPruning: which fields the API server drops when an object of one schema
// is written with another.
func TestPruning(t *testing.T) {
	object := func(properties string) string { return "{type: object, properties: {" + properties + "}}" }
	spec := func(properties string) string { return object("spec: " + object(properties)) }
	for name, tt := range map[string]struct {
		old, now string
		lost     []string
	}{
		"the same":              {spec("a: {type: string}"), spec("a: {type: string}"), nil},
		"more than before":      {spec("a: {type: string}"), spec("a: {type: string}, b: {type: string}"), nil},
		"one is gone":           {spec("a: {type: string}, b: {type: string}"), spec("a: {type: string}"), []string{".spec.b"}},
		"a whole object":        {spec("a: {type: string}"), object("status: {type: object}"), []string{".spec"}},
		"in a list":             {spec("l: {type: array, items: " + object("a: {type: string}, b: {type: string}") + "}"), spec("l: {type: array, items: " + object("a: {type: string}") + "}"), []string{".spec.l[].b"}},
		"another type":          {spec("a: " + object("b: {type: string}")), spec("a: {type: string}"), nil}, // is refused, not dropped
		"what every object has": {object("apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}"), "{type: object}", nil},
		"all is kept now":       {spec("a: {type: string}"), "{type: object, x-kubernetes-preserve-unknown-fields: true}", nil},
		"all was kept":          {"{type: object, x-kubernetes-preserve-unknown-fields: true}", spec("a: {type: string}"), []string{".spec.*", ".*"}},
		"all was kept, and is":  {"{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true}", nil},
		"all is kept, but in a field that is known now": {
			"{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {spec: {type: object, properties: {a: {type: string}}}, n: {x-kubernetes-int-or-string: true}}}",
			[]string{".spec.*"},
		},
		"other names are kept still":     {spec("a: {type: object, additionalProperties: {type: string}}"), spec("a: {type: object, additionalProperties: {type: string}}"), nil},
		"other names are kept, all":      {spec("a: {type: object, additionalProperties: {type: string}}"), spec("a: {type: object, additionalProperties: true}"), nil},
		"no other names are kept":        {spec("a: {type: object, additionalProperties: {type: string}}"), spec("a: {type: object, additionalProperties: false}"), []string{".spec.a.*"}},
		"a field is one of other names":  {spec("a: {type: object, properties: {b: {type: string}}}"), spec("a: {type: object, additionalProperties: {type: string}}"), nil},
		"other names hold less":          {spec("a: {type: object, additionalProperties: " + object("b: {type: string}") + "}"), spec("a: {type: object, additionalProperties: {type: object}}"), []string{".spec.a.*.b"}},
		"an embedded object":             {spec("a: {type: object, x-kubernetes-embedded-resource: true, properties: {kind: {type: string}}}"), spec("a: {type: object, x-kubernetes-embedded-resource: true}"), nil},
		"an embedded object is none now": {spec("a: {type: object, x-kubernetes-embedded-resource: true}"), spec("a: {type: object}"), []string{".spec.a.*"}},
	} {
		t.Run(name, func(t *testing.T) {
			var from, to fieldSchema
			if err := errors.Join(yaml.Unmarshal([]byte(tt.old), &from), yaml.Unmarshal([]byte(tt.now), &to)); err != nil {
				t.Fatal(err)
			}
			if got := from.lost(&to, ""); !slices.Equal(got, tt.lost) {
				t.Errorf("lost %q, want %q", got, tt.lost)
			}
		})
	}
}

// TestObserveSchemas: the schemas are read of the one CRD that asks for it.
func TestObserveSchemas(t *testing.T) {
	const crd = `{metadata: {name: widgets.obs.example.com, uid: u1, generation: 3}, spec: {group: obs.example.com, names: {kind: Widget, plural: widgets}, scope: Namespaced, MORE
versions: [
{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}},
{name: v1beta1, served: SERVED, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {mode: {type: string}}}}}}}]},
status: {storedVersions: [v1beta1, v1]}}`
	for name, tt := range map[string]struct {
		edit []string // of the CRD
		then []string // of the CRD when it is read alone
		gone bool
		asks bool
		says string
	}{
		"a field would be lost":      {asks: true, says: "lacks fields that objects may hold: .spec.mode of v1beta1."},
		"nothing is pruned":          {edit: []string{"MORE", "preserveUnknownFields: true,"}, asks: true},
		"no schema is known":         {edit: []string{"{type: object, properties: {spec: {type: object}}}", "null"}, asks: true, says: "no schema of v1beta1 and v1 both"},
		"it was changed meanwhile":   {then: []string{"generation: 3", "generation: 4"}, asks: true, says: "it was changed while it was looked at"},
		"it may not be looked at":    {gone: true, asks: true, says: "is forbidden to you"},
		"both are served":            {edit: []string{"SERVED", "true"}},
		"a webhook converts":         {edit: []string{"MORE", "conversion: {strategy: Webhook, webhook: {clientConfig: {url: https://x}}},"}},
		"all is stored as it should": {edit: []string{"[v1beta1, v1]}", "[v1]}"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("MORE", "", "SERVED", "false").Replace(strings.NewReplacer(append(tt.edit, "@", "@")...).Replace(crd))
			const path = pathCRDs + "/widgets.obs.example.com"
			a := quiet()
			a.lists[pathCRDs] = "[" + text + "]"
			a.objects = map[string]string{path: strings.NewReplacer(append(tt.then, "@", "@")...).Replace(text)}
			if tt.gone {
				a.forbidden = []string{path}
			}
			w, gaps := a.observe(t)
			if slices.Contains(a.asked, path) != tt.asks || len(gaps) > 0 {
				t.Errorf("gaps %v, asked %q", gaps, a.asked)
			}
			refused := ""
			for _, v := range storedVersions(w) {
				refused = v.Refused
			}
			if tt.says == "" && refused != "" || !strings.Contains(refused, tt.says) {
				t.Errorf("refused: %s", refused)
			}
		})
	}
}
