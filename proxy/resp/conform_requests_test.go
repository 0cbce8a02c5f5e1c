package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
)

func TestC077InlineForms(t *testing.T) {
	server := testbed.Redis(t)
	for form, replies := range map[string]int{
		"PING\r\n": 1, "PING\n": 1, "  PING  \r\n": 1, "\tPING\t\"a b\"\r\n": 1, "ECHO \"\\x41\\n\"\r\n": 1, "ECHO 'it\\'s'\r\n": 1, "\"PING\"\r\n": 1,
		words("PING"): 1, "*1\r\n$4\r\nPINGxx": 1, "*1\r\n$0\r\n\r\n": 1, "\"\"\r\n": 1,
		"\r\n": 0, "\n": 0, " \t \r\n": 0, "*0\r\n": 0, "*-1\r\n": 0, "*-5\r\n": 0, "\r\n\n*0\r\n": 0,
	} {
		t.Run(fmt.Sprintf("%q", form), func(t *testing.T) {
			p := newTap(t, server)
			p.send(words("DEL probe:1"), words("DEL probe:2"), form, probe(1), form, form, probe(2))
			got := p.until(probed(2))
			if n := countFrames(t, got); n != 4+3*replies {
				t.Errorf("%d replies to three, want %d each: %q", n-4, replies, got)
			}
			p.done("1 done, 2 done")
		})
	}
}

// countFrames counts with a scanner of its own what a server sent.
func countFrames(t *testing.T, b string) int {
	t.Helper()
	var r replies
	n := 0
	for rest := []byte(b); len(rest) > 0; {
		k, ev := r.next(rest)
		rest = rest[k:]
		switch ev {
		case framed:
			n++
		case malformed:
			t.Fatal(r.fault)
		}
	}
	return n
}

func TestC078NamesInAnyForm(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"a dollar is a word", "$3 foo\r\n" + lines("P1"), probed(1), "1 done"},
		{"mixed case", lines("cLiEnT rEpLy sKiP;P1;P2"), probed(2), "1 unknown, 2 done"},
		{"containers", lines("CONFIG GET maxmemory;config set maxmemory 0;CLIENT ID;CLIENT NO-EVICT on;P1"), probed(1), "1 done"},
		{"inline modes", "client reply 'off'\r\nGET a\r\nCLIENT REPLY \"ON\"\r\n" + lines("P1"), probed(1), "1 done"},
		{"inline subscription", "subscribe \"a b\" c\r\nunsubscribe\r\n" + lines("P1"), probed(1), "1 done"},
		{"as an op", "incrby probe:1 1001\r\n\"INCRBY\" \"probe:\\x32\" '1002'\r\n", probed(2), "1 done, 2 done"},
	})
}

func TestC079HostileCounts(t *testing.T) {
	server := testbed.Redis(t)
	for _, bad := range []string{
		"*x\r\n", "*2147483648\r\n", "*99999999999999999999\r\n", "*1\r\n$-2\r\nPING\r\n", "*1\r\n$-1\r\n", "*1\r\n$536870913\r\n",
		"*1\r\n$9223372036854775807\r\n", "*1\r\n*1\r\n$1\r\na\r\n", "*2\r\n$3\r\nGET\r\nx\r\n", "*1\r\n$x\r\n",
	} {
		t.Run(fmt.Sprintf("%q", bad), func(t *testing.T) {
			p := newTap(t, server)
			p.send(words("DEL probe:1"), probe(1), bad, probe(2))
			got := p.until("")
			if !strings.Contains(got, probed(1)+"-ERR Protocol error") {
				t.Errorf("the server says %q", got)
			}
			p.done("blind, 1 done")
			checkGrowth(t, bad, func(tr *Tracker) { tr.Client([]byte(bad), nil) })
		})
	}
}

