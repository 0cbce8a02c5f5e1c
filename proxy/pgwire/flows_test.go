package pgwire

import (
	"slices"
	"testing"
)

const (
	sqlRead   = "SELECT value FROM counter WHERE id = $1"
	sqlWrite  = "UPDATE counter SET value = $1 WHERE id = $2"
	sqlClaim  = "UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value"
	sqlUpdate = "UPDATE counter SET value = 8 WHERE id = 1"
)

var (
	four  = "\x00\x00\x00\x07"
	eight = "\x00\x00\x00\x00\x00\x00\x00\x08"
)

// A flow is a script of turns, with the marks that it makes.
type flow struct {
	name   string
	wants  []string
	script []any
	want   string
}

func flows() []flow {
	return slices.Concat(simpleFlows, savepointFlows, clientFlows, extendedFlows, otherFlows, copies)
}

func TestFlows(t *testing.T) {
	for _, tt := range flows() {
		t.Run(tt.name, func(t *testing.T) {
			turns := encode(t, append(started[:2:2], tt.script...))
			got := newPlayer(t, newTracker(tt.wants...)).play(turns, 0).text()
			if got != lines(tt.want) {
				t.Fatalf("got\n%s\nwant\n%s", got, lines(tt.want))
			}
			for n := 1; n < 40; n++ {
				if split := newPlayer(t, newTracker(tt.wants...)).play(turns, n).text(); split != got {
					t.Fatalf("in pieces of %d:\n%s\nwant\n%s", n, split, got)
				}
				skipping := newPlayer(t, newTracker(tt.wants...))
				skipping.skips = true
				if split := skipping.play(turns, n).text(); split != got {
					t.Fatalf("skipping, in pieces of %d:\n%s\nwant\n%s", n, split, got)
				}
			}
		})
	}
}

// Every offset at which two chunks may part.
func TestFlowsSplitOnce(t *testing.T) {
	for _, tt := range flows() {
		turns := encode(t, append(started[:2:2], tt.script...))
		for i, u := range turns {
			for at := 1; at < len(u.bytes); at++ {
				pl := newPlayer(t, newTracker(tt.wants...)).play(turns[:i], 0)
				pl.frame(u)
				pl.feed(u.client, u.bytes[:at])
				pl.feed(u.client, u.bytes[at:])
				if got := pl.play(turns[i+1:], 0).text(); got != lines(tt.want) {
					t.Fatalf("%s: turn %d split at %d:\n%s\nwant\n%s", tt.name, i, at, got, lines(tt.want))
				}
			}
		}
	}
}
