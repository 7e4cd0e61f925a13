// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestExecute(t *testing.T) {
	for name, tc := range map[string]struct {
		args   string
		code   int
		out    string
		errOut string
	}{
		"done":                       {"apps platform -o json", 0, `shown ["apps" "platform"] as "json"` + "\n", ""},
		"an error of ours":           {"fail", 1, "", "error: kustomization apps: boom\n"},
		"a code whose report stands": {"findings", 3, "", ""},
		"an unknown flag": {
			"fail --wiat", 2, "",
			"error: unknown flag: --wiat\nSee 'kubectl tiers fail --help' for usage.\n",
		},
		"a flag's value that is not allowed": {
			"-o xml", 2, "",
			"error: invalid argument \"xml\" for \"-o, --output\" flag: choose one of: wide, json\nSee 'kubectl tiers --help' for usage.\n",
		},
		"an argument too few": {
			"one", 2, "",
			"error: accepts 1 arg(s), received 0\nSee 'kubectl tiers one --help' for usage.\n",
		},
		"an argument that nothing reads": {
			"fail apps", 2, "",
			"error: \"kubectl tiers fail\" takes no arguments, but got \"apps\"\nSee 'kubectl tiers fail --help' for usage.\n",
		},
		"a required flag": {
			"needs", 2, "",
			"error: required flag(s) \"file\" not set\nSee 'kubectl tiers needs --help' for usage.\n",
		},
		"an unknown sub-command": {
			"group iner", 2, "",
			"error: unknown command \"iner\" for \"kubectl tiers group\": did you mean inner?\nSee 'kubectl tiers group --help' for usage.\n",
		},
		"a persistent flag before the step": {"--expect-server a group inner", 0, "a\n", ""},
		"a persistent flag after the step":  {"group inner --expect-server b", 0, "b\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, strings.Fields(tc.args)...)
			if want := (result{tc.code, tc.out, tc.errOut}); got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestInterruptedWinsOverWhatItCaused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: &errOut}
	if code := Execute(ctx, newTestCmd, streams, "fail"); code != ExitInterrupted {
		t.Errorf("got %d, want %d", code, ExitInterrupted)
	}
	if code := Execute(ctx, newTestCmd, streams, "findings"); code != ExitNotReady {
		t.Errorf("a report that was finished: got %d, want %d", code, ExitNotReady)
	}
}

// plugin starts this binary as the plugin, called by that name.
func plugin(t *testing.T, name, mode string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), link, args...)
	cmd.Env = append(os.Environ(), asPlugin+"="+mode)
	return cmd
}

func TestFirstSignalEndsInOrderAndTheSecondAtOnce(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := plugin(t, "kubectl-tiers", "orderly", "wait")
		_, lines := start(t, cmd)
		expectLine(t, lines, "waiting")
		send(t, cmd, signal)
		expectLine(t, lines, "stopping")
		if code := exitCode(t, cmd); code != ExitInterrupted {
			t.Errorf("%s: exit code %d, want %d", signal, code, ExitInterrupted)
		}

		cmd = plugin(t, "kubectl-tiers", "stubborn", "wait")
		_, lines = start(t, cmd)
		expectLine(t, lines, "waiting")
		send(t, cmd, signal)
		expectLine(t, lines, "stopping")
		send(t, cmd, signal)
		exitCode(t, cmd)
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != signal {
			t.Errorf("%s: ended by %v, want it killed by the second one", signal, cmd.ProcessState)
		}
	}
}

func TestInterruptedSaysSo(t *testing.T) {
	cmd := plugin(t, "kubectl-tiers", "orderly", "wait")
	errOut, lines := start(t, cmd)
	expectLine(t, lines, "waiting")
	send(t, cmd, os.Interrupt)
	expectLine(t, lines, "stopping")
	exitCode(t, cmd)
	if !strings.HasPrefix(errOut.String(), "error: interrupted") || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("it said %q", errOut)
	}
}

func TestReaderThatWentAway(t *testing.T) {
	cmd := plugin(t, "kubectl-tiers", "orderly", "flood")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended with 0, as if all had been read")
	}
	if errOut.Len() > 0 {
		t.Errorf("it said %q", &errOut)
	}
}

func TestLibrariesKeepQuiet(t *testing.T) {
	cmd := plugin(t, "kubectl-tiers", "orderly", "log")
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("got %v and %q, want nothing", err, out)
	}
}

func TestNameThatItIsCalledBy(t *testing.T) {
	for name, tc := range map[string]struct {
		binary string
		args   []string
		want   string
	}{
		"kubectl asks for completions":  {"kubectl_complete-tiers", []string{"one", ""}, ":"},
		"of a flag's value":             {"kubectl_complete-tiers", []string{"-o", ""}, "wide\njson\n:4\n"},
		"on Windows":                    {"kubectl_complete-tiers.exe", []string{"-o", ""}, "wide\njson\n:4\n"},
		"of a sub-command":              {"kubectl_complete-tiers", []string{"find"}, "findings\tRun it\n:4\n"},
		"flux runs it as its plugin":    {"flux-tiers", []string{"version"}, "flux tiers version "},
		"and has its name in the help":  {"flux-tiers", []string{"--help"}, "Show tiers with flux tiers."},
		"kubectl runs it as its plugin": {"kubectl-tiers", []string{"version"}, "kubectl tiers version "},
		"the flag is the same":          {"kubectl-tiers", []string{"--version"}, "kubectl tiers version "},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := plugin(t, tc.binary, "orderly", tc.args...)
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if err != nil || errOut.Len() > 0 {
				t.Fatalf("%v: %s", err, &errOut)
			}
			if !strings.HasPrefix(string(out), tc.want) {
				t.Errorf("got %q, want it to begin with %q", out, tc.want)
			}
		})
	}
}

func start(t *testing.T, cmd *exec.Cmd) (errOut *bytes.Buffer, lines *bufio.Reader) {
	t.Helper()
	errOut = &bytes.Buffer{}
	cmd.Stderr = errOut
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return errOut, bufio.NewReader(out)
}

func expectLine(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func send(t *testing.T, cmd *exec.Cmd, signal os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}
