// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// rendering is one chart being rendered.
type rendering struct {
	ctx context.Context
	// file is the template that is being rendered.
	file atomic.Pointer[string]
	// looked is true once a template has asked what is on the cluster, refused
	// once one was refused what Helm lets it do.
	looked, refused atomic.Bool
}

// begin is called before each template is rendered.
func (r *rendering) begin(name string) (string, error) {
	r.file.Store(&name)
	return "", r.ctx.Err()
}

func (r *rendering) at() string {
	if file := r.file.Load(); file != nil {
		return *file
	}
	return ""
}

// lookup is Helm's without a cluster (helm v4.2.4 pkg/engine funcs.go).
func (r *rendering) lookup(string, string, string, string) (map[string]any, error) {
	r.looked.Store(true)
	return map[string]any{}, r.ctx.Err()
}

const (
	// markFunction says to which template the engine has come.
	markFunction = "kubestandupBegins"
	// marks ends the name of a template that is nothing but a call of it. The
	// engine goes backwards through the names: this one is just before that of
	// the template which it is for.
	marks = "\x00"
)

// mark adds to each template one that tells when it is rendered.
func mark(c *helmchart.Chart) {
	var added []*common.File
	for _, t := range c.Templates {
		if t != nil && !strings.HasPrefix(path.Base(t.Name), "_") {
			call := "{{" + markFunction + " " + strconv.Quote(path.Join(c.ChartFullPath(), t.Name)) + "}}"
			added = append(added, &common.File{Name: t.Name + marks, Data: []byte(call)})
		}
	}
	c.Templates = append(c.Templates, added...)
	for _, d := range c.Dependencies() {
		mark(d)
	}
}

// inTime waits for what renders the chart no longer than ctx allows, and no
// longer than there is memory.
func (c *Chart) inTime(ctx context.Context, render func(*rendering) error) error {
	start := time.Now()
	stoppable, stop := context.WithCancel(ctx)
	defer stop()
	r := &rendering{ctx: stoppable}
	w := newWatch(c.memory)
	w.read()
	done := make(chan error, 1)
	go func() { done <- render(r) }()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return c.failed(ctx, start, r, err, false)
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			err, ended := w.ends(done)
			return c.failed(ctx, start, r, err, !ended)
		case <-ticker.C:
			if !w.over() {
				continue
			}
			stop()
			err, ended := w.ends(done)
			if ended && err == nil { // it was about to end
				return nil
			}
			return &MemoryError{chart: c, file: r.at(), bound: c.memory, runaway: runaway(!ended)}
		}
	}
}

// failed says why a chart was not rendered; nil where it was.
func (c *Chart) failed(ctx context.Context, start time.Time, r *rendering, err error, running bool) error {
	if err == nil && !running {
		return nil
	}
	switch { // templates that are stopped fail in words of their own
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &SlowError{chart: c, file: r.at(), after: time.Since(start).Round(time.Second), runaway: runaway(running)}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		return fmt.Errorf("chart %s %s of %s: %w", c.Name, c.Version, c.Release, remote)
	}
	if refused, ok := errors.AsType[*refusedError](err); ok && c.lies != nil {
		return c.unrendered(r, refused)
	}
	guess := ""
	if len(c.Unknown) > 0 {
		guess = fmt.Sprintf(" without the values of %s, which are not known", c.Unknown[0])
	}
	return c.hidden.redact(fmt.Errorf("chart %s %s of %s cannot be rendered%s: %w", c.Name, c.Version, c.Release, guess, oneLine(err)))
}

// SlowError says that a chart was not rendered in time.
type SlowError struct {
	chart *Chart
	file  string
	after time.Duration
	runaway
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("chart %s %s of %s is not rendered after %s%s: a loop of a template may have no end", e.chart.Name, e.chart.Version, e.chart.Release, e.after, in(e.file))
}

// ExitCode is 4, past a deadline.
func (*SlowError) ExitCode() int { return 4 }
