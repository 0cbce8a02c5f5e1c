package alarm

import "testing"

func TestOf(t *testing.T) {
	for line, want := range map[string]Kind{
		"lockfaultd: redis 127.0.0.1:6380 -> 127.0.0.1:6379":                                                         "",
		`level=INFO msg="session ended" session=8`:                                                                   "",
		`level=WARN msg="client refused" proxy=redis`:                                                                "",
		`level=WARN msg="desync: passed on unread from here on" session=974 proxy=redis reason="request at byte 0"`:  Desync,
		`time=2026-01-01T00:00:00Z level=ERROR msg="upstream cannot be reached" proxy=redis`:                         Error,
		"lockfaultd: desync: 3 connections could not be followed to their end, and were passed on unread from there": "",
		"lockfaultd: the history lacks 12 entries, since the disk was slower than the traffic; its gaps tell where":  Gap,
		"panic: runtime error: index out of range [3] with length 3":                                                 Panic,
		"fatal error: concurrent map writes":                                                                         Panic,
		"SIGSEGV: segmentation violation":                                                                            Panic,
		"WARNING: DATA RACE":                                                                                         Panic,
		`level=INFO msg="session began" name="panic: not ours"`:                                                      "",
	} {
		if got := Of(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
