package check

import (
	"strings"
	"testing"
)

// What is said of a refusal: a stale holder's was kept from writing, a current one's
// was no defence, and of neither it is not said that its holder was stale.
func TestWhoWasRefused(t *testing.T) {
	const stale, current, other = "A stale holder was kept from writing", "A was the current holder", "It wrote over nothing"
	for name, want := range map[string][]string{
		"LF201-fence-at-the-write":               {stale},
		"LF201-refused-claim":                    {stale},
		"LF201-when-its-lease-was-over":          {stale},
		"LF201-lock-and-fence-lost-at-once":      {current, stale},
		"LF201-current-holders-of-old":           {current, current, current, current},
		"fence-counter-starts-again":             {current},
		"LF201-by-its-own-fence":                 {other},
		"LF201-version-may-be-back":              {other},
		"LF201-perhaps-granted-since":            {other},
		"LF201-answered-when-its-lease-was-over": {other},
	} {
		s, err := readScript("testdata/good/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range Judge(s.in).Verdicts {
			if v.Code != "LF201" {
				continue
			}
			if len(want) == 0 || !strings.Contains(v.Proof, want[0]) {
				t.Errorf("%s: want %q next, got %s", name, want, v.Proof)
				break
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Errorf("%s: %q is missing", name, want)
		}
	}
}
