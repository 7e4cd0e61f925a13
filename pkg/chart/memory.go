// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapBound is by how much the heap may grow while a chart is rendered, in
	// bytes. Charts of hundreds of objects take a tenth of it.
	heapBound = 1 << 30
	// stackBound is for the stacks of all goroutines, in bytes. One that takes a
	// gigabyte ends the program, with a trace; templates that call each other as
	// deep as text/template lets them take less than a half of this.
	stackBound = 512 << 20
	// watchEvery is short: a template may write gigabytes in a second.
	watchEvery = 10 * time.Millisecond
	// endsWithin is how long what renders a chart is waited for, once it has been
	// told to stop. It may be in the middle of parsing what it has made.
	endsWithin = 5 * time.Second
)

// watch looks at the memory of the whole program: Go does not tell who takes it.
type watch struct {
	bound   uint64
	base    uint64
	samples []metrics.Sample
	// collected is closed when a collection of garbage has ended that the watch
	// asked for; nil where it has not.
	collected chan struct{}
}

func newWatch(bound uint64) *watch {
	return &watch{
		bound: bound, base: math.MaxUint64,
		samples: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}},
	}
}

func (w *watch) read() (heap, stacks uint64) {
	metrics.Read(w.samples)
	heap, stacks = w.samples[0].Value.Uint64(), w.samples[1].Value.Uint64()
	w.base = min(w.base, heap)
	return heap - w.base, stacks
}

// beyond is true where there is no time to look twice.
func (w *watch) beyond(heap, stacks uint64) bool { return heap >= 2*w.bound || stacks >= stackBound }

// over is true where too much is taken. Garbage is in the heap until it is
// collected, and does not count.
func (w *watch) over() bool {
	fresh := false
	select {
	case <-w.collected:
		w.collected, fresh = nil, true
	default:
	}
	heap, stacks := w.read()
	switch {
	case w.beyond(heap, stacks):
		return true
	case heap < w.bound:
		return false
	case fresh:
		return true
	case w.collected == nil:
		done := make(chan struct{})
		w.collected = done
		go func() {
			runtime.GC()
			close(done)
		}()
	}
	return false
}

// MemoryError says that a chart was given up, because the memory that the
// program takes grew too much while it was rendered. Where other charts were
// rendered at the same time, it may have been one of them.
type MemoryError struct {
	chart *Chart
	file  string
	bound uint64
	runaway
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("chart %s %s of %s takes more than %d MiB of memory to be rendered%s, and was given up: "+
		"a loop or a recursion of the template may have no end, which stops helm-controller too; mend the template, or the values that it goes through",
		e.chart.Name, e.chart.Version, e.chart.Release, e.bound>>20, in(e.file))
}

// in names the template.
func in(file string) string {
	if file == "" {
		return ""
	}
	return ", in " + file
}

// runaway is true of what renders a chart and could not be stopped.
type runaway bool

// Running is true where what renders the chart could not be stopped: it goes on,
// and takes memory and time, until the program ends. Nothing else is to be done
// then.
func (r runaway) Running() bool { return bool(r) }

// ends waits for what was told to stop. Where it does not, the program has to
// end: it is given room until it has.
func (w *watch) ends(done <-chan error) (err error, ended bool) { //nolint:revive // as a channel is read
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	late := time.After(endsWithin)
	for {
		select {
		case err := <-done:
			return err, true
		case <-late:
		case <-ticker.C:
			if !w.beyond(w.read()) {
				continue
			}
		}
		// A stack that overflows prints a trace of itself, in place of the
		// error. What is up to now the bound of a stack doubles.
		debug.SetMaxStack(math.MaxInt)
		return nil, false
	}
}
