// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// maxPacked bounds what is unpacked: three times what a Secret can hold.
	maxPacked = 3 << 20
	// maxUnpacked stops a payload that was made to fill the memory.
	maxUnpacked = 64 << 20
)

// UnreadableError is a record that cannot be decoded; Helm cannot either. It
// never quotes the record, which holds the release's values.
type UnreadableError struct {
	// Secret is namespace/name; empty when only bytes were decoded.
	Secret string
	// Reason says what is wrong, as the end of a sentence.
	Reason string
}

func (e *UnreadableError) Error() string {
	if e.Secret == "" {
		return "record of a release is unreadable: " + e.Reason
	}
	return "record " + e.Secret + " is unreadable: " + e.Reason
}

// Decode decodes a record's payload: the value of the key "release" of its
// Secret. The error is an *UnreadableError.
func Decode(data []byte) (*Record, error) {
	record, err := decode(data)
	if err != nil {
		return nil, err
	}
	return record, nil
}

// payload is what is decoded of a record. The chart's templates and files, most
// of it, and the values, which are secret, are passed over.
type payload struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Manifest  string `json:"manifest"`
	Info      *struct {
		Status        Status  `json:"status"`
		Description   string  `json:"description"`
		FirstDeployed instant `json:"first_deployed"`
		LastDeployed  instant `json:"last_deployed"`
		Deleted       instant `json:"deleted"`
		RollbackTo    int     `json:"rollback_revision"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Name       string `json:"name"`
			Version    string `json:"version"`
			AppVersion string `json:"appVersion"`
		} `json:"metadata"`
	} `json:"chart"`
	Hooks []struct {
		Name           string   `json:"name"`
		Kind           string   `json:"kind"`
		Path           string   `json:"path"`
		Manifest       string   `json:"manifest"`
		Events         []string `json:"events"`
		Weight         int      `json:"weight"`
		DeletePolicies []string `json:"delete_policies"`
		LastRun        struct {
			StartedAt   instant `json:"started_at"`
			CompletedAt instant `json:"completed_at"`
			Phase       string  `json:"phase"`
		} `json:"last_run"`
	} `json:"hooks"`
	ApplyMethod string `json:"apply_method"`
}

// instant is a time that may be "" or null, as both Helms write one that is not
// set (helm.sh/helm/v3/pkg/time).
type instant struct{ time.Time }

func (t *instant) UnmarshalJSON(b []byte) error {
	if string(b) == `""` || string(b) == "null" {
		return nil
	}
	return t.Time.UnmarshalJSON(b)
}

func decode(data []byte) (*Record, *UnreadableError) {
	raw, reason := unpack(data)
	if reason != "" {
		return nil, &UnreadableError{Reason: reason}
	}
	p, reason := parse(raw)
	if reason != "" {
		return nil, &UnreadableError{Reason: reason}
	}
	r := &Record{
		Status: p.Info.Status, Description: p.Info.Description,
		Name: p.Name, ReleaseNamespace: p.Namespace, Number: p.Version,
		Chart: p.Chart.Metadata.Name, ChartVersion: p.Chart.Metadata.Version, AppVersion: p.Chart.Metadata.AppVersion,
		FirstDeployed: p.Info.FirstDeployed.Time, LastDeployed: p.Info.LastDeployed.Time, DeletedAt: p.Info.Deleted.Time,
		Manifest: p.Manifest, ApplyMethod: p.ApplyMethod, RollbackTo: p.Info.RollbackTo,
		data: data,
	}
	for _, h := range p.Hooks {
		r.Hooks = append(r.Hooks, Hook{
			Name: h.Name, Kind: h.Kind, Path: h.Path, Manifest: h.Manifest,
			Events: h.Events, Weight: h.Weight, DeletePolicies: h.DeletePolicies,
			LastRun: HookRun{h.LastRun.StartedAt.Time, h.LastRun.CompletedAt.Time, h.LastRun.Phase},
		})
	}
	return r, nil
}

// unpack returns the JSON of a payload, or why there is none.
func unpack(data []byte) (raw []byte, reason string) {
	if len(data) == 0 {
		return nil, `its key "release" is missing or empty`
	}
	tooLarge := fmt.Sprintf("it is larger than %d MiB", maxPacked>>20)
	if len(data) > 2*maxPacked {
		return nil, tooLarge // whatever it decodes to
	}
	packed := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(packed, data)
	if err != nil {
		return nil, base64Reason(data, err)
	}
	packed = packed[:n]
	if len(packed) > maxPacked {
		return nil, tooLarge
	}
	// Helm reads what is not compressed as it is: records were not, once.
	if len(packed) <= 3 || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		return packed, ""
	}
	return gunzip(packed)
}

func base64Reason(data []byte, err error) string {
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) && int64(corrupt) >= int64(len(data))-4 {
		return fmt.Sprintf("its base64 ends in the middle, after %d bytes: it was cut off", len(data))
	}
	return fmt.Sprintf("it is not base64, from byte %d on", int64(corrupt))
}

func gunzip(packed []byte) (raw []byte, reason string) {
	unpacker, err := gzip.NewReader(bytes.NewReader(packed))
	var out bytes.Buffer
	if err == nil {
		// The trailer tells the size, which spares a large record to be copied
		// as the buffer grows; a lie about it costs no more than what is packed.
		size := binarySize(packed)
		out.Grow(min(size, maxUnpacked, 64*len(packed)) + bytes.MinRead)
		_, err = io.Copy(&out, io.LimitReader(unpacker, maxUnpacked+1))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, fmt.Sprintf("its gzip stream ends in the middle, after %d bytes: it was cut off", len(packed))
	case err != nil:
		return nil, "its gzip stream is damaged"
	case out.Len() > maxUnpacked:
		return nil, fmt.Sprintf("it unpacks to more than %d MiB", maxUnpacked>>20)
	}
	return out.Bytes(), ""
}

// binarySize is the size that the trailer of a gzip stream gives.
func binarySize(packed []byte) int {
	t := packed[len(packed)-4:]
	return int(t[0]) | int(t[1])<<8 | int(t[2])<<16 | int(t[3]&0x7f)<<24
}

// parse decodes the JSON of a record. A reason is put into words of our own,
// since encoding/json quotes what it stumbles over.
func parse(raw []byte) (p *payload, reason string) {
	p, err := pick(raw)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && strings.Contains(syntax.Error(), "unexpected end"):
		return nil, fmt.Sprintf("its JSON ends in the middle, after %d bytes: it was cut off", len(raw))
	case errors.As(err, &syntax):
		return nil, fmt.Sprintf("it is not JSON, from byte %d on", syntax.Offset)
	case errors.As(err, &mistyped):
		return nil, fmt.Sprintf("its field %s has another type than Helm's", mistyped.Field)
	case err != nil:
		return nil, "one of its times is not RFC 3339"
	case p.Name == "" || p.Info == nil:
		return nil, "it is JSON but no release: no name or no info"
	}
	return p, ""
}

// pick decodes what a payload needs of a record, and only looks over the rest:
// a chart can be megabytes.
func pick(raw []byte) (*payload, error) {
	p := &payload{}
	if at := space(raw, 0); at >= len(raw) || raw[at] != '{' || raw[len(raw)-1] != '}' {
		return p, json.Unmarshal(raw, p) // which says what is wrong
	}
	into := map[string]any{
		"name": &p.Name, "namespace": &p.Namespace, "version": &p.Version, "manifest": &p.Manifest,
		"info": &p.Info, "hooks": &p.Hooks, "apply_method": &p.ApplyMethod,
	}
	for _, m := range members(raw, 0) {
		name := strings.ToLower(m.name) // as encoding/json does, and so Helm
		if name == "chart" && raw[m.start] == '{' {
			for _, c := range members(raw, m.start) {
				if strings.EqualFold(c.name, "metadata") {
					if err := json.Unmarshal(raw[c.start:c.end], &p.Chart.Metadata); err != nil {
						return nil, err
					}
				}
			}
		}
		if field := into[name]; field != nil {
			if err := json.Unmarshal(raw[m.start:m.end], field); err != nil {
				return nil, named(err, name)
			}
		}
	}
	// Most records are deployed, and those that were not damaged. To look for an
	// error in the templates of each takes as long as all the rest.
	if p.Info != nil && (p.Info.Status == Deployed || p.Info.Status == Superseded) || json.Valid(raw) {
		return p, nil
	}
	return nil, json.Unmarshal(raw, &payload{})
}

// named says in which member of the record a value has the wrong type.
func named(err error, member string) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		mistyped.Field = strings.TrimSuffix(member+"."+mistyped.Field, ".")
	}
	return err
}

// pack encodes JSON as Helm does (pkg/storage/driver/util.go, encodeRelease).
func pack(raw []byte) ([]byte, error) {
	var packed bytes.Buffer
	packer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := packer.Write(raw); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), nil
}
