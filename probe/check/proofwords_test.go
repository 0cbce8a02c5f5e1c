package check

import (
	"strings"
	"testing"
)

// proofOf returns the proofs of a code in a golden history.
func proofOf(t *testing.T, path, code string) (text string) {
	t.Helper()
	s, err := readScript("testdata/" + path + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Judge(s.in).Verdicts {
		if v.Code == code {
			text += v.Proof + "\n"
		}
	}
	if text == "" {
		t.Fatalf("%s: no %s", path, code)
	}
	return text
}

func TestWordsOfProofs(t *testing.T) {
	for _, c := range []struct {
		path, code, words string
		said              bool
	}{
		{"bad/LF104-released-before-commit", "LF104", "B had released its lock before its transaction committed (LF107)", true},
		{"bad/LF104-stale-writer", "LF104", "LF107", false},
		{"good/LF103-only-adds", "LF103", "needs no fence", true},
		{"good/LF103-blind-write", "LF103", "needs no fence", false},
		{"good/LF103-blind-write", "LF103", "No lost update came of it", true},
	} {
		if text := proofOf(t, c.path, c.code); strings.Contains(text, c.words) != c.said {
			t.Errorf("%s: %q said: %v, of %s", c.path, c.words, !c.said, text)
		}
	}
}
