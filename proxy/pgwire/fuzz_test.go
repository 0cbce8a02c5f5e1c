package pgwire

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// FuzzTracker feeds two streams in the same order in two ways: each turn in
// one piece, and cut where the input says. Both must give the same marks.
// feed holds every call to what is promised of the clear offset.
func FuzzTracker(f *testing.F) {
	for _, tt := range flows() {
		var client, server []byte
		for _, u := range encode(f, tt.script) {
			if u.client {
				client = append(client, u.bytes...)
			} else {
				server = append(server, u.bytes...)
			}
		}
		f.Add(client, server, uint8(7), uint8(40))
	}
	f.Add([]byte("Q\xff\xff\xff\xffabc"), []byte("Z\x00\x00\x00\x00"), uint8(1), uint8(1))
	f.Add([]byte("B\x3f\xff\xff\xffabc"), []byte("D\x3f\xff\xff\xff"), uint8(2), uint8(9))
	f.Fuzz(func(t *testing.T, client, server []byte, cut, turnSize uint8) {
		var turns []turn
		for size := int(turnSize) + 1; len(client) > 0 || len(server) > 0; {
			n, m := min(size, len(client)), min(size, len(server))
			turns = append(turns, turn{true, client[:n]}, turn{false, server[:m]})
			client, server = client[n:], server[m:]
		}
		turns = append(encode(t, started), turns...)
		whole := newPlayer(t, newTracker("SET", "LOCK")).play(turns, 0)
		pieces := newPlayer(t, newTracker("SET", "LOCK")).play(turns, int(cut)+1)
		if whole.text() != pieces.text() {
			t.Fatalf("in one piece:\n%s\nin pieces of %d:\n%s", whole.text(), int(cut)+1, pieces.text())
		}
		skipping := newPlayer(t, newTracker("SET", "LOCK"))
		skipping.skips = true
		if skipping.play(turns, int(cut)+1); whole.text() != skipping.text() {
			t.Fatalf("in one piece:\n%s\nskipping, in pieces of %d:\n%s", whole.text(), int(cut)+1, skipping.text())
		}
		for _, tr := range []*Tracker{whole.tracker, pieces.tracker} {
			received := int(tr.client.pos + tr.upstream.pos)
			if n := cap(tr.client.buf) + cap(tr.upstream.buf); n > 4*received+64<<10 || n > 4*wire.MaxHeld {
				t.Fatalf("%d bytes are copied of %d", n, received)
			}
			if n, size := tr.asked.len(), tr.asked.size(); n > received/headSize+1 || size > 4*received+1<<10 {
				t.Fatalf("%d requests in %d bytes after %d", n, size, received)
			}
			tr.asked.check(t)
		}
	})
}

// FuzzStartup does the same from the first byte on.
func FuzzStartup(f *testing.F) {
	f.Add(packet(196608, "user\x00u\x00\x00"), uint8(3))
	f.Add([]byte("GET / HTTP/1.1"), uint8(0))
	f.Fuzz(func(t *testing.T, client []byte, cut uint8) {
		turns := []turn{{true, client}}
		whole := newPlayer(t, newTracker()).play(turns, 0)
		pieces := newPlayer(t, newTracker()).play(turns, int(cut)+1)
		if whole.text() != pieces.text() || whole.tracker.ApplicationName() != pieces.tracker.ApplicationName() {
			t.Fatalf("in one piece:\n%s\nin pieces of %d:\n%s", whole.text(), int(cut)+1, pieces.text())
		}
	})
}

// Lengths that lie cost no memory, in either direction.
func TestHostileLengths(t *testing.T) {
	for _, typ := range "QPBDECdFSX" {
		client := []byte{byte(typ), 0x3f, 0xff, 0xff, 0xff, 'x', 0, 'y'}
		pl := newPlayer(t, newTracker()).play(encode(t, started), 0).play([]turn{{true, client}}, 0)
		if n := cap(pl.tracker.client.buf); n > 4096 {
			t.Errorf("%q: %d bytes allocated", typ, n)
		}
	}
	for _, typ := range "TtDCEZKGNS" {
		server := []byte{byte(typ), 0x3f, 0xff, 0xff, 0xff, 'x', 0, 'y'}
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{q(sqlUpdate)})), 0).play([]turn{{false, server}}, 0)
		if n := cap(pl.tracker.upstream.buf); n > 4096 {
			t.Errorf("%q: %d bytes allocated", typ, n)
		}
	}
}
