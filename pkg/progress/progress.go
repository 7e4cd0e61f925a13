// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package progress says on stderr what a long command is waiting for: one
// redrawn line per running subject on a terminal, and elsewhere, in a log, a
// line only when something changed.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubestandup/kubestandup/pkg/printers"
)

// Options says where the progress is shown. The zero value is a log: no
// terminal, no clock.
type Options struct {
	// Size is how many columns and lines the terminal has at this moment; it
	// is asked before each drawing, so a resize is met. nil, or 0 columns,
	// means that there is no terminal: no line is ever redrawn, and no escape
	// code written.
	Size func() (columns, lines int)
	// Now, when set, shows behind each running subject how long it has run.
	Now func() time.Time
	// Tick, when set, redraws the running subjects at each of its values until
	// Close, so that the time that is shown goes on.
	Tick <-chan time.Time
}

// Progress shows what runs. It may be used from several goroutines. Between
// the first Set and Close, whatever else goes to the same terminal must pass
// through Println or Write, or it would tear the lines that are redrawn.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	o       Options
	running []*line
	said    map[string]string
	drawn   []int // widths of the lines on the terminal now, from the top
	partial string
	closed  chan struct{}
	ticking sync.WaitGroup
}

type line struct {
	subject, text string
	since         time.Time
}

// New shows progress on w as o says. Close it.
func New(w io.Writer, o Options) *Progress {
	p := &Progress{w: w, o: o, said: map[string]string{}, closed: make(chan struct{})}
	if o.Tick != nil {
		p.ticking.Go(func() {
			for {
				select {
				case <-p.closed:
					return
				case _, ok := <-o.Tick:
					if !ok {
						return
					}
					p.show(func() []string { return nil })
				}
			}
		})
	}
	return p
}

// For shows progress on a command's stderr: redrawn once a second when that is
// a terminal that can, and as a log otherwise. Close it.
func For(w io.Writer) *Progress {
	size := func() (int, int) { return printers.TerminalSize(w) }
	if !printers.AllowsRedraw(w) {
		return New(w, Options{})
	}
	ticker := time.NewTicker(time.Second)
	return New(w, Options{Size: size, Now: time.Now, Tick: ticker.C})
}

// Set says what a running subject is at. A new subject goes below the others.
func (p *Progress) Set(subject, text string) {
	subject, text = printers.OneLine(subject), printers.OneLine(text)
	p.show(func() []string {
		i := slices.IndexFunc(p.running, func(l *line) bool { return l.subject == subject })
		if i < 0 {
			i = len(p.running)
			p.running = append(p.running, &line{subject: subject, since: p.now()})
		}
		p.running[i].text = text
		if columns, _ := p.size(); columns > 0 {
			return nil
		}
		return p.unsaid(subject, subject+": "+text)
	})
}

// Done takes the subject off the running ones and leaves a line about it that
// stays. The mark, such as ✔ or ✗, stands before it; it may be empty.
func (p *Progress) Done(subject, mark, text string) {
	subject, text = printers.OneLine(subject), printers.OneLine(text)
	said := subject
	if text != "" {
		said += ": " + text
	}
	if mark != "" {
		said = mark + " " + said
	}
	p.show(func() []string {
		p.running = slices.DeleteFunc(p.running, func(l *line) bool { return l.subject == subject })
		return p.unsaid(subject, said)
	})
}

// Println leaves a line that stays, above the running subjects.
func (p *Progress) Println(text string) {
	p.show(func() []string { return strings.Split(printers.EscapeTerminal(text), "\n") })
}

// Write is Println for each complete line, so that a Progress can stand in for
// the stream of warnings; colours in it are kept. What has no line feed yet
// waits for it, or for Close.
func (p *Progress) Write(data []byte) (int, error) {
	p.show(func() []string {
		p.partial += string(data)
		lines := strings.Split(p.partial, "\n")
		p.partial = lines[len(lines)-1]
		return lines[:len(lines)-1]
	})
	return len(data), nil
}

// Close takes the running lines off the terminal and ends the redrawing. What
// comes after it is shown as in a log.
func (p *Progress) Close() {
	p.show(func() []string {
		p.running = nil
		rest := p.partial
		p.partial = ""
		if rest == "" {
			return nil
		}
		return []string{rest}
	})
	p.mu.Lock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	p.mu.Unlock()
	p.ticking.Wait()
}

// show changes what is shown: the lines that change returns stay, and below
// them the running ones are drawn anew.
func (p *Progress) show(change func() []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stay := change()
	columns, lines := p.size()
	if columns == 0 {
		for _, text := range stay {
			fmt.Fprintln(p.w, text)
		}
		return
	}
	p.draw(stay, p.texts(columns, lines), columns, lines)
}

func (p *Progress) size() (columns, lines int) {
	select {
	case <-p.closed:
		return 0, 0
	default:
	}
	if p.o.Size == nil {
		return 0, 0
	}
	return p.o.Size()
}

func (p *Progress) now() time.Time {
	if p.o.Now == nil {
		return time.Time{}
	}
	return p.o.Now()
}

// unsaid is a line about a subject, unless the last one said the same.
func (p *Progress) unsaid(subject, text string) []string {
	if p.said[subject] == text {
		return nil
	}
	p.said[subject] = text
	return []string{text}
}

// draw writes over the running lines on the terminal, line by line and in one
// write, so that nothing flickers. It never clears from the top of the screen
// on: tmux takes that for a clear, and keeps what was there in its history.
func (p *Progress) draw(stay, running []string, columns, lines int) {
	rows := 0
	for _, width := range p.drawn {
		rows += rowsOf(width, columns) // more than one where the terminal is narrower now
	}
	rows = min(rows, max(lines-1, 1))

	var b strings.Builder
	b.WriteString(up(rows))
	for _, text := range slices.Concat(stay, running) {
		b.WriteString(clearLine + text)
		// Behind a full row the cursor still stands on its last letter.
		if width := printers.TextWidth(text); width == 0 || width%columns != 0 {
			b.WriteString(clearLine)
		}
		b.WriteString("\n")
	}
	switch {
	case rows == 0:
	case len(stay)+len(running) > 0:
		b.WriteString(clearBelow)
	default:
		b.WriteString(strings.Repeat(clearLine+"\n", rows) + up(rows))
	}
	p.drawn = p.drawn[:0]
	for _, text := range running {
		p.drawn = append(p.drawn, printers.TextWidth(text))
	}
	io.WriteString(p.w, b.String())
}

const (
	clearLine  = "\x1b[K" // from the cursor to the end of the line
	clearBelow = "\x1b[J" // from the cursor to the end of the screen
)

func up(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r", rows)
}

func rowsOf(width, columns int) int { return max(1, (width+columns-1)/columns) }

// texts are the lines to draw: none as wide as the terminal, which would wrap
// it, and one fewer than it is high, since what has scrolled off the top
// cannot be drawn over.
func (p *Progress) texts(columns, lines int) []string {
	shown := p.running
	room := max(lines-1, 1)
	if len(shown) > room {
		shown = shown[:room-1]
	}
	var texts []string
	for _, l := range shown {
		text := l.subject + ": " + l.text
		if p.o.Now != nil {
			if ran := p.o.Now().Sub(l.since); ran >= time.Second {
				suffix := " (" + duration.HumanDuration(ran) + ")"
				text = printers.Fit(text, columns-1-len(suffix)) + suffix
			}
		}
		texts = append(texts, printers.Fit(text, columns-1))
	}
	if more := len(p.running) - len(shown); more > 0 {
		texts = append(texts, printers.Fit(fmt.Sprintf("… and %d more", more), columns-1))
	}
	return texts
}
