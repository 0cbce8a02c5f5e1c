package lock

import "testing"

func TestShape(t *testing.T) {
	for key, want := range map[string]string{
		"":               "",
		"lock:7":         "lock:*",
		"lock:a7f:x":     "lock:*:x",
		"once-9":         "once-*",
		"größe:7":        "größe:*",
		"\xff:a":         "\xff:a",
		"\xff\xfe":       "\xff\xfe",
		"\xff1\xfe\x00b": "\xff*\xfe\x00b",
	} {
		if got := Shape(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("lock:7\xff")
	f.Fuzz(func(t *testing.T, key string) {
		got := Shape(key)
		if Shape(got) != got || len(got) > len(key) {
			t.Errorf("%q becomes %q, and that %q", key, got, Shape(got))
		}
	})
}

func TestKeysThatAreNoText(t *testing.T) {
	l := newTape()
	for _, kind := range []Kind{Acquire, Store, Renew, Release, Fence} {
		op := l.release("A", 1, "ta")
		op.Kind, op.Key, op.NX = kind, "\xff\xfe:\x80", kind == Acquire
		l.do(Instant(10), op, Done)
		s := NewSurvey(nil)
		s.Add(op)
	}
}
