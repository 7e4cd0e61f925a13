// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Pruning is what objects lose when they are written once more, because the
// version that they are stored in has fields that the version that they are
// written in has not. Without a webhook the API server drops these for good
// (apiextensions-apiserver pkg/apiserver/schema/pruning).
type Pruning struct {
	// Unknown is why that cannot be told.
	Unknown string
	// Fields are the paths that would be lost, each with the version that has it.
	Fields []string
}

// fieldSchema is what decides which fields of an object are kept.
type fieldSchema struct {
	Type       string                  `json:"type"`
	Properties map[string]*fieldSchema `json:"properties"`
	// Additional is nil where no other names than the properties are kept.
	Additional  *additionalFields `json:"additionalProperties"`
	Items       *fieldSchema      `json:"items"`
	Preserve    bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded    bool              `json:"x-kubernetes-embedded-resource"`
	IntOrString bool              `json:"x-kubernetes-int-or-string"`
}

// additionalFields are true, false, or the schema of each.
type additionalFields struct {
	allowed bool
	schema  *fieldSchema
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additionalFields) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &a.allowed) == nil {
		return nil
	}
	a.allowed, a.schema = true, &fieldSchema{}
	return json.Unmarshal(raw, a.schema)
}

func (s *fieldSchema) additional() (schema *fieldSchema, ok bool) {
	if s.Additional == nil || !s.Additional.allowed {
		return nil, false
	}
	return s.Additional.schema, true
}

// object is true for a schema that an object may have.
// A value of another type than the schema says is never dropped: it is refused.
func (s *fieldSchema) object() bool {
	return (s.Type == "object" || s.Type == "") && !s.IntOrString
}

// lost are the paths of the fields that a schema keeps and another one drops.
// Where it is nil, anything is kept.
func (s *fieldSchema) lost(to *fieldSchema, path string) []string {
	if s == nil {
		s = &fieldSchema{Preserve: true}
	}
	switch {
	case to == nil:
		return nil
	case to.Type == "array" && (s.Type == "array" || s.Type == ""):
		return s.Items.lost(to.Items, path+"[]")
	case !to.object() || !s.object():
		return nil
	}
	rest, others := to.additional()
	own, open := s.additional()
	open = open || s.Preserve
	var out []string
	names := slices.Collect(maps.Keys(s.Properties))
	for name := range to.Properties {
		if open && s.Properties[name] == nil {
			names = append(names, name) // it held anything until now
		}
	}
	slices.Sort(names)
	for _, name := range names {
		from, next := s.Properties[name], to.Properties[name]
		if from == nil {
			from = own
		}
		at := path + "." + name
		switch {
		case (path == "" || to.Embedded) && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name): // kept in any case
		case next != nil:
			out = append(out, from.lost(next, at)...)
		case others:
			out = append(out, from.lost(rest, at)...)
		case !to.Preserve:
			out = append(out, at)
		}
	}
	switch {
	case open && others:
		out = append(out, own.lost(rest, path+".*")...)
	case (open || s.Embedded && !to.Embedded) && !to.Preserve:
		out = append(out, path+".*")
	}
	return out
}

// definitionSchemas is a CRD, down to the schemas of its versions.
type definitionSchemas struct {
	Metadata fields `json:"metadata"`
	Spec     struct {
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
		Versions              []struct {
			Name   string `json:"name"`
			Schema struct {
				Fields *fieldSchema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func (c *definitionSchemas) schema(version string) *fieldSchema {
	for i := range c.Spec.Versions {
		if c.Spec.Versions[i].Name == version {
			return c.Spec.Versions[i].Schema.Fields
		}
	}
	return nil
}

// pruning compares each version that objects may be stored in with the one that
// they are written in, and then with the storage version where that is another.
func (c *definitionSchemas) pruning(stored []string, written string) *Pruning {
	p := &Pruning{}
	if c.Spec.PreserveUnknownFields {
		return p // then nothing is ever pruned
	}
	to := c.schema(written)
	for _, version := range stored {
		from := c.schema(version)
		switch {
		case version == written:
		case from == nil || to == nil:
			p.Unknown = fmt.Sprintf("spec.versions has no schema of %s and %s both", version, written)
		default:
			for _, field := range from.lost(to, "") {
				p.Fields = append(p.Fields, field+" of "+version)
			}
		}
	}
	return p
}

// schemas reads the schemas of the CRDs whose objects would have to be written
// once more, and only of these: one can be a megabyte.
func (r *apiReader) schemas(ctx context.Context) {
	for _, v := range storedVersions(r.world) {
		d := r.world.definitionNamed(v.Object.Name)
		if d == nil || d.Conversion != nil || v.State == gitIsOlder {
			continue
		}
		crd, ok, err := object[definitionSchemas](ctx, r.lister, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", d.Ref.Name)
		switch {
		case err != nil:
			d.Pruning = &Pruning{Unknown: reason(err)}
		case !ok || crd.Metadata.UID != d.UID || crd.Metadata.Generation != d.Generation:
			d.Pruning = &Pruning{Unknown: "it was changed while it was looked at: run again"}
		default:
			d.Pruning = crd.pruning(d.StoredVersions, d.readable())
		}
	}
}

func (w *World) definitionNamed(name string) *Definition {
	for _, d := range w.Definitions {
		if d.Ref.Name == name {
			return d
		}
	}
	return nil
}

// loses is why the objects of a kind cannot be written once more as they are;
// empty where they can.
func (d *Definition) loses() string {
	const few = 10
	written := d.readable()
	switch {
	case d.Conversion != nil:
		return "" // the webhook answers for what it converts
	case d.Pruning == nil:
		return fmt.Sprintf("its schemas were not compared, so it cannot be told whether writing its objects as %s would lose fields", written)
	case d.Pruning.Unknown != "":
		return fmt.Sprintf("its schemas could not be compared, so it cannot be told whether writing its objects as %s would lose fields: %s", written, d.Pruning.Unknown)
	case len(d.Pruning.Fields) == 0:
		return ""
	}
	named := d.Pruning.Fields
	more := ""
	if len(named) > few {
		named, more = named[:few], fmt.Sprintf(", and %d more", len(named)-few)
	}
	return fmt.Sprintf("nothing converts between its versions, and the schema of %s lacks fields that objects may hold: %s%s. "+
		"To write them once more would drop these for good: add them to the schema of %s, or move what they hold, and run again",
		written, strings.Join(named, ", "), more, written)
}
