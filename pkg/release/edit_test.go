// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

func TestEdit(t *testing.T) {
	fields := []field{{"status", "failed"}, {"description", `by "us" & <you>`}}
	const description = `"by \"us\" \u0026 \u003cyou\u003e"`
	for _, tt := range []struct{ name, in, want string }{
		{
			"both there",
			`{"name":"w","info":{"status":"deployed","description":"ok"},"version":1}`,
			`{"name":"w","info":{"status":"failed","description":` + description + `},"version":1}`,
		},
		{
			"the other way round, with blanks and a strange order",
			"{\n \"version\" : 1e0 ,\t\"info\" :\r\n { \"description\" : \"a\\\"}b\\\\\" , \"n\" : [ { \"status\" : \"x\" } ] , \"status\" : \"deployed\" } }\n",
			"{\n \"version\" : 1e0 ,\t\"info\" :\r\n { \"description\" : " + description + " , \"n\" : [ { \"status\" : \"x\" } ] , \"status\" : \"failed\" } }\n",
		},
		{
			"no status",
			`{"info":{"description":"ok","x":1.50}}`,
			`{"info":{"status":"failed","description":` + description + `,"x":1.50}}`,
		},
		{
			"neither",
			`{"info":{"notes":"status"}}`,
			`{"info":{"status":"failed","description":` + description + `,"notes":"status"}}`,
		},
		{
			"nothing in it",
			`{"info":{ }}`,
			`{"info":{"status":"failed","description":` + description + ` }}`,
		},
		{
			"a null",
			`{"info":{"status":null,"description":null}}`,
			`{"info":{"status":"failed","description":` + description + `}}`,
		},
		{
			"the same words elsewhere",
			`{"chart":{"values":{"info":{"status":"a"},"status":"b"}},"config":{"info":{"status":"\"status\":\"c\""}},"status":"d","info":{"status":"deployed","description":"","resources":{"status":"e","info":{"status":"f"}}}}`,
			`{"chart":{"values":{"info":{"status":"a"},"status":"b"}},"config":{"info":{"status":"\"status\":\"c\""}},"status":"d","info":{"status":"failed","description":` + description + `,"resources":{"status":"e","info":{"status":"f"}}}}`,
		},
		{
			"keys with escapes, and a text with braces",
			`{"a":"}{\\","\u0069nfo":{"st\u0061tus":"deployed","description":"]}\""}}`,
			`{"a":"}{\\","\u0069nfo":{"st\u0061tus":"failed","description":` + description + `}}`,
		},
		{
			"twice, and in another case: Helm's decoder takes the last",
			`{"info":{"status":"a","description":"b","Status":"c"},"INFO":{"STATUS":"d"}}`,
			`{"info":{"status":"failed","description":` + description + `,"Status":"failed"},"INFO":{"description":` + description + `,"STATUS":"failed"}}`,
		},
		{
			"bytes that are no UTF-8",
			"{\"x\":\"\xff\xfe\",\"info\":{\"status\":\"\xff\",\"description\":\"d\"},\"y\":\"\xc3\"}",
			"{\"x\":\"\xff\xfe\",\"info\":{\"status\":\"failed\",\"description\":" + description + "},\"y\":\"\xc3\"}",
		},
	} {
		got, err := edit([]byte(tt.in), fields)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := edit([]byte(`{"chart":{"info":{}}}`), fields); err == nil {
		t.Error("edited a record without info")
	}
}

func TestWithStatusOfNoRecord(t *testing.T) {
	var unreadable *UnreadableError
	if _, err := (&Record{}).WithStatus(Failed, ""); !errors.As(err, &unreadable) {
		t.Errorf("%v", err)
	}
}

// asHelm decodes a payload as Helm 3 does (pkg/storage/driver/util.go), into its
// own types. The driver itself would bring SQL databases along.
func asHelm(t *testing.T, data []byte) (*helmrelease.Release, []byte) {
	t.Helper()
	compressed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &helmrelease.Release{}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Fatal(err)
	}
	return r, raw
}

