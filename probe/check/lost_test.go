package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a lock without a lease no proof speaks of the end of one.
func TestAProofOfALostLockNamesNoLease(t *testing.T) {
	for name, c := range map[string]struct{ code, at, want string }{
		"in flight":  {"LF103", "550:800-801", "It was sent at 550.000 ms, when A may still have had the lock: it was late on its way (kind a)."},
		"sent later": {"LF103", "750:800-801", "It was sent at 750.000 ms, after B was granted: A had not noticed (kind b)."},
	} {
		path := filepath.Join(t.TempDir(), "script.txt")
		text := "A lock advisory:42 10-11\nB lock advisory:42 600-601\nB unlock advisory:42 640-641\n" +
			"A update counter[id=1] value:=8 " + c.at + " @1\nA unlock advisory:42 810-?\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readScript(path)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, v := range Judge(s.in).Verdicts {
			found = found || v.Code == c.code && strings.Contains(v.Proof, c.want) && !strings.Contains(v.Proof, "lease")
		}
		if !found {
			t.Errorf("%s: no %s says %q: %+v", name, c.code, c.want, Judge(s.in).Verdicts)
		}
	}
}

// Whose lock was lost is to blame, although the lawful holder wrote last.
func TestTheBlameForALostLockIsProven(t *testing.T) {
	for code, want := range map[string]string{
		"LF104": "A's lock had gone by 601.000 ms, 199.000 ms before",
		"LF106": "Let A be term 1 of advisory:42 (A)",
	} {
		s, err := readScript("testdata/bad/" + code + "-advisory-lock-lost.txt")
		if err != nil {
			t.Fatal(err)
		}
		r := Judge(s.in)
		if r.Facts.Lost != 1 || r.Facts.Locks[0].Lost != 1 {
			t.Errorf("%+v", r.Facts)
		}
		for _, v := range r.Verdicts {
			if v.Code == code && (!strings.Contains(v.Proof, want) || v.Terms[0] != 1) {
				t.Errorf("%+v", v)
			}
		}
	}
}

// Each proof about a lost lock stands on the ops that it cites.
func TestTheCitedOpsOfALostLock(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*advisory*.txt")
	if err != nil || len(paths) < 6 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		s, err := readScript(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range Judge(s.in).Verdicts {
			if v.Level != Proven || v.Code == "LF403" {
				continue
			}
			if r := alone(s.in, v, false); level(r, v.Code) != "every" {
				t.Errorf("%s: %s is %s by the ops that it cites %v: %s", path, v.Code, level(r, v.Code), v.Ops, summary(r))
			}
		}
	}
}
