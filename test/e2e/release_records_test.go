// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// keptCases are records that are edited, of which every other byte survives.
func keptCases() []releaseCase {
	var cases []releaseCase
	for _, major := range []int{3, 4} {
		cases = append(cases, releaseCase{fmt.Sprintf("uninstalling, plain: keep, Helm %d", major), func(t *testing.T, s *releaseScene) {
			s.helm(t, major, "install", "web", s.chart(), "--set", "hook=pre-delete,message=a secret")
			s.remember(t)
			s.killed(t, major, 1, "uninstalling", "uninstall", "web")
		}, func(t *testing.T, s *releaseScene) { mendRecord(t, s, major) }})
	}
	return cases
}

// mendRecord compares the record with its backup, and lets Helm read it.
func mendRecord(t *testing.T, s *releaseScene, major int) {
	mark := s.c.Mark()
	v, o := s.judged(t, 0, wedge.ReleaseUninstalling, s.record(1), old, "--uninstalling=keep", "--confirm-destructive")
	wantSteps(t, v, "mark-failed! v1")
	s.did(t, mark, "patch secrets/v1")
	if strings.Contains(o.stdout+o.stderr, "a secret") {
		t.Errorf("%s\nsays the values of the release", o)
	}
	file := v.Actions[0].Backup
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Fatalf("%v, %v", info, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := &corev1.Secret{}
	if err := yaml.UnmarshalStrict(text, before); err != nil {
		t.Fatal(err)
	}
	after := s.secret(t, 1)
	was, is := payload(t, before.Data["release"]), payload(t, after.Data["release"])
	if after.Labels["status"] != "failed" || before.Labels["status"] != "uninstalling" {
		t.Errorf("labels %v, were %v", after.Labels, before.Labels)
	}
	// But for the two values, not a byte is another one.
	then, now := infoOf(t, was), infoOf(t, is)
	if now["status"] != "failed" || !strings.HasPrefix(now["description"].(string), "Marked failed by kubectl unwedge") {
		t.Errorf("info is %v", now)
	}
	for _, field := range []string{"status", "description"} {
		is = replaceOnce(t, is, jsonOf(t, field, now[field]), jsonOf(t, field, then[field]))
	}
	if !bytes.Equal(was, is) {
		t.Errorf("the record was\n%s\nand but for the two values it is\n%s", was, is)
	}
	if major == 4 && (!bytes.Contains(was, []byte(`"apply_method":"ssa"`)) || !bytes.Contains(was, []byte(`"modtime":`))) {
		t.Error("the record has nothing that only Helm 4 writes, so this proves nothing")
	}
	s.readable(t, major)
	s.helm(t, major, "upgrade", "web", s.chart())
	s.kept(t)
}

// readable lets both Helms, as far as they know such records, read it.
func (s *releaseScene) readable(t *testing.T, major int) {
	t.Helper()
	for ; major <= 4; major++ {
		status := s.helm(t, major, "status", "web", "-o", "json")
		var seen struct {
			Info struct{ Status, Description string }
		}
		if err := json.Unmarshal([]byte(status), &seen); err != nil || seen.Info.Status != "failed" || !strings.HasPrefix(seen.Info.Description, "Marked failed") {
			t.Errorf("Helm %d reads %+v, %v", major, seen, err)
		}
		if out := s.helm(t, major, "history", "web"); !strings.Contains(out, "failed") {
			t.Errorf("Helm %d: %s", major, out)
		}
		if out := s.helm(t, major, "get", "values", "web"); !strings.Contains(out, "message: a secret") {
			t.Errorf("Helm %d: %s", major, out)
		}
	}
}

func (s *releaseScene) secret(t *testing.T, revision int) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: recordName("web", revision)}}
	if err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// payload is the JSON of a record.
func payload(t *testing.T, data []byte) []byte {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func infoOf(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var p struct{ Info map[string]any }
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p.Info
}

func jsonOf(t *testing.T, name string, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "%q:%s", name, raw)
}

func replaceOnce(t *testing.T, raw, from, to []byte) []byte {
	t.Helper()
	if bytes.Count(raw, from) != 1 {
		t.Fatalf("%s is %d times in the record", from, bytes.Count(raw, from))
	}
	return bytes.Replace(raw, from, to, 1)
}

