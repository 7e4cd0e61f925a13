// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// bare is a server that knows who it is, and nothing else.
func bare(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("sent %s %s", r.Method, r.URL)
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"kube-system","uid":"3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11"}}`)
		case r.URL.Path == "/api/v1/nodes":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"nodes is\nforbidden\u001b[2J"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// runInit runs init in an empty folder, and returns what it has written.
func runInit(t *testing.T, args ...string) (code int, out, stderr string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	streams, _, stdout, errs := genericiooptions.NewTestIOStreams()
	code = util.Execute(t.Context(), NewCmd, streams, append([]string{"init"}, args...)...)
	return code, stdout.String(), errs.String()
}

func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	url := bare(t)
	code, out, stderr := runInit(t, "--server", url)
	if code != util.ExitDone {
		t.Fatal(code, stderr)
	}
	for _, want := range []string{
		"Warning: this connection can prove nothing: plain http", "Warning: nodes could not be read: nodes is forbidden^[[2J\n",
		"Warning: the cluster serves no kind of Flux, so the draft rests on its identity and nodes alone\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q, but\n%s", want, stderr)
		}
	}
	if err := os.WriteFile(config.FileName, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Read(config.FileName, config.FileName); err != nil || c.Cluster.Server != url || c.Cluster.UID != "3f0c1d6e-58a1-4b0e-9c57-2d1f7a8e4b11" {
		t.Errorf("got %+v, %v\n%s", c, err, out)
	}
	if !strings.Contains(out, "# No working tree was read") || !strings.Contains(out, "# - nodes: nodes is forbidden [2J\n") {
		t.Errorf("got\n%s", out)
	}
	// The file that is there now is broken; a new draft is how to mend it.
	if err := os.WriteFile(config.FileName, []byte("clutser: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(".git", 0o700); err != nil {
		t.Fatal(err)
	}
	code, again, stderr := runInit(t, "--server", url)
	if code != util.ExitDone || strings.Contains(again, "No working tree was read") {
		t.Errorf("%d\n%s%s", code, again, stderr)
	}
	if text, err := os.ReadFile(config.FileName); err != nil || string(text) != "clutser: {}\n" {
		t.Errorf("init has changed the file: %s, %v", text, err)
	}
}

func TestInitBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	url := bare(t)
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"--path file --server " + url:               {util.ExitUsage, "error: --path file is a file: name the folder of the working tree\nSee 'kubectl standup init --help' for usage.\n"},
		"--path none --server " + url:               {util.ExitUsage, "error: --path none cannot be opened: no such file or directory\n"},
		"clusters/prod --server " + url:             {util.ExitUsage, `error: "kubectl standup init" takes no arguments, but got "clusters/prod"`},
		"--config standup.yaml --server " + url:     {util.ExitUsage, "error: --config standup.yaml: init drafts a standup.yaml and reads none"},
		"-o yaml":                                   {util.ExitUsage, "error: unknown shorthand flag: 'o' in -o\n"},
		"":                                          {util.ExitError, "names no cluster: set KUBECONFIG or pass --kubeconfig"},
		"--server http://127.0.0.1:1":               {util.ExitError, "identity cannot be read: "},
		"--expect-server https://a --server " + url: {util.ExitWrongServer, "error: "},
		"--expect-server http://127.0.0.1:2 --server " + url: {util.ExitWrongServer, "error: "},
	} {
		code, out, stderr := runInit(t, strings.Fields(args)...)
		if code != want.code || out != "" || !strings.Contains(stderr, want.says) {
			t.Errorf("init %s: exit code %d, want %d and %q\n%s%s", args, code, want.code, want.says, out, stderr)
		}
	}
}