func TestC080WhatTheServerWillNotRead(t *testing.T) {
	server := testbed.Redis(t)
	admin := newTap(t, server)
	admin.send(lines("CONFIG SET requirepass secret;PING"))
	admin.until("+PONG\r\n")
	stranger := map[string]struct{ requests, answer, story string }{
		"too many arguments": {lines("PING;MGET a b c d e f g h i j k;P1"), "-NOAUTH", "1 failed ERR, blind"},
		"too long a bulk":    {cmd("SET", "k", strings.Repeat("x", 17000)) + lines("P1"), "-ERR Protocol error: unauth", "1 failed ERR, blind"},
		"too long a line":    {strings.Repeat("x", maxInline+10), "-ERR Protocol error: too big inline", "blind"},
	}
	for name, s := range stranger {
		t.Run(name, func(t *testing.T) {
			p := newTap(t, server)
			p.send(s.requests)
			if got := readAll(p); !strings.HasPrefix(got, s.answer) {
				t.Errorf("the server says %q", got)
			}
			p.done(s.story)
		})
	}
	// The client waits for what is said to a header alone, so that must not be
	// withheld.
	for _, header := range []string{"*11\r\n", "*100\r\n", "*3\r\n$5\r\nSETNX\r\n$20000\r\n", "*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$16385\r\n", "*2\r\n$20000\r\n"} {
		t.Run(fmt.Sprintf("%q", header), func(t *testing.T) {
			p := newTap(t, server)
			p.tr = newTracker("DEL")
			_, clear := p.tr.Client([]byte(header), nil)
			if _, err := p.c.Write([]byte(header)[:clear]); err != nil || clear != int64(len(header)) {
				t.Fatalf("clear %d of %d: %v", clear, len(header), err)
			}
			if got := readAll(p); !strings.HasPrefix(got, "-ERR Protocol error: unauthenticated") {
				t.Errorf("the server says %q", got)
			}
			p.done("")
		})
	}
	t.Run("NUL", func(t *testing.T) {
		p := newTap(t, server)
		p.send("AUTH secret\r\n" + lines("P1"))
		p.until(probed(1))
		p.send("ECHO a\x00b\r\n"+probe(2), strings.Repeat("x", maxInline))
		if got := readAll(p); !strings.HasPrefix(got, "-ERR Protocol error: too big inline") {
			t.Errorf("the server says %q", got)
		}
		p.done("1 done, blind")
	})
	t.Run("HTTP", func(t *testing.T) {
		p := newTap(t, server)
		p.send("POST / HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := readAll(p); got != "" {
			t.Errorf("the server says %q", got)
		}
		if p.tr.told {
			t.Error("blind without cause")
		}
	})
}

// readAll reads to the end, which may be a reset: the server has not read all.
func readAll(p *tap) string { return p.until("") }

func TestC082DeepNesting(t *testing.T) {
	for _, deep := range []string{strings.Repeat("*1\r\n", 1_000_000), strings.Repeat("%1\r\n+k\r\n", 300_000), strings.Repeat("|1\r\n", 300_000), strings.Repeat("*1\r\n>1\r\n", 300_000)} {
		tr := newTracker()
		tr.Client([]byte(words("EVAL x 0")+nx), nil)
		marks, clear := tr.Upstream([]byte(deep), nil)
		if len(marks) != 1 || !strings.Contains(marks[0].Reason, "levels of nesting") || clear != int64(len(deep)) {
			t.Errorf("%.20q: %s, clear %d", deep, kinds(marks), clear)
		}
		if cap(tr.rep.levels) > 2*maxDepth {
			t.Errorf("%d levels kept", cap(tr.rep.levels))
		}
	}
	tr := newTracker()
	marks, clear := tr.Client([]byte(strings.Repeat("*1\r\n", 1_000_000)), nil)
	if len(marks) != 1 || marks[0].Kind != wire.Blind || clear != 4_000_000 {
		t.Errorf("requests: %s, clear %d", kinds(marks), clear)
	}
}

func TestC083NothingBehindTheEnd(t *testing.T) {
	server := testbed.Redis(t)
	for name, f := range map[string]struct{ requests, story string }{
		"QUIT":           {lines("P1;QUIT;P2;P3"), "1 done"},
		"QUIT in MULTI":  {lines("MULTI;P1;QUIT;P2"), ""},
		"protocol error": {lines("P1") + "*1\r\n$-7\r\n" + lines("P2"), "blind, 1 done"},
	} {
		t.Run(name, func(t *testing.T) {
			admin := newTap(t, server)
			admin.send(words("FLUSHALL"))
			admin.until("+OK\r\n")
			p := newTap(t, server)
			p.send(f.requests)
			p.until("")
			if got := p.story(); got != f.story {
				t.Errorf("story %q, want %q", got, f.story)
			}
			for _, m := range p.marks {
				if m.Kind == wire.Request && m.Op.FenceKey == "probe:2" {
					t.Error("a request that is never carried out became an op")
				}
			}
			admin.send(lines("EXISTS probe:2 probe:3"))
			if got := admin.until("\r\n"); got != ":0\r\n" {
				t.Errorf("the server carried it out: %q", got)
			}
		})
	}
}

