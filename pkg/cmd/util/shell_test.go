// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestHelpLooksLikeKubectls(t *testing.T) {
	got := run(t, "--help")
	want := `Show tiers with kubectl tiers.

Examples:
  # Show them
  kubectl tiers

Steps:
  wait          Run it
  fail          Run it
  findings      Run it
  log           Run it
  flood         Run it
  needs         Run it
  one           Run it
  group         Hold sub-commands

Other Commands:
  completion    Show how to complete this plugin in a shell
  version       Print the version

Options:
    --expect-server='':
	The server that is meant

    -o, --output='':
	Output format. One of: (wide, json)

    --version=false:
	Print the version and exit

Usage:
  kubectl tiers [NAME...] [options]

Use "kubectl tiers <command> --help" for more information about a given command.
Use "kubectl tiers options" for a list of global command-line options (applies to all commands).
`
	if got.code != 0 || got.errOut != "" || got.out != want {
		t.Errorf("got %d, %q and\n%s\nwant\n%s", got.code, got.errOut, got.out, want)
	}
}

func TestEveryHelpFitsAScreen(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"group", "--help"}, {"group", "inner", "--help"}, {"help", "one"}} {
		got := run(t, args...)
		if lines := strings.Count(got.out, "\n"); got.code != 0 || lines < 3 || lines > 40 {
			t.Errorf("%q: exit code %d, %d lines:\n%s", args, got.code, lines, got.out)
		}
		if strings.Contains(got.out, "--kubeconfig") {
			t.Errorf("%q shows kubectl's own flags:\n%s", args, got.out)
		}
		if !strings.Contains(got.out, "--expect-server") {
			t.Errorf("%q does not show a flag that was to be exposed:\n%s", args, got.out)
		}
	}
}

func TestGroupWithoutSubCommandShowsItsHelp(t *testing.T) {
	got, help := run(t, "group"), run(t, "group", "--help")
	if got != help || !strings.Contains(got.out, "kubectl tiers group [options]") {
		t.Errorf("got %+v\nwant %+v", got, help)
	}
}

func TestOptionsListsKubectlsFlagsOnce(t *testing.T) {
	got := run(t, "options")
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("got %+v", got)
	}
	for _, flag := range []string{"context", "namespace", "kubeconfig", "as", "request-timeout", "no-color", "server"} {
		if n := strings.Count(got.out, "--"+flag+"="); n != 1 {
			t.Errorf("--%s is listed %d times, want once", flag, n)
		}
	}
}

func TestNamesOfFlags(t *testing.T) {
	root := newTestCmd(genericiooptions.NewTestIOStreamsDiscard())
	for short, long := range map[string]string{"n": "namespace", "s": "server", "o": "output"} {
		flag := root.PersistentFlags().ShorthandLookup(short)
		if flag == nil {
			flag = root.Flags().ShorthandLookup(short)
		}
		if flag == nil || flag.Name != long {
			t.Errorf("-%s is %v, want --%s as kubectl has it", short, flag, long)
		}
	}
	if flag := root.Flags().ShorthandLookup("v"); flag != nil {
		t.Errorf("-v is --%s; kubectl has it for verbosity", flag.Name)
	}
}

func TestEnum(t *testing.T) {
	e := NewEnum("error", "error", "warning")
	if e.String() != "error" {
		t.Errorf("the default is %q", e)
	}
	if err := e.Set("warning"); err != nil || e.String() != "warning" {
		t.Errorf("got %q, %v", e, err)
	}
	err := e.Set("xml")
	if err == nil || err.Error() != "choose one of: error, warning" || e.String() != "warning" {
		t.Errorf("got %q, %v", e, err)
	}
}

func TestCompletionText(t *testing.T) {
	for name, tc := range map[string]struct{ shell, binary, line, load string }{
		"bash": {
			"bash", "/home/jane/.krew/bin/kubectl-tiers",
			"\nln -s /home/jane/.krew/bin/kubectl-tiers /home/jane/.krew/bin/kubectl_complete-tiers\n",
			"source <(kubectl completion bash)",
		},
		"zsh": {
			"zsh", "/opt/my tools/kubectl-tiers",
			"\nln -s '/opt/my tools/kubectl-tiers' '/opt/my tools/kubectl_complete-tiers'\n",
			"source <(kubectl completion zsh)",
		},
		"fish":               {"fish", "/a'b/kubectl-tiers", `ln -s '/a'\''b/kubectl-tiers' `, "kubectl completion fish | source"},
		"powershell":         {"powershell", `/a'b/kubectl-tiers.exe`, "New-Item -ItemType HardLink -Path '/a''b/kubectl_complete-tiers.exe' -Target '/a''b/kubectl-tiers.exe'", "Out-String"},
		"a shell of no name": {"", "/a/kubectl-tiers", "ln -s /a/kubectl-tiers /a/kubectl_complete-tiers", "bash"},
	} {
		t.Run(name, func(t *testing.T) {
			got := completionText(tc.shell, "tiers", tc.binary)
			if !strings.Contains(got, tc.line) || !strings.Contains(got, tc.load) {
				t.Errorf("got\n%s\nwant in it\n%s\nand\n%s", got, tc.line, tc.load)
			}
			commands := 0
			for line := range strings.Lines(got) {
				if !strings.HasPrefix(line, "#") {
					commands++
				}
			}
			if commands != 1 {
				t.Errorf("it holds %d commands, want one:\n%s", commands, got)
			}
		})
	}
}

