// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzDecode feeds payloads as they are in a Secret.
func FuzzDecode(f *testing.F) {
	for _, secret := range golden(f) {
		f.Add(secret.Data[dataKey])
	}
	f.Add([]byte(nil))
	f.Add([]byte("H4sI"))
	f.Add([]byte("H4sIAAAAAAAC/w=="))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Decode(data); err == nil {
			check(t, r)
		}
	})
}

// FuzzWithStatus feeds the JSON, which base64 and gzip keep FuzzDecode from.
func FuzzWithStatus(f *testing.F) {
	f.Add(small)
	f.Add(`{"name":"w","info":{"status":null},"INFO":{"description":"\ud800"},"manifest":"a: &a [*a]"}`)
	f.Add(`{"name":"w","\u0069nfo":{ },"manifest":"---\nkind: List\nitems:\n- {}\n","hooks":[{"manifest":"-"}]}`)
	for _, secret := range golden(f) {
		if raw, reason := unpack(secret.Data[dataKey]); reason == "" {
			f.Add(string(raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if r, err := Decode([]byte(base64.StdEncoding.EncodeToString([]byte(raw)))); err == nil {
			check(t, r)
		}
	})
}

// check holds for every record that can be decoded.
func check(t *testing.T, r *Record) {
	t.Helper()
	if _, err := r.Documents(); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("%q", err)
	}
	for _, h := range r.Hooks {
		_, _ = h.Documents() // ends, and does not panic
	}
	data, err := r.WithStatus(Failed, "edited")
	if err != nil {
		t.Fatalf("decoded, and not edited: %v", err)
	}
	edited, err := Decode(data)
	if err != nil {
		t.Fatalf("edited, and not decoded: %v", err)
	}
	if edited.Status != Failed || edited.Description != "edited" {
		t.Fatalf("edited to %q, %q", edited.Status, edited.Description)
	}
	was, _ := unpack(r.data)
	is, _ := unpack(edited.data)
	if !json.Valid(is) {
		t.Fatalf("%q became %q", was, is)
	}
	// The one edit undone, the other is all that there was.
	again, err := edited.WithStatus(Failed, "edited")
	if err != nil || string(again) != string(data) {
		t.Fatalf("edited twice the same it differs: %v", err)
	}
	edited.Status, edited.Description, edited.data = r.Status, r.Description, nil
	if a, b := *r, *edited; a.Manifest != b.Manifest || a.Name != b.Name || a.Number != b.Number || len(a.Hooks) != len(b.Hooks) || a.Chart != b.Chart {
		t.Fatalf("%q became %q", was, is)
	}
}
