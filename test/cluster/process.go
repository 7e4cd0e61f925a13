// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// spawner starts processes from one thread that lives as long as it does. On
// Linux a child can ask to be killed when the *thread* that made it ends; from
// an ordinary goroutine that may be long before the process does.
type spawner struct{ calls chan func() }

func newSpawner() *spawner {
	s := &spawner{calls: make(chan func())}
	go func() {
		// Never unlocked, so that the thread ends with the goroutine.
		runtime.LockOSThread()
		for call := range s.calls {
			call()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.calls <- func() { done <- cmd.Start() }
	return <-done
}

// close ends the thread, and with it whatever still runs.
func (s *spawner) close() { close(s.calls) }

// process is a program that runs, or did.
type process struct {
	cmd *exec.Cmd
	log string
	// exited is closed when the process has ended and was waited for.
	exited chan struct{}
}

// run starts a program with its output appended to the file log.
func (s *spawner) run(path string, args, env []string, dir, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, out, out
	cmd.SysProcAttr = childAttributes()
	if err := s.start(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its exit status is in cmd.ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks the process to end, and kills its group when ctx or patience ends.
func (p *process) stop(ctx context.Context, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.kill()
}

// kill ends the process and its group at once, and returns when it is gone.
func (p *process) kill() {
	// Once waited for, the id may be somebody else's.
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.exited
}

// errClash: the port that was free is somebody else's by now.
var errClash = errors.New("port was taken by another process")

// awaitHealthy returns when url answers 200.
func (p *process) awaitHealthy(ctx context.Context, httpClient *http.Client, url string) error {
	// Each look makes an API server that starts go through all its checks, and
	// log those that fail.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		last := get(ctx, httpClient, url)
		if last == nil {
			return nil
		}
		select {
		case <-p.exited:
			if strings.Contains(tail(p.log, 20), "address already in use") {
				return errClash
			}
			return fmt.Errorf("ended (%s)\n%s", p.cmd.ProcessState, tail(p.log, 20))
		case <-ctx.Done():
			return fmt.Errorf("not healthy: %w: %w\n%s", context.Cause(ctx), last, tail(p.log, 20))
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, httpClient *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// tail is the last lines of a log, each cut to a readable length.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		if len(line) > 300 {
			all[i] = append(line[:300:300], "…"...)
		}
	}
	return string(bytes.Join(all, []byte("\n")))
}
