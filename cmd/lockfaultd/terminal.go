package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/live"
)

// A terminal is where output goes, which may be none.
type terminal struct {
	out  io.Writer
	file *os.File // nil where it is none
}

// terminalOf finds out whether output goes to one.
func terminalOf(out io.Writer) terminal {
	f, ok := out.(*os.File)
	if !ok {
		return terminal{out: out}
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return terminal{out: out}
	}
	return terminal{out, f}
}

func (t terminal) redraws() bool { return t.file != nil && os.Getenv("TERM") != "dumb" }

func (t terminal) colour() bool { return t.redraws() && os.Getenv("NO_COLOR") == "" }

// unknownWidth is what lines are made for where nobody tells.
const unknownWidth = 100

func (t terminal) width() int {
	if columns, _ := t.size(); columns > 0 {
		return columns
	}
	return unknownWidth
}

// size is 0, 0 where nobody tells.
func (t terminal) size() (columns, rows int) {
	if t.file == nil {
		return 0, 0
	}
	s, err := unix.IoctlGetWinsize(int(t.file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(s.Col), int(s.Row)
}

// What a terminal is told: to show a screen of its own without a cursor, and what it showed before; to write from the
// top left; to clear the rest of a line, and what is below.
const (
	screenOn  = "\x1b[?1049h\x1b[?25l"
	screenOff = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
	bold      = "\x1b[1;31m"
	plainly   = "\x1b[0m"
)

// enter takes the screen until leave is called. A stop by Ctrl-Z gives it back meanwhile.
func (t terminal) enter() (leave func()) {
	stops, over, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(stops, syscall.SIGTSTP)
	io.WriteString(t.out, screenOn)
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-stops:
				io.WriteString(t.out, screenOff)
				_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
				io.WriteString(t.out, screenOn)
			}
		}
	}()
	return func() {
		signal.Stop(stops)
		close(over)
		<-done
		io.WriteString(t.out, screenOff)
	}
}

// draw writes a snapshot over the former one, in one go. Of what is higher than the screen the end is left out.
func (t terminal) draw(s live.Snapshot, trouble string) error {
	var picture bytes.Buffer
	if err := live.Render(&picture, local(s), t.width(), t.colour()); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(picture.String(), "\n"), "\n")
	if trouble != "" {
		trouble = string([]rune(strings.ReplaceAll(trouble, "\n", " "))[:min(t.width(), utf8.RuneCountInString(trouble))])
		if t.colour() {
			trouble = bold + trouble + plainly
		}
		lines = append([]string{trouble}, lines...)
	}
	if _, rows := t.size(); rows > 1 && len(lines) > rows {
		left := len(lines) - rows + 1
		lines = append(lines[:rows-1], fmt.Sprintf("(%d lines more; the page, or a higher window, shows them)", left))
	}
	var b strings.Builder
	b.WriteString(home)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + clearLine)
	}
	b.WriteString(clearRest)
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
