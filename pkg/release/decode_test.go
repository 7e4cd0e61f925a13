// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// marker stands for a secret: no error may hold it.
const marker = "MARKER-hunter2"

// golden are the Secrets that the real Helms wrote, by the names of their files.
func golden(t testing.TB) map[string]*corev1.Secret {
	t.Helper()
	files, err := filepath.Glob("testdata/records/*/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d records, %v: run go run ./test/records", len(files), err)
	}
	secrets := map[string]*corev1.Secret{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := json.Unmarshal(text, secret); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name, _ := filepath.Rel("testdata/records", file)
		secrets[filepath.ToSlash(name)] = secret
	}
	return secrets
}

// packed is a payload as Helm writes it.
func packed(t testing.TB, raw string) []byte {
	t.Helper()
	data, err := pack([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRecordsOfTheRealHelms(t *testing.T) {
	seen := map[Status]int{}
	for file, secret := range golden(t) {
		r, err := FromSecret(secret)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		// The file's name has what Helm wrote into the labels.
		major, rest, _ := strings.Cut(file, "/")
		if want := fmt.Sprintf("%s.v%d.%s.json", r.Name, r.Number, r.Status); rest != want {
			t.Errorf("%s decodes to %s", file, want)
		}
		seen[r.Status]++
		if r.Label != r.Status || r.Revision.Name != r.Name || r.Version != r.Number || r.Namespace != major || r.ReleaseNamespace != major {
			t.Errorf("%s: payload and Secret differ: %+v", file, r.Revision)
		}
		if r.UID != secret.UID || r.ResourceVersion != secret.ResourceVersion || r.Secret() != secret.Name {
			t.Errorf("%s: %+v", file, r.Revision)
		}
		if r.Chart != "demo" || r.ChartVersion != "0.1.0" || r.AppVersion != "1.0" {
			t.Errorf("%s: chart %s %s %s", file, r.Chart, r.ChartVersion, r.AppVersion)
		}
		if (r.ApplyMethod == "ssa") != (major == "helm4") {
			t.Errorf("%s: apply method %q", file, r.ApplyMethod)
		}
		gone := r.Status == Uninstalled || r.Status == Uninstalling
		if r.FirstDeployed.IsZero() || r.LastDeployed.Before(r.FirstDeployed) || r.DeletedAt.IsZero() == gone || r.Description == "" {
			t.Errorf("%s: first %s, last %s, deleted %s, %q", file, r.FirstDeployed, r.LastDeployed, r.DeletedAt, r.Description)
		}
		if d := r.LastDeployed.Sub(r.Created); d.Abs() > 10*time.Second {
			t.Errorf("%s: created %s, deployed %s", file, r.Created, r.LastDeployed)
		}
		if r.Modified.Before(r.Created) || r.Modified.Before(r.DeletedAt.Truncate(time.Second)) {
			t.Errorf("%s: created %s, uninstalled from %s, modified %s", file, r.Created, r.DeletedAt, r.Modified)
		}
		if (r.RollbackTo == 1) != (file == "helm4/back.v3.pending-rollback.json") {
			t.Errorf("%s: rolls back to %d", file, r.RollbackTo)
		}
	}
	for _, s := range []Status{Deployed, Superseded, Failed, Uninstalling, Uninstalled, PendingInstall, PendingUpgrade, PendingRollback} {
		if seen[s] < 2 {
			t.Errorf("%d records are %s, want one of each Helm", seen[s], s)
		}
	}
}

func TestHookThatRunsWhenHelmIsKilled(t *testing.T) {
	for _, file := range []string{"helm3/leaving.v1.uninstalling.json", "helm4/leaving.v1.uninstalling.json"} {
		r, err := FromSecret(golden(t)[file])
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Hooks) != 1 {
			t.Fatalf("%s: %d hooks", file, len(r.Hooks))
		}
		h := r.Hooks[0]
		if h.Name != "leaving-hook" || h.Kind != "Job" || h.Path != "demo/templates/hook.yaml" || h.Weight != 5 ||
			!h.On("pre-delete") || h.On("post-delete") || !slices.Equal(h.DeletePolicies, []string{"before-hook-creation", "hook-succeeded"}) {
			t.Errorf("%s: %+v", file, h)
		}
		if h.LastRun.Phase != "Running" || h.LastRun.StartedAt.IsZero() || !h.LastRun.CompletedAt.IsZero() {
			t.Errorf("%s: last run %+v", file, h.LastRun)
		}
	}
}

const small = `{"name":"web","info":{"status":"deployed","first_deployed":"2026-01-02T03:04:05Z","deleted":""},"version":3}`

func TestDecodeUncompressed(t *testing.T) {
	for name, data := range map[string][]byte{
		"as it is": []byte(base64.StdEncoding.EncodeToString([]byte(small))),
		"gzip":     packed(t, small),
		"in lines": []byte(base64.StdEncoding.EncodeToString([]byte(small))[:40] + "\n" + base64.StdEncoding.EncodeToString([]byte(small))[40:]),
	} {
		r, err := Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Name != "web" || r.Status != Deployed || r.Number != 3 || r.FirstDeployed.Year() != 2026 || !r.DeletedAt.IsZero() || r.Revision != (Revision{}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestUnreadable(t *testing.T) {
	plain := func(s string) []byte { return []byte(base64.StdEncoding.EncodeToString([]byte(s))) }
	whole := packed(t, small+strings.Repeat(" ", 1000))
	gz, _ := base64.StdEncoding.DecodeString(string(whole))
	damaged := slices.Clone(gz)
	damaged[len(damaged)-6] ^= 0xff
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"nothing", `its key "release" is missing or empty`, nil},
		{"not base64", "not base64, from byte 0 on", []byte("!" + marker)},
		{"base64 that ends", "it was cut off", whole[:len(whole)-3]},
		{"gzip that ends", "its gzip stream ends in the middle", []byte(base64.StdEncoding.EncodeToString(gz[:len(gz)/2]))},
		{"gzip header that ends", "its gzip stream ends in the middle", []byte(base64.StdEncoding.EncodeToString(gz[:6]))},
		{"damaged gzip", "its gzip stream is damaged", []byte(base64.StdEncoding.EncodeToString(damaged))},
		{"not JSON", "not JSON, from byte 1 on", plain(marker)},
		{"JSON that ends", "its JSON ends in the middle", plain(`{"name":"` + marker)},
		{"null", "no release", plain("null")},
		{"a list", "another type than Helm's", plain(`["` + marker + `"]`)},
		{"no name", "no release", plain(`{"info":{"status":"deployed"},"config":{"password":"` + marker + `"}}`)},
		{"no info", "no release", plain(`{"name":"web"}`)},
		{"a number too large", "its field version has another type", plain(`{"name":"web","info":{},"version":1e99}`)},
		{"a status that is none", "its field info.status has another type", plain(`{"name":"web","info":{"status":{"` + marker + `":1}}}`)},
		{"a time that is none", "one of its times", plain(`{"name":"web","info":{"deleted":"` + marker + `"}}`)},
		{"too large", "larger than 3 MiB", []byte(strings.Repeat("A", 3<<21+1))},
		{"too large once decoded", "larger than 3 MiB", []byte(strings.Repeat("A", 5<<20))},
		{"a bomb", "unpacks to more than 64 MiB", packed(t, strings.Repeat(" ", 65<<20))},
	} {
		r, err := Decode(tt.data)
		var unreadable *UnreadableError
		if !errors.As(err, &unreadable) || r != nil {
			t.Errorf("%s: %v, %v", tt.name, r, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q does not say %q", tt.name, err, tt.want)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), marker) {
			t.Errorf("%s: %q quotes the record", tt.name, err)
		}
	}
}

// A stream may have many members, so that a small Secret unpacks to a gigabyte.
func TestBombIsNotUnpacked(t *testing.T) {
	member, err := base64.StdEncoding.DecodeString(string(packed(t, strings.Repeat(" ", 1<<20))))
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(base64.StdEncoding.EncodeToString(bytes.Repeat(member, 1000)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Decode(data); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("%v", err)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 400 {
		t.Errorf("a record of %d KiB took %d MiB", len(data)>>10, took)
	}
}

func TestUnreadableSecretIsNamed(t *testing.T) {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "apps", "sh.helm.release.v1.web.v1"
	for name, want := range map[string]string{
		"sh.helm.release.v1.web.v1": "record apps/sh.helm.release.v1.web.v1 is unreadable: its key",
		"web":                       "record apps/web is unreadable: its name is not",
	} {
		secret.Name = name
		if _, err := FromSecret(secret); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// large is the payload of a chart such as those of monitoring stacks: many
// templates, a manifest to match, and text that packs as YAML does.
func large(t testing.TB) []byte {
	t.Helper()
	words := strings.Fields("apiVersion: kind: metadata: name: namespace: labels: spec: template: containers: - image: ports: protocol: TCP {{ include }} {{- end }} matchLabels: app.kubernetes.io/name: expr: sum(rate( by (instance) severity: warning annotations: summary: description: resources: limits: cpu: memory: volumeMounts: mountPath: readOnly: true")
	seed := uint32(1)
	text := func(size int) string {
		var b strings.Builder
		for b.Len() < size {
			seed = seed*1664525 + 1013904223
			fmt.Fprintf(&b, "%s %x\n", words[int(seed>>16)%len(words)], seed>>24)
		}
		return b.String()
	}
	var templates []string
	for i := range 60 {
		templates = append(templates, fmt.Sprintf(`{"name":"templates/%d.yaml","data":%q}`, i, base64.StdEncoding.EncodeToString([]byte(text(8<<10)))))
	}
	return packed(t, `{"name":"web","info":{"status":"deployed"},"chart":{"templates":[`+strings.Join(templates, ",")+
		`]},"manifest":`+quote(text(250<<10))+`,"version":1}`)
}

// 200 large releases are decoded while a command waits. Of each, what is packed
// and its manifest stay.
func TestManyLargeRecordsTakeLittle(t *testing.T) {
	data := large(t)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var records []*Record
	for range 200 {
		r, err := Decode(slices.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	held := heap() - before
	if most := int64(200 * (len(data) + len(records[0].Manifest) + 64<<10)); held > most || held > 150<<20 {
		t.Errorf("%d records of %d KiB packed hold %d MiB", len(records), len(data)>>10, held>>20)
	}
	runtime.KeepAlive(records)
}

func BenchmarkDecode(b *testing.B) {
	data := large(b)
	raw, _ := unpack(data)
	b.ReportMetric(float64(len(data)), "packed-bytes")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWithStatus(b *testing.B) {
	r, err := Decode(large(b))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.WithStatus(Failed, "edited"); err != nil {
			b.Fatal(err)
		}
	}
}
