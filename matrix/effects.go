package main

import (
	"fmt"
	"slices"
	"strings"
)

// The witnesses that can tell alone what scripts do.
var effective = []string{"monitor", "probe"}

// A difference is what a witness alone is known to tell otherwise than the library.
type difference struct {
	witness, library string
	field            string // of counts
	most             int
	why              string
}

// differences are those that there are for a reason; docs/witnesses.md lists them.
func differences() []difference { return nil }

// watched are the clean rows of the locks in Redis, told by one witness each, with
// no text of a script read.
func watched(all []subject, witnesses []string) []trial {
	var out []trial
	for _, l := range all {
		if _, has := l.rows[clean]; !has || l.held != "" {
			continue
		}
		for _, w := range witnesses {
			out = append(out, trial{subject: l, row: clean, sections: 20, effects: w, known: differences()})
		}
	}
	return out
}

// watchedQuickly are those of them that make test runs.
func watchedQuickly(all []subject) []trial {
	some := slices.DeleteFunc(slices.Clone(all), func(l subject) bool { return l.name != "redsync" && l.name != "redis-py" })
	return watched(some, effective)
}

// witnesses reads -effects.
func witnesses(list string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, w := range names {
		if !slices.Contains(effective, w) {
			return nil, fmt.Errorf("-effects: what is %q? expected some of %s", w, strings.Join(effective, ", "))
		}
	}
	return names, nil
}

// label is the row as it is printed.
func (t trial) label() string {
	if t.effects != "" {
		return t.effects
	}
	return t.row
}

// witnessed are the flags that say who tells what scripts do.
func (t trial) witnessed(usual string) []string {
	if t.effects != "" {
		return []string{"--witness", t.effects, "--effects-only"}
	}
	return []string{"--witness", usual}
}

// excuse takes what is a known difference out of what the history has.
func (t trial) excuse(seen, want counts) counts {
	got, said := seen.fields(), want.fields()
	for i, f := range got {
		off := *f.n - *said[i].n
		for _, d := range t.known {
			if d.witness == t.effects && d.library == t.name && d.field == f.name && max(off, -off) <= d.most {
				*f.n = *said[i].n
			}
		}
	}
	return seen
}