func TestC084EndWithoutReply(t *testing.T) {
	for name, requests := range map[string]string{
		"SHUTDOWN": lines("SHUTDOWN NOSAVE;P2"), "CLIENT KILL": lines("CLIENT KILL TYPE normal SKIPME no;P2"),
		"FAILOVER": lines("FAILOVER ABORT;FAILOVER;SHUTDOWN NOSAVE;P2"),
	} {
		t.Run(name, func(t *testing.T) {
			p := newTap(t, testbed.Redis(t))
			p.send(lines("P1"))
			p.until(probed(1))
			p.send(requests)
			p.until("")
			if got := p.story(); got != "1 done" {
				t.Errorf("story: %s, from the server %q", got, p.all)
			}
			if p.tr.queue.empty() || p.tr.due != 1 {
				t.Errorf("the request behind is not waited for any more: %d", p.tr.due)
			}
		})
	}
	fly(t, testbed.Redis(t), []flight{
		{"refused", lines("SHUTDOWN BOGUS;P1;SHUTDOWN ABORT;P2;MULTI;SHUTDOWN NOSAVE;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
	})
}

func TestC108UnknownCommands(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"unknown", lines("HIMPORT x y;P1;JSON.SET k $ 1;P2;FT.SEARCH i q;CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"in MULTI", lines("MULTI;HIMPORT x;P1;EXEC;P2"), probed(2), "1 failed EXECABORT, 2 done"},
	})
}

// Time per element must not depend on how many there are. What is quadratic
// would take ten times as long for each.
func TestC081LargeFramesInLinearTime(t *testing.T) {
	feed := func(scan func([]byte, []wire.Mark) ([]wire.Mark, int64), text string) {
		for b := []byte(text); len(b) > 0; {
			n := min(len(b), 4096)
			scan(b[:n], nil)
			b = b[n:]
		}
	}
	for name, run := range map[string]func(n int){
		"arguments": func(n int) {
			feed(newTracker().Client, fmt.Sprintf("*%d\r\n$4\r\nMGET\r\n", n)+strings.Repeat("$3\r\nabc\r\n", n-1))
		},
		"arguments of an op": func(n int) {
			feed(newTracker().Client, fmt.Sprintf("*%d\r\n$3\r\nDEL\r\n", n)+strings.Repeat("$3\r\nabc\r\n", n-1))
		},
		"channels": func(n int) {
			tr := newTracker()
			feed(tr.Client, fmt.Sprintf("*%d\r\n$9\r\nSUBSCRIBE\r\n", n+1)+strings.Repeat("$1\r\na\r\n", n))
			feed(tr.Upstream, strings.Repeat("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", n))
			if tr.told || !tr.queue.empty() {
				t.Error("lost")
			}
		},
		"elements": func(n int) {
			tr := newTracker()
			tr.Client([]byte(words("EVAL x 0")), nil)
			feed(tr.Upstream, fmt.Sprintf("*%d\r\n", n)+strings.Repeat("$3\r\nabc\r\n", n))
		},
		"elements of EXEC": func(n int) {
			tr := newTracker()
			feed(tr.Client, words("MULTI")+strings.Repeat(nx, n)+words("EXEC"))
			feed(tr.Upstream, "+OK\r\n"+strings.Repeat("+QUEUED\r\n", n)+fmt.Sprintf("*%d\r\n", n)+strings.Repeat(":1\r\n", n))
		},
		"requests without a reply": func(n int) {
			tr := newTracker()
			feed(tr.Client, words("CLIENT REPLY OFF")+strings.Repeat("PING\r\n", n)+words("CLIENT REPLY ON"))
			feed(tr.Upstream, "+OK\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			small, large := 20_000, 200_000
			if strings.HasPrefix(name, "arguments") || name == "elements" {
				small, large = 100_000, 1_000_000
			}
			ratio := 0.0
			for range 4 { // of a busy machine's times, the best
				a, b := timeOf(func() { run(small) }), timeOf(func() { run(large) })
				if ratio = float64(b) / float64(a) / 10; ratio < 4 {
					return
				}
			}
			t.Errorf("an element of ten times as many takes %.1f times as long", ratio)
		})
	}
}

func timeOf(run func()) time.Duration {
	start := time.Now()
	run()
	return time.Since(start)
}
