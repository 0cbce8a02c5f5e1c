package nearest

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"SETNX", "SETXN", 2}, {"abc", "abc", 0}} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestWordPrefersLettersOverCase(t *testing.T) {
	for _, tt := range []struct{ word, want string }{{"setnx", "SETNX"}, {"wrte", "write"}, {"WRITE", "write"}, {"", "SET"}} {
		if got := Word(tt.word, []string{"SETNX", "SET", "write"}); got != tt.want {
			t.Errorf("Word(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestNearProposesOnlyWhatIsLike(t *testing.T) {
	flags := []string{"stall-after", "redis", "out", "tls-cert"}
	for _, tt := range []struct{ word, want string }{
		{"stal-after", "stall-after"}, {"STALL-AFTER", "stall-after"}, {"redsi", "redis"}, {"ot", "out"}, {"tls-crt", "tls-cert"},
		{"foo", ""}, {"x", ""}, {"", ""}, {"stall", ""}, {"redis-url", ""},
	} {
		if got := Near(tt.word, flags); got != tt.want {
			t.Errorf("Near(%q) = %q, want %q", tt.word, got, tt.want)
		}
	}
	if got := Near("x", nil); got != "" {
		t.Errorf("Near of nothing is %q", got)
	}
}
