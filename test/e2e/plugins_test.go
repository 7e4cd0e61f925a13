// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/test/cluster"
	"github.com/kubestandup/kubestandup/test/cluster/programs"
)

// patience ends a command that hangs, so that the test fails with its output.
const patience = 10 * time.Minute

// pluginDir is where the plugins are built, and all that is on a shell's PATH.
var pluginDir string

func TestMain(m *testing.M) {
	// A shell lets what it starts in the background ignore SIGINT, and with it all
	// that this starts. What is handled here is not ignored there.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	var err error
	if pluginDir, err = os.MkdirTemp("", "kubestandup-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(pluginDir) // a temporary folder
	os.Exit(code)
}

// plugins builds the three plugins once, as a user's download has them, and
// puts kubectl beside them.
var plugins = sync.OnceValue(func() error {
	set, err := programs.Find()
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", pluginDir+string(filepath.Separator),
		"../../cmd/kubectl-standup", "../../cmd/kubectl-tiers", "../../cmd/kubectl-unwedge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build of the plugins: %w\n%s", err, out)
	}
	return os.Symlink(set.Path("kubectl"), filepath.Join(pluginDir, "kubectl"))
})

// shell is where a person types: a working directory, a kubeconfig, and
// nothing on the PATH but kubectl and the plugins.
type shell struct {
	kubeconfig string
	dir        string
	env        []string
	// throughKubectl leaves it to kubectl to find the plugin. It adds nothing to
	// what was typed and puts the plugin in its own place, for which it takes
	// longer than most plugins run: the incidents and the bring-up are typed so.
	throughKubectl bool
}

// program is what runs for what is typed after kubectl.
func (s *shell) program(typed []string) *exec.Cmd {
	if len(typed) > 0 && !s.throughKubectl {
		if plugin := filepath.Join(pluginDir, "kubectl-"+typed[0]); isFile(plugin) {
			return exec.Command(plugin, typed[1:]...)
		}
	}
	return exec.Command(filepath.Join(pluginDir, "kubectl"), typed...)
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newShell(t *testing.T, kubeconfig string) *shell {
	t.Helper()
	return &shell{kubeconfig: kubeconfig, dir: t.TempDir()}
}

// environment is all that a command sees of the machine's.
func (s *shell) environment() []string {
	return append([]string{
		"PATH=" + pluginDir, "HOME=" + s.dir, "TMPDIR=" + os.TempDir(), "KUBECONFIG=" + s.kubeconfig,
		// There are hundreds of short runs: until one needs much memory, nothing
		// is gained by collecting its garbage.
		"GOGC=off", "GOMEMLIMIT=256MiB",
	}, s.env...)
}

// shellFor is a shell whose kubeconfig is the administrator's of a cluster.
func shellFor(t *testing.T, c *cluster.Cluster) *shell {
	t.Helper()
	return newShell(t, c.Kubeconfig())
}

// expect are the flags that name a cluster.
func expect(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	return []string{"--expect-server", c.URL(), "--expect-uid", uidOf(t, c)}
}

// outcome is how a command ended.
type outcome struct {
	command        string
	stdout, stderr string
	code           int
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("$ kubectl %s\n%s%s(exit code %d after %s)", o.command, o.stdout, o.stderr, o.code, o.took.Round(time.Millisecond))
}

// run runs kubectl to its end.
func (s *shell) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return s.start(t, args...).wait(t)
}

// want runs kubectl and fails the test when it ends with another code.
func (s *shell) want(t *testing.T, code int, args ...string) outcome {
	t.Helper()
	o := s.run(t, args...)
	if o.code != code {
		t.Fatalf("%s\nwant exit code %d", o, code)
	}
	return o
}

// running is a command that has not ended yet.
type running struct {
	outcome
	cmd            *exec.Cmd
	cancel         context.CancelFunc
	began          time.Time
	stdout, stderr *transcript
}

// start runs kubectl in the background.
func (s *shell) start(t *testing.T, args ...string) *running {
	t.Helper()
	if err := plugins(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	typed := s.program(args)
	cmd := exec.CommandContext(ctx, typed.Path, typed.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Dir = s.dir
	cmd.Env = s.environment()
	r := &running{
		outcome: outcome{command: strings.Join(args, " ")},
		cmd:     cmd, cancel: cancel, began: time.Now(), stdout: newTranscript(), stderr: newTranscript(),
	}
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	return r
}

// says waits until the command has written the text on stderr.
func (r *running) says(t *testing.T, text string) {
	t.Helper()
	if !r.stderr.await(t.Context(), text) {
		t.Fatalf("$ kubectl %s\nhas not said %q, but\n%s", r.command, text, r.stderr)
	}
}

// wait waits until the command has ended.
func (r *running) wait(t *testing.T) outcome {
	t.Helper()
	defer r.cancel()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("$ kubectl %s\n%v\n%s%s", r.command, err, r.stdout, r.stderr)
	}
	o := r.outcome
	o.stdout, o.stderr = r.stdout.String(), r.stderr.String()
	o.code, o.took = r.cmd.ProcessState.ExitCode(), time.Since(r.began)
	for _, trace := range []string{"goroutine ", "panic", ".go:"} {
		if strings.Contains(o.stdout+o.stderr, trace) {
			t.Errorf("%s\nthis is for programmers: %q", o, trace)
		}
	}
	return o
}

// transcript is what a command has written so far.
type transcript struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (w *transcript) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(data)
	close(w.changed)
	w.changed = make(chan struct{})
	return len(data), nil
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await answers whether the text came before five minutes were over.
func (w *transcript) await(ctx context.Context, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		w.mu.Lock()
		found, changed := strings.Contains(w.text.String(), text), w.changed
		w.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// holds fails the test when a text is not in there.
func (o outcome) holds(t *testing.T, stream string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(stream, text) {
			t.Errorf("%s\nit does not say: %s", o, text)
		}
	}
}

// sent is what one of the plugins asked of the API server since the mark.
func sent(t *testing.T, c *cluster.Cluster, mark cluster.Mark, plugin string) cluster.Events {
	t.Helper()
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	return events.By(plugin + "/")
}

// mutatedNothing fails the test when a plugin changed the cluster, or tried to.
func mutatedNothing(t *testing.T, c *cluster.Cluster, mark cluster.Mark) {
	t.Helper()
	events, err := c.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.By("kubectl-").Mutating(); len(got) != 0 {
		t.Errorf("arrived:\n%s", got)
	}
}
