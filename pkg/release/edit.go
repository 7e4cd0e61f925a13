// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// WithStatus returns the payload of the same revision in another status, with
// another description. Only the bytes of these two values change, so that
// whatever a newer Helm writes survives. The label "status" of the Secret has
// to follow. The record itself stays as it is.
func (r *Record) WithStatus(status Status, description string) ([]byte, error) {
	raw, err := r.editable()
	if err != nil {
		return nil, err
	}
	edited, err := edit(raw, []field{{"status", string(status)}, {"description", description}})
	if err != nil {
		return nil, fmt.Errorf("edit the record of release %s: %w", r.Name, err)
	}
	return pack(edited)
}

// Without returns the payload without the documents of the manifest that drop
// names by their index (Document.Index). Only the bytes of the manifest
// change; what stays of it stays as it was written. The error is an
// *UnreadableError, or a *DocumentError for a manifest that cannot be split.
func (r *Record) Without(drop func(index int) bool) ([]byte, error) {
	raw, err := r.editable()
	if err != nil {
		return nil, err
	}
	manifest, err := without(r.Manifest, drop)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, top := range members(raw, 0) {
		if strings.EqualFold(top.name, "manifest") {
			out.Write(raw[done:top.start])
			out.WriteString(quote(manifest))
			done = top.end
		}
	}
	out.Write(raw[done:])
	return pack(out.Bytes())
}

// editable is the JSON of the record, all of it valid.
func (r *Record) editable() ([]byte, error) {
	raw, reason := unpack(r.data)
	if reason == "" {
		_, reason = parse(raw)
	}
	if reason == "" && !json.Valid(raw) {
		reason = "it is not JSON"
	}
	if reason != "" {
		return nil, &UnreadableError{Reason: reason}
	}
	return raw, nil
}

// field is a string member of info, and its new value.
type field struct{ name, value string }

// edit sets members of the object info, in the bytes of a valid JSON object.
// Helm's decoder ignores the case of a name and lets the last of several win,
// so all that match are set.
func edit(raw []byte, fields []field) ([]byte, error) {
	var out bytes.Buffer
	done := 0 // up to here raw is copied
	found := false
	for _, top := range members(raw, 0) {
		if !strings.EqualFold(top.name, "info") || raw[top.start] != '{' {
			continue
		}
		found = true
		inner := members(raw, top.start)
		var missing []string
		for _, f := range fields {
			if !has(inner, f.name) {
				missing = append(missing, quote(f.name)+":"+quote(f.value))
			}
		}
		if len(missing) > 0 {
			out.Write(raw[done : top.start+1])
			out.WriteString(strings.Join(missing, ","))
			if len(inner) > 0 {
				out.WriteByte(',')
			}
			done = top.start + 1
		}
		for _, m := range inner {
			for _, f := range fields {
				if strings.EqualFold(m.name, f.name) {
					out.Write(raw[done:m.start])
					out.WriteString(quote(f.value))
					done = m.end
				}
			}
		}
	}
	if !found {
		return nil, errors.New("it has no info")
	}
	out.Write(raw[done:])
	return out.Bytes(), nil
}

// quote encodes a string as Helm's encoder does.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // cannot be: every string has an encoding
	}
	return string(b)
}

// member is one member of a JSON object: raw[start:end] is its value.
type member struct {
	name       string
	start, end int
}

func has(all []member, name string) bool {
	for _, m := range all {
		if strings.EqualFold(m.name, name) {
			return true
		}
	}
	return false
}

// members are those of the object that begins at or after a position. Of bytes
// that are no JSON it finds fewer, or what is none; it never leaves them.
func members(raw []byte, at int) []member {
	var all []member
	at = space(raw, at) + 1 // {
	for {
		if at = space(raw, at); at >= len(raw) {
			return all // it was cut off; whoever needs all of it has looked before
		}
		switch raw[at] {
		case '}':
			return all
		case ',':
			at++
			continue
		}
		nameEnd := skip(raw, at)
		var name string
		if json.Unmarshal(raw[at:nameEnd], &name) != nil {
			return all // cannot be: it was decoded before
		}
		start := space(raw, space(raw, nameEnd)+1) // over the colon
		if start >= len(raw) {
			return all
		}
		end := skip(raw, start)
		if end <= start {
			return all // no value begins like that
		}
		all = append(all, member{name, start, end})
		at = end
	}
}

func space(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r') {
		at++
	}
	return at
}

// skip returns where the value that begins at a position ends.
func skip(raw []byte, at int) int {
	switch raw[at] {
	case '"':
		for at++; at < len(raw) && raw[at] != '"'; at++ {
			if raw[at] == '\\' {
				at++
			}
		}
		return min(at+1, len(raw))
	case '{', '[':
		for depth := 0; at < len(raw); {
			switch raw[at] {
			case '"':
				at = skip(raw, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			at++
			if depth == 0 {
				return at
			}
		}
		return len(raw)
	}
	for ; at < len(raw) && !strings.ContainsRune(",]} \t\n\r", rune(raw[at])); at++ {
	}
	return at
}
