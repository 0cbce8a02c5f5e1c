package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// What lockfaultd says of itself fails the soak, with the line, but for a server
// that was down.
func TestLogFailsTheSoak(t *testing.T) {
	const (
		away   = `time=2026-01-01T00:00:00.000Z level=ERROR msg="upstream cannot be reached" proxy=redis upstream=127.0.0.1:7001 err="connection refused"`
		other  = `level=ERROR msg="upstream cannot be reached" proxy=pg upstream=127.0.0.1:7003 err="connection refused"`
		freeze = `level=ERROR msg="no guard, so nothing will be frozen" err="x"`
		desync = `level=WARN msg="desync: passed on unread from here on" session=9 proxy=redis reason="reply at byte 0: it answers no request"`
	)
	now := time.Now()
	d := &daemon{upstreams: [3]string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"}}
	for _, tt := range []struct {
		name, log string
		downs     []down
		excused   int
		wrong     string
	}{
		{"nothing", "lockfaultd: no rule is armed\nlevel=WARN msg=\"client refused\"\n", nil, 0, ""},
		{"a server that was down", away + "\n" + away + "\n", []down{{0, now, now}}, 2, ""},
		{"a server that was there", away + "\n", nil, 0, away},
		{"another server was down", other + "\n", []down{{0, now, now}}, 0, other},
		{"it was down at another time", away + "\n", []down{{0, now.Add(-time.Hour), now.Add(-time.Hour)}}, 0, away},
		{"another error while it was down", freeze + "\n", []down{{0, now, now}}, 0, freeze},
		{"a desync while it was down", desync + "\n", []down{{0, now, now}}, 0, "desync: " + desync},
		{"a panic without an end of the line", "panic: runtime error", nil, 0, "panic: runtime error"},
		{"a gap", "lockfaultd: the history lacks 3 entries, since the disk was slower\n", nil, 0, "gap: lockfaultd: the history lacks 3"},
		{"the same again and again", strings.Repeat(desync+"\n", 40), nil, 0, "desync: 40 times"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s spoken
			for _, piece := range []string{tt.log[:len(tt.log)/2], tt.log[len(tt.log)/2:]} {
				_, _ = io.WriteString(&s, piece) // never fails
			}
			excused, err := s.judge(func(l said) bool { return d.unreachable(l, tt.downs) })
			if excused != tt.excused || (err == nil) != (tt.wrong == "") {
				t.Fatalf("excused %d, %v; want %d, %q", excused, err, tt.excused, tt.wrong)
			}
			if err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("got %v, want it to have %q", err, tt.wrong)
			}
			if got := s.text(); got != tt.log {
				t.Errorf("text %q", got)
			}
		})
	}
}

func TestLeaks(t *testing.T) {
	var start files
	for _, link := range []string{"socket:[1]", "socket:[2]", "anon_inode:[pidfd]", "anon_inode:[eventpoll]", "/dev/null", "pipe:[3]"} {
		start.count(link)
	}
	if want := (files{sockets: 2, pipes: 1, pidfds: 1, others: 2}); start != want {
		t.Fatalf("counted %+v, want %+v", start, want)
	}
	for _, tt := range []struct {
		name string
		now  files
		want string
	}{
		{"nothing", start, ""},
		{"what is kept", files{sockets: 3, pipes: 33, pidfds: 3, others: 2}, ""},
		{"a socket", files{sockets: 4, pipes: 1, pidfds: 1, others: 2}, "4 sockets, expected 3 at most"},
		{"pipes", files{sockets: 2, pipes: 34, pidfds: 1, others: 2}, "34 pipes, expected 33 at most"},
		{"a pidfd", files{sockets: 2, pipes: 1, pidfds: 4, others: 2}, "4 pidfds, expected 3 at most"},
		{"a file", files{sockets: 2, pipes: 1, pidfds: 1, others: 3}, "3 other files, expected 2 at most"},
	} {
		err := tt.now.leaked(start, 2)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestWhatExplainsALoss(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(s) * time.Second) }
	d := down{0, at(100), at(110)}
	for _, tt := range []struct {
		name string
		loss loss
		want bool
	}{
		{"meanwhile", loss{Server: 0, Since: at(99), At: at(105)}, true},
		{"soon after", loss{Server: 0, Since: at(112), At: at(120)}, true},
		{"found out late", loss{Server: 0, Since: at(90), At: at(150)}, true},
		{"it had worked since", loss{Server: 0, Since: at(140), At: at(150)}, false},
		{"before", loss{Server: 0, Since: at(80), At: at(90)}, false},
		{"another server's", loss{Server: 1, Since: at(99), At: at(105)}, false},
	} {
		if got := d.explains(tt.loss); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
