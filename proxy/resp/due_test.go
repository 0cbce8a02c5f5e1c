package resp

import (
	"strings"
	"testing"
)

// A script that sets an absolute end is read as such, whatever its unit.
func TestScriptsWithAnAbsoluteEnd(t *testing.T) {
	const ms = "1796009804930"
	for _, c := range []struct{ text, args, want string }{
		{`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2])`, "token-1 " + ms, "until"},
		{`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EXAT', ARGV[2])`, "token-1 1796009804", "until"},
		{`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`, "token-1 5000", "ttl=5s"},
		{`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIREAT', KEYS[1], ARGV[2]) end return 0`, "token-1 " + ms, "until"},
		{`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('EXPIRE', KEYS[1], ARGV[2]) end return 0`, "token-1 5", "ttl=5s"},
	} {
		request := cmd(append([]string{"EVAL", c.text, "1", "lock:a"}, strings.Fields(c.args)...)...)
		got := exchange(t, newTracker(), request, ":1\r\n")
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: got %q, want %s in it", c.text, got, c.want)
		}
	}
	// Of a call that is guessed it is no lifetime, either.
	got := exchange(t, newTracker(), cmd("EVALSHA", strings.Repeat("a", 40), "1", "lock:a", "token-12345", ms), ":1\r\n")
	if len(got) != 1 || !strings.Contains(got[0], "until") || strings.Contains(got[0], "ttl=") {
		t.Errorf("a guess: got %q", got)
	}
}