// rewrite gives a record another status, payload and label.
func (s *releaseScene) rewrite(t *testing.T, revision int, status release.Status) {
	t.Helper()
	secret := s.secret(t, revision)
	record, err := release.FromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	data, err := record.WithStatus(status, "rewritten by the test")
	if err != nil {
		t.Fatal(err)
	}
	s.store(t, secret, data, string(status))
}

func (s *releaseScene) store(t *testing.T, secret *corev1.Secret, data []byte, label string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]any{"release": data}, "metadata": map[string]any{"labels": map[string]any{"status": label}}})
	if err != nil {
		t.Fatal(err)
	}
	s.merge(t, secret, string(patch))
}

// unreadableCases are records that were cut off, or never were any.
func unreadableCases() []releaseCase {
	var cases []releaseCase
	for _, tt := range []struct {
		name, says string
		damage     func(*testing.T, []byte) []byte
	}{
		{"cut off", "it was cut off", func(_ *testing.T, data []byte) []byte { return data[:len(data)/2/4*4] }},
		{"empty", "is missing or empty", func(*testing.T, []byte) []byte { return []byte{} }},
		{"no base64", "it is not base64", func(*testing.T, []byte) []byte { return []byte("\x1b[2J{}") }},
		{"a gzip bomb", "it unpacks to more than 64 MiB", bomb},
	} {
		cases = append(cases, releaseCase{"unreadable record, " + tt.name, func(t *testing.T, s *releaseScene) {
			s.helm(t, 4, "install", "web", s.chart())
			s.helm(t, 4, "upgrade", "web", s.chart())
			s.remember(t)
			secret := s.secret(t, 2)
			s.store(t, secret, tt.damage(t, secret.Data["release"]), "deployed")
		}, func(t *testing.T, s *releaseScene) { mendUnreadable(t, s, tt.says) }})
	}
	return append(cases, releaseCase{"unreadable record of a HelmRelease", func(t *testing.T, s *releaseScene) {
		s.release(t)
		s.patch(t, `{"spec":{"values":{"message":"again"}}}`)
		s.untilReady(t, s.hr())
		s.remember(t)
		secret := s.secret(t, 2)
		s.store(t, secret, secret.Data["release"][:100], "deployed")
		s.nudge(t)
		hr := s.hr()
		if err := s.c.Until(t.Context(), hr, func() bool {
			for _, c := range hr.Status.Conditions {
				if c.Type == "Ready" && c.Status != metav1.ConditionTrue {
					return true
				}
			}
			return false
		}); err != nil {
			t.Fatal(err)
		}
	}, mendUnreadableManaged})
}

// bomb unpacks to more than any record of Helm can.
func bomb(t *testing.T, _ []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.CopyN(w, zeros{}, 65<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func mendUnreadable(t *testing.T, s *releaseScene, says string) {
	mark := s.c.Mark()
	v, o := s.judged(t, 6, wedge.ReleaseUnreadable, s.record(2), "--apply")
	wantSteps(t, v, "delete! v2")
	mentions(t, v, says, "alone; the backup keeps its bytes")
	if strings.Contains(o.stdout+o.stderr, "\x1b") {
		t.Errorf("%s\nthat is an escape code", o)
	}
	s.did(t, mark)
	damaged := s.secret(t, 2)
	v, _ = s.judged(t, 0, wedge.ReleaseUnreadable, s.record(2), "--confirm-destructive")
	s.did(t, mark, "delete secrets/v2")
	text, err := os.ReadFile(v.Actions[0].Backup)
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.Secret{}
	if err := yaml.UnmarshalStrict(text, kept); err != nil || !reflect.DeepEqual(kept.Data, damaged.Data) || kept.Type != damaged.Type {
		t.Errorf("the backup is not what was deleted: %v", err)
	}
	s.healthy(t, s.record(1))
	s.helm(t, 4, "upgrade", "web", s.chart())
	s.kept(t)
}

func mendUnreadableManaged(t *testing.T, s *releaseScene) {
	mark := s.c.Mark()
	v, _ := s.judged(t, 0, wedge.ReleaseUnreadable, s.tier(), "--confirm-destructive")
	wantSteps(t, v, "suspend web, delete! v2, resume web, wait web")
	s.did(t, mark, "patch helmreleases/web", "delete secrets/v2", "patch helmreleases/web")
	s.untilReady(t, s.hr())
	s.kept(t)
	s.notOurs(t)
	s.healthy(t, s.tier())
}
