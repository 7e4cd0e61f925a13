// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	const a, b, uid, uid2 = "https://a.example.org:6443", "https://b.example.org:6443", "u-1", "u-2"
	for name, tt := range map[string]struct {
		flags, file Expectation
		want        Expectation
		wantCode    int
	}{
		"nothing":            {},
		"flags":              {flags: Expectation{Server: a}, want: Expectation{Server: a, Origin: "flags"}},
		"file":               {file: Expectation{Server: a, UID: uid}, want: Expectation{Server: a, UID: uid, Origin: "file"}},
		"both agree":         {flags: Expectation{Server: "HTTPS://A.example.org.:6443/"}, file: Expectation{Server: a, UID: uid}, want: Expectation{Server: a, UID: uid, Origin: "flags and file"}},
		"uid beside server":  {flags: Expectation{UID: uid}, file: Expectation{Server: a}, want: Expectation{Server: a, UID: uid, Origin: "flags and file"}},
		"servers differ":     {flags: Expectation{Server: b}, file: Expectation{Server: a}, wantCode: 5},
		"uids differ":        {flags: Expectation{Server: a, UID: uid2}, file: Expectation{Server: a, UID: uid}, wantCode: 5},
		"uid differs alone":  {flags: Expectation{UID: uid2}, file: Expectation{Server: a, UID: uid}, wantCode: 5},
		"uid alone":          {flags: Expectation{UID: uid}, wantCode: 2},
		"uid alone in file":  {file: Expectation{UID: uid}, wantCode: 2},
		"malformed":          {flags: Expectation{Server: "a.example.org"}, wantCode: 2},
		"malformed in file":  {flags: Expectation{Server: a}, file: Expectation{Server: "https://h?x"}, wantCode: 2},
		"uid is no uid":      {flags: Expectation{Server: a, UID: "a b"}, wantCode: 2},
		"uid with an escape": {flags: Expectation{Server: a, UID: "\x1b[31m"}, wantCode: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !tt.flags.Empty() {
				tt.flags.Origin = "flags"
			}
			if !tt.file.Empty() {
				tt.file.Origin = "file"
			}
			got, err := Merge(tt.flags, tt.file)
			if code := exitCode(err); code != tt.wantCode || got != tt.want {
				t.Errorf("%+v, %v (exit %d); want %+v (exit %d)", got, err, code, tt.want, tt.wantCode)
			}
		})
	}
}

func TestExpectFlags(t *testing.T) {
	t.Parallel()
	var f ExpectFlags
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	f.AddFlags(fs)
	if got := f.Expectation(); !got.Empty() || got.Origin != "" {
		t.Errorf("no flags expect %+v", got)
	}
	if err := fs.Parse([]string{"--expect-server", "https://h", "--expect-uid=u"}); err != nil {
		t.Fatal(err)
	}
	want := Expectation{Server: "https://h", UID: "u", Origin: "--expect-server, --expect-uid"}
	if got := f.Expectation(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// exitCode is how the shells find it.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return 1
}