func TestCompletionTakesAShell(t *testing.T) {
	if got := run(t, "completion", "fish"); got.code != 0 || !strings.Contains(got.out, "kubectl completion fish") {
		t.Errorf("got %+v", got)
	}
	if got := run(t, "completion", "csh"); got.code != ExitUsage {
		t.Errorf("got %+v, want exit code %d", got, ExitUsage)
	}
}

// The printed line is run, and kubectl's question is then answered.
func TestCompletionLineWorks(t *testing.T) {
	cmd := plugin(t, "kubectl-tiers", "orderly", "completion", "bash")
	dir := filepath.Dir(cmd.Path)
	cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	script, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	sh := plugin(t, "unused", "orderly")
	sh.Path, sh.Args = "/bin/sh", []string{"sh", "-ec", string(script) + "\nPATH=" + dir + ":$PATH kubectl_complete-tiers gro"}
	out, err := sh.CombinedOutput()
	if err != nil || string(out) != "group\tHold sub-commands\n:4\n" {
		t.Errorf("got %v and %q", err, out)
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: prod
contexts:
- {name: prod, context: {cluster: c-prod, user: u-jane}}
- {name: dev, context: {cluster: c-dev, user: u-joe}}
clusters:
- {name: c-prod, cluster: {server: "%s"}}
- {name: c-dev, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u-jane, user: {token: a}}
- {name: u-joe, user: {token: b}}
`

func TestFlagsOfKubectlAreCompleted(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("User-Agent")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[
			{"metadata":{"name":"velero"}},{"metadata":{"name":"flux-system"}},{"metadata":{"name":"default"}}]}`)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, kubeconfig, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"contexts":             {[]string{"--context", ""}, "dev\nprod\n:4\n"},
		"contexts by prefix":   {[]string{"--context", "p"}, "prod\n:4\n"},
		"clusters":             {[]string{"--cluster", ""}, "c-dev\nc-prod\n:4\n"},
		"users":                {[]string{"group", "inner", "--user", ""}, "u-jane\nu-joe\n:4\n"},
		"namespaces":           {[]string{"-n", ""}, "default\nflux-system\nvelero\n:4\n"},
		"namespaces by prefix": {[]string{"one", "--namespace", "f"}, "flux-system\n:4\n"},
		"a server that is not": {[]string{"--context", "dev", "-n", ""}, ":4\n"},
		"no kubeconfig at all": {[]string{"--kubeconfig", file + ".no", "-n", ""}, ":4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append([]string{cobra.ShellCompRequestCmd, "--kubeconfig", file}, tc.args...)...)
			if got.code != 0 || got.out != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	if !strings.HasPrefix(asked, "kubectl-tiers/") {
		t.Errorf("the server was asked by %q, want it to begin with the binary's name", asked)
	}
}

func TestCompleteNamesIsSilentAboutErrors(t *testing.T) {
	complete := CompleteNames(func(context.Context) ([]string, error) { return nil, errors.New("no") })
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	names, directive := complete(cmd, nil, "")
	if len(names) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("got %q and %d", names, directive)
	}
	complete = CompleteNames(func(context.Context) ([]string, error) { return []string{"b", "a", "c"}, nil })
	if names, _ := complete(cmd, nil, ""); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("got %q", names)
	}
}

func TestWarningsAreSafeAndSaidOnce(t *testing.T) {
	var errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &errOut}
	s := NewShell(&cobra.Command{Use: "tiers"}, streams)
	warnings := s.warnings()
	for range 2 {
		warnings.HandleWarningHeaderWithContext(t.Context(), 299, "-", "v1beta1 is \x1b[2J deprecated")
	}
	if got, want := errOut.String(), "Warning: v1beta1 is ^[[2J deprecated\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTableOfABufferIsPlain(t *testing.T) {
	s := NewShell(&cobra.Command{Use: "tiers"}, genericiooptions.NewTestIOStreamsDiscard())
	if o := s.Table(true, true); !o.Wide || !o.NoHeaders || o.Color || o.Width != 0 {
		t.Errorf("got %+v", o)
	}
	if s.CommandPrefix() != "kubectl tiers" {
		t.Errorf("got %q", s.CommandPrefix())
	}
}
