package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The witnesses that can tell alone what scripts do.
var effective = []string{"monitor", "probe"}

// watched are the clean rows of the locks in Redis, told by one witness each, with
// no text of a script read.
func watched(all []subject, witnesses []string) []trial {
	var out []trial
	for _, l := range all {
		if _, has := l.rows[clean]; !has || l.held != "" {
			continue
		}
		for _, w := range witnesses {
			out = append(out, trial{subject: l, row: clean, sections: 20, effects: w})
		}
	}
	return out
}

// watchedQuickly are those of them that make test runs.
func watchedQuickly(all []subject) []trial {
	some := slices.DeleteFunc(slices.Clone(all), func(l subject) bool { return l.name != "redsync" && l.name != "redis-py" })
	return watched(some, effective)
}

// A difference is what a witness alone is known to tell otherwise than texts do;
// docs/witnesses.md lists them.
type difference struct {
	witness, subject string
	keys             string // glob of keys that are taken for locks
	blind            bool   // the lock's own key is not looked at
}

// differences are all that there are for a reason.
func differences() []difference {
	return []difference{
		// What its processes write again and again, to last for a while each time.
		{"probe", "asynq", "asynq:*", false},
		// Its scripts make the lock's key up; that of the job is among KEYS.
		{"probe", "bullmq", "bull:count:*", true},
	}
}

// tolerates reports whether a key may be taken for a lock.
func (t trial) tolerates(key string) bool {
	return slices.ContainsFunc(differences(), func(d difference) bool {
		like, _ := path.Match(d.keys, key)
		return like && d.witness == t.effects && d.subject == t.name
	})
}

// certain leaves of verdicts those that are proven to be harm or a hazard, if the
// history may lack ops: the others may come of that.
func (o *outcome) certain(verdicts string) string {
	if o.slack() == 0 {
		return verdicts
	}
	return strings.Join(slices.DeleteFunc(strings.Split(verdicts, ", "), func(v string) bool {
		return strings.Contains(v, " ") || strings.HasPrefix(v, "LF4")
	}), ", ")
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
		return []string{"--witness", t.effects, "--effects-only", "--verbose"}
	}
	return []string{"--witness", usual, "--verbose"}
}

// missedIn reads, of what lockfaultd says at its end, of how many calls its witness
// knows that it has not seen them, or not in time.
func missedIn(said string) (n int) {
	for _, m := range missed.FindAllStringSubmatch(said, -1) {
		k, _ := strconv.Atoi(m[1])
		n += k
	}
	return n
}

var missed = regexp.MustCompile(`\b(?:late|unseen):(\d+)`)

// slack is how many ops the history may lack: those that looks at the keys have
// missed and know that they have. MONITOR misses nothing, however late it is.
func (o *outcome) slack() int {
	if o.effects == "probe" {
		return o.missed
	}
	return 0
}

// excuse takes what the history may lack for seen.
func (o *outcome) excuse(seen, want counts) counts {
	if slices.ContainsFunc(differences(), func(d difference) bool { return d.blind && d.witness == o.effects && d.subject == o.name }) {
		return want
	}
	got, said, left := seen.fields(), want.fields(), o.slack()
	for i, f := range got {
		if short := *said[i].n - *f.n; short > 0 && short <= left {
			left -= short
			*f.n = *said[i].n
		}
	}
	return seen
}
