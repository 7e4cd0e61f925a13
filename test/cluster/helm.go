// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Helm runs the real Helm of a major version (3 or 4) against this cluster, as
// its administrator, and returns what it printed. It sees no file of the
// machine's own Helm. The error has all that Helm said.
func (c *Cluster) Helm(ctx context.Context, major int, args ...string) ([]byte, error) {
	ctx, cancel := withDeadline(ctx, waitDeadline)
	defer cancel()
	run, err := c.HelmStart(ctx, major, args...)
	if err != nil {
		return nil, err
	}
	return run.Wait()
}

// HelmRun is a Helm that runs, or did.
type HelmRun struct {
	process *process
	cancel  func() bool
	words   string
	stdout  bytes.Buffer
	stderr  bytes.Buffer
}

// HelmStart starts Helm and returns while it runs, so that a test can kill it
// where it stands. It is killed too when ctx ends.
func (c *Cluster) HelmStart(ctx context.Context, major int, args ...string) (*HelmRun, error) {
	path := c.programs.Path("helm" + strconv.Itoa(major))
	home := c.file("helm" + strconv.Itoa(major))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	run := &HelmRun{words: fmt.Sprintf("helm%d %s", major, strings.Join(args, " "))}
	cmd := exec.Command(path, unvalidated(args)...)
	// The name it is called by is the field manager of what it applies.
	cmd.Args[0] = "helm"
	cmd.Env = append(c.environment(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"GOGC=off", "GOMEMLIMIT=256MiB") // it is short
	cmd.Stdout, cmd.Stderr = &run.stdout, &run.stderr
	cmd.SysProcAttr = childAttributes()
	if err := c.spawner.start(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", run.words, err)
	}
	run.process = &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its exit status is in cmd.ProcessState
		close(run.process.exited)
	}()
	run.cancel = context.AfterFunc(ctx, run.Kill)
	return run, nil
}

// unvalidated spares Helm reading the API's whole schema, and the API server
// making it anew after each CRD, which takes both as long as all the rest. What
// the API server itself refuses is refused all the same.
func unvalidated(args []string) []string {
	if len(args) > 0 && (args[0] == "install" || args[0] == "upgrade") {
		return append(slices.Clone(args), "--disable-openapi-validation")
	}
	return args
}

// HelmKilled starts Helm and kills it in the middle, as a node that goes away
// does: once the record that is named has a status and, unless it is nil, the
// object that Helm then waits for is there (a hook's Job, which never ends where
// nothing runs pods). Helm's own wait needs a --timeout that outlasts the test's.
func (c *Cluster) HelmKilled(ctx context.Context, major int, record client.ObjectKey, status string, object client.Object, args ...string) error {
	run, err := c.HelmStart(ctx, major, args...)
	if err != nil {
		return err
	}
	defer run.Kill()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		<-run.process.exited
		stop()
	}()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: record.Name}}
	inStatus := func() bool { return secret.Labels["status"] == status }
	err = c.Until(waiting, secret, inStatus)
	if err == nil && object != nil {
		err = c.Until(waiting, object, always)
	}
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		out, err := run.Wait()
		return fmt.Errorf("%s: it ended before the record %s was %s: %w\n%s", run.words, record, status, err, out)
	}
	if err != nil {
		return err
	}
	run.Kill()
	if _, err := run.Wait(); err == nil {
		return fmt.Errorf("%s: it was done before it was killed", run.words)
	}
	return c.Until(ctx, secret, inStatus)
}

// Kill ends Helm at once (SIGKILL), in the middle of whatever it does, and
// returns when it is gone.
func (r *HelmRun) Kill() { r.process.kill() }

// Wait returns what Helm printed, once it has ended. A Helm that was killed is
// an error.
func (r *HelmRun) Wait() ([]byte, error) {
	<-r.process.exited
	r.cancel()
	state := r.process.cmd.ProcessState
	if state.Success() {
		return r.stdout.Bytes(), nil
	}
	why := state.String()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		why = "was killed: " + status.Signal().String()
	}
	return r.stdout.Bytes(), fmt.Errorf("%s: %s\n%s%s", r.words, why, r.stdout.Bytes(), r.stderr.Bytes())
}