// What Helm 3 reads of an edited record is what it read before, but for the two
// fields; and of the bytes, which hold more than Helm 3 reads, all others stay.
func TestWithStatusOfTheRealHelmsRecords(t *testing.T) {
	for file, secret := range golden(t) {
		r, err := FromSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.WithStatus(Failed, "Marked failed by \"unwedge\"")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		was, rawWas := asHelm(t, secret.Data[dataKey])
		is, raw := asHelm(t, data)
		if is.Info.Status != helmrelease.StatusFailed || is.Info.Description != "Marked failed by \"unwedge\"" {
			t.Errorf("%s: Helm reads %q, %q", file, is.Info.Status, is.Info.Description)
		}
		was.Info.Status, was.Info.Description = is.Info.Status, is.Info.Description
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s: Helm reads more changes than these two", file)
		}
		// In both Helms' order info comes before all else that may be named so.
		want := strings.Replace(string(rawWas), `"status":`+quote(string(r.Status)), `"status":"failed"`, 1)
		want = strings.Replace(want, `"description":`+quote(r.Description), `"description":"Marked failed by \"unwedge\""`, 1)
		if string(raw) != want {
			t.Errorf("%s: other bytes changed:\n got %.500s\nwant %.500s", file, raw, want)
		}
		again, err := Decode(data)
		if err != nil || again.Status != Failed || again.Manifest != r.Manifest || again.ApplyMethod != r.ApplyMethod {
			t.Errorf("%s: read back as %v, %v", file, again, err)
			continue
		}
		// Back to what it was: nothing is lost on the way.
		back, err := again.WithStatus(r.Status, r.Description)
		if err != nil {
			t.Fatal(err)
		}
		if _, raw := asHelm(t, back); !bytes.Equal(raw, rawWas) {
			t.Errorf("%s: there and back again is not the same", file)
		}
		if same, err := FromSecret(secret); err != nil || !reflect.DeepEqual(same, r) {
			t.Errorf("%s: the edit changed the record that it was asked of", file)
		}
	}
}

// Random records: an edit changes the two values and no other byte.
func TestEditIsWithoutLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		g := generator{random}
		raw := g.record()
		if !json.Valid([]byte(raw)) {
			t.Fatalf("generator: %s", raw)
		}
		status, description := g.text(), g.text()
		got, err := edit([]byte(raw), []field{{"status", status}, {"description", description}})
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		// The mark is the only thing that differs between two edits.
		one, err := edit([]byte(raw), []field{{"status", "@S"}, {"description", "@D"}})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(string(one), `"@S"`, quote(status)), `"@D"`, quote(description))
		if string(got) != want {
			t.Fatalf("%s:\n got %s\nwant %s", raw, got, want)
		}
		var was, is map[string]any
		if json.Unmarshal([]byte(raw), &was) != nil || json.Unmarshal(got, &is) != nil {
			t.Fatalf("%s became %s", raw, got)
		}
		info := was["info"].(map[string]any)
		info["status"], info["description"] = status, description
		if !reflect.DeepEqual(was, is) {
			t.Fatalf("%s became %s", raw, got)
		}
	}
}

// generator makes JSON with blanks, escapes and names that tempt an edit.
type generator struct{ *rand.Rand }

func (g generator) pick(of ...string) string { return of[g.IntN(len(of))] }
func (g generator) blank() string            { return g.pick("", "", " ", "\n", "\t \r") }

func (g generator) text() string {
	return g.pick("", "deployed", `a"b`, `c\d`, "}{][,:", "é\u2028", `"status":"x"`, "<&>", "info")
}

func (g generator) value(depth int) string {
	n := 6
	if depth == 0 {
		n = 4
	}
	switch g.IntN(n) {
	case 0:
		return g.pick("0", "-1.50", "1e3", "12345678901234567890")
	case 1:
		return g.pick("true", "false", "null")
	case 2, 3:
		return quote(g.text())
	case 4:
		return g.object(depth-1, g.pick("a", "status", "x"), g.pick("info", "description", "y"))
	}
	return "[" + g.blank() + g.value(depth-1) + g.blank() + "," + g.value(depth-1) + "]"
}

func (g generator) object(depth int, names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, g.blank()+quote(name)+g.blank()+":"+g.blank()+g.value(depth)+g.blank())
	}
	return "{" + strings.Join(all, ",") + g.blank() + "}"
}

func (g generator) record() string {
	inner := [][]string{nil, {"status"}, {"description", "notes"}, {"description", "status"}, {"x", "status", "y", "description", "z"}}
	info := `"info"` + g.blank() + ":" + g.blank() + g.object(2, inner[g.IntN(len(inner))]...)
	return g.blank() + "{" + g.blank() + `"chart":` + g.value(3) + "," + info + g.blank() + "," + `"status":` + g.value(1) + "}" + g.blank()
}
