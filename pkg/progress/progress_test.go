// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLogSaysOnlyWhatChanged(t *testing.T) {
	var b strings.Builder
	p := New(&b, Options{})
	p.Set("apps", "waits for platform")
	p.Set("platform", "reconciling")
	p.Set("apps", "waits for platform")
	p.Set("apps", "reconciling")
	p.Println("Warning: a clock is off")
	p.Done("platform", "✔", "Ready")
	p.Set("apps", "reconciling")
	p.Done("apps", "", "Ready\nat \x1b[2Jmain@sha1:1234")
	p.Done("apps", "", "Ready\nat \x1b[2Jmain@sha1:1234")
	p.Close()
	want := `apps: waits for platform
platform: reconciling
apps: reconciling
Warning: a clock is off
✔ platform: Ready
apps: Ready at ^[[2Jmain@sha1:1234
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

// terminal knows as much of a VT100 as progress uses: text that wraps and
// scrolls, CR, LF, cursor up, and clear to the end of the line or the screen.
// It remembers the first thing that it did not like.
type terminal struct {
	mu            sync.Mutex
	columns, rows int
	history       []string // scrolled off the top
	screen        [][]rune
	row, col      int
	err           error
}

func newTerminal(columns, rows int) *terminal {
	return &terminal{columns: columns, rows: rows, screen: make([][]rune, rows)}
}

func (t *terminal) size() (int, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.columns, t.rows
}

func (t *terminal) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.write(data)
	t.err = errors.Join(t.err, err)
	return n, err
}

func (t *terminal) write(data []byte) (int, error) {
	for s := string(data); s != ""; {
		var n int
		letter, size := utf8.DecodeRuneInString(s)
		_, err := fmt.Sscanf(s, "\x1b[%dA", &n)
		switch {
		case letter == '\n':
			t.newline()
		case letter == '\r':
			t.col = 0
		case err == nil:
			t.row = max(0, t.row-n)
			size = strings.IndexByte(s, 'A') + 1
		case strings.HasPrefix(s, "\x1b[K"):
			t.clearLine()
			size = 3
		case strings.HasPrefix(s, "\x1b[J"):
			if t.row == 0 && t.col == 0 {
				return 0, errors.New("the screen was cleared: tmux keeps what was there")
			}
			t.clearLine()
			clear(t.screen[t.row+1:])
			size = 3
		case letter == '\x1b':
			return 0, fmt.Errorf("the terminal does not know %q", s)
		default:
			t.put(letter)
		}
		s = s[size:]
	}
	return len(data), nil
}

func (t *terminal) put(letter rune) {
	if t.col == t.columns {
		t.newline()
	}
	line := t.screen[t.row]
	for len(line) <= t.col {
		line = append(line, ' ')
	}
	line[t.col] = letter
	t.screen[t.row] = line
	t.col++
}

func (t *terminal) clearLine() {
	line := t.screen[t.row]
	t.screen[t.row] = line[:min(t.col, len(line))]
}

func (t *terminal) newline() {
	t.col = 0
	if t.row++; t.row < t.rows {
		return
	}
	t.row = t.rows - 1
	t.history = append(t.history, string(t.screen[0]))
	t.screen = append(t.screen[1:], nil)
}

// narrow makes the terminal narrower, as a person drags its edge: what is too
// long is wrapped, and the lines below move down.
func (t *terminal) narrow(columns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.screen[:t.row+1]
	t.columns, t.row, t.col, t.screen = columns, 0, 0, make([][]rune, t.rows)
	for i, line := range old {
		if i > 0 {
			t.newline()
		}
		for len(line) > columns {
			t.screen[t.row] = line[:columns:columns]
			line = line[columns:]
			t.newline()
		}
		t.screen[t.row] = line
	}
}

// text is all that a person sees when they scroll up.
func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.history...)
	for _, line := range t.screen {
		lines = append(lines, string(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func (t *terminal) expect(tt *testing.T, want ...string) {
	tt.Helper()
	if t.err != nil {
		tt.Error(t.err)
	}
	if got, want := t.text(), strings.Join(want, "\n"); got != want {
		tt.Errorf("the terminal shows\n%s\nwant\n%s", got, want)
	}
}

func TestTerminalRedrawsRunningLines(t *testing.T) {
	term := newTerminal(60, 10)
	p := New(term, Options{Size: term.size})
	p.Println("Server https://127.0.0.1:6443")
	p.Set("apps", "waits for platform")
	p.Set("platform", "reconciling")
	term.expect(t, "Server https://127.0.0.1:6443", "apps: waits for platform", "platform: reconciling")

	p.Set("platform", "retrying at 03:04")
	term.expect(t, "Server https://127.0.0.1:6443", "apps: waits for platform", "platform: retrying at 03:04")

	p.Done("platform", "✔", "Ready")
	term.expect(t, "Server https://127.0.0.1:6443", "✔ platform: Ready", "apps: waits for platform")

	fmt.Fprint(p, "Warning: half a ")
	term.expect(t, "Server https://127.0.0.1:6443", "✔ platform: Ready", "apps: waits for platform")
	fmt.Fprint(p, "line\n")
	term.expect(t, "Server https://127.0.0.1:6443", "✔ platform: Ready", "Warning: half a line", "apps: waits for platform")

	p.Close()
	term.expect(t, "Server https://127.0.0.1:6443", "✔ platform: Ready", "Warning: half a line")
	p.Close() // twice does no harm
}

func TestTerminalLowerThanTheRunningLines(t *testing.T) {
	term := newTerminal(40, 4)
	p := New(term, Options{Size: term.size})
	for i := range 6 {
		p.Set(fmt.Sprintf("tier-%d", i), "reconciling")
	}
	term.expect(t, "tier-0: reconciling", "tier-1: reconciling", "… and 4 more")
	for i := range 6 {
		p.Done(fmt.Sprintf("tier-%d", i), "✔", "Ready")
	}
	p.Close()
	term.expect(t, "✔ tier-0: Ready", "✔ tier-1: Ready", "✔ tier-2: Ready",
		"✔ tier-3: Ready", "✔ tier-4: Ready", "✔ tier-5: Ready")
}

func TestTerminalNarrowerThanALine(t *testing.T) {
	term := newTerminal(20, 6)
	p := New(term, Options{Size: term.size})
	p.Set("platform", "waits for something that is long")
	term.expect(t, "platform: waits fo…")
	p.Set("platform", "short")
	term.expect(t, "platform: short")
}

func TestTerminalThatIsMadeNarrower(t *testing.T) {
	term := newTerminal(60, 10)
	p := New(term, Options{Size: term.size})
	p.Println("above")
	p.Set("platform", "waits for something that is rather long")
	p.Set("apps", "waits for platform")
	term.narrow(20)
	p.Set("apps", "reconciling")
	term.expect(t, "above", "platform: waits fo…", "apps: reconciling")
	p.Close()
	term.expect(t, "above")
}

func TestElapsedTimeGoesOnByItself(t *testing.T) {
	term := newTerminal(60, 5)
	var mu sync.Mutex
	now := time.Unix(1000, 0)
	tick := make(chan time.Time)
	p := New(term, Options{
		Size: term.size, Tick: tick,
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
	})
	p.Set("platform", "reconciling")
	term.expect(t, "platform: reconciling")
	mu.Lock()
	now = now.Add(75 * time.Second)
	mu.Unlock()
	tick <- now
	tick <- now // received only when the first has been drawn
	term.expect(t, "platform: reconciling (75s)")
	p.Close()
	term.expect(t, "")
}

func TestManyAtOnce(t *testing.T) {
	term := newTerminal(40, 8)
	tick := make(chan time.Time)
	p := New(term, Options{Size: term.size, Tick: tick})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			subject := fmt.Sprintf("tier-%02d", i)
			p.Set(subject, "reconciling")
			p.Println("saw " + subject)
			fmt.Fprintln(p, "warned "+subject)
			p.Done(subject, "✔", "Ready")
		})
	}
	group.Wait()
	p.Close()
	text := term.text()
	for i := range 20 {
		for _, format := range []string{"saw tier-%02d", "warned tier-%02d", "✔ tier-%02d: Ready"} {
			if want := fmt.Sprintf(format, i); strings.Count(text, want) != 1 {
				t.Errorf("%q is there %d times, want once", want, strings.Count(text, want))
			}
		}
	}
	if strings.Contains(text, "reconciling") || strings.Contains(text, "more") {
		t.Errorf("running lines were left behind:\n%s", text)
	}
}

func TestAfterCloseItIsALog(t *testing.T) {
	term := newTerminal(40, 5)
	p := New(term, Options{Size: term.size})
	p.Set("apps", "reconciling")
	p.Close()
	p.Set("apps", "stopped")
	term.expect(t, "apps: stopped")
}

func TestForIsALogWithoutATerminal(t *testing.T) {
	var b strings.Builder
	p := For(&b)
	p.Set("apps", "reconciling")
	p.Close()
	if b.String() != "apps: reconciling\n" {
		t.Errorf("got %q", b.String())
	}
}
