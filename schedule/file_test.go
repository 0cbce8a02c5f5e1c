package schedule

import (
	"strings"
	"testing"
)

const sound = `{
  "schema": "1.0",
  "max_frozen": 1,
  "rules": [
    {
      "flag": "freeze-before",
      "rule": "write#1=until:lease-expired+next-write"
    }
  ],
  "steps": [
    {
      "step": 1,
      "actor": "holder:1",
      "lock": "lock:counter",
      "event": "write",
      "at": "before",
      "ordinal": 1,
      "section": 1,
      "since": [
        "acquire",
        "read"
      ],
      "statement": "UPDATE counter",
      "rule": 1,
      "fault": "freeze",
      "scope": "process",
      "until": "lease-expired+next-write",
      "timeout": "5s",
      "outcome": "landed"
    }
  ]
}
`

func TestAFileIsWrittenAsItWasRead(t *testing.T) {
	s, err := Read([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	if got := encoded(s); got != sound {
		t.Errorf("got\n%s\nwant\n%s", got, sound)
	}
	empty := &Schedule{Schema: Schema, MaxFrozen: 1, Rules: []Rule{}, Steps: []Step{}}
	if again, err := Read([]byte(encoded(empty))); err != nil || encoded(again) != encoded(empty) {
		t.Errorf("a run without rules: %v", err)
	}
}

func TestABadFileIsRefusedWithItsLine(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{sound, "", "line 1: the file ends too early; expected an object"},
		{sound, "[]", "line 1: expected an object"},
		{`"steps": [`, `"cut": 3, "steps": [`, "line 10: cut: 3 decisions of the run are not in the file; expected a whole schedule"},
		{`"steps": [`, `"cut": "3", "steps": [`, "line 10: cut: expected int, found a JSON string"},
		{`"1.0"`, `"2.0"`, `line 2: schema "2.0"; expected 1.0, or another 1.x`},
		{`"1.0"`, `1`, "line 2: schema: expected string, found a JSON number"},
		{`"max_frozen": 1`, `"max_forzen": 1`, "line 3: max_forzen is unknown, or there twice; expected schema, max_frozen"},
		{`"max_frozen": 1`, `"max_frozen": 1, "max_frozen": 1`, "line 3: max_frozen is unknown, or there twice"},
		{`"max_frozen": 1,`, ``, "max_frozen is missing; expected a schedule.json"},
		{`"rules": [`, `"rules": {`, "line 4: invalid character '{'"},
		{`"flag": "freeze-before"`, `"falg": "freeze-before"`, `line 5: rules[1]: unknown field "falg"`},
		{`"flag": "freeze-before"`, `"flag": ""`, "line 5: rules[1]: expected a flag such as freeze-before, and a rule"},
		{`"ordinal": 1`, `"ordinal": 0`, "line 11: steps[1]: ordinal 0; expected 1 or more"},
		{`"ordinal": 1`, `"ordinal": "one"`, "line 17: steps[1].ordinal: expected int, found a JSON string"},
		{`"step": 1`, `"step": 3`, "line 11: steps[1]: step 3; expected step 1, since they are numbered"},
		{`"at": "before"`, `"at": "beside"`, `at "beside"; expected before, after or clock`},
		{`"outcome": "landed"`, `"outcome": ""`, "actor, event, fault or outcome is missing"},
		{`"rule": 1,`, `"rule": 2,`, "rule 2; expected one of the 1 rules"},
		{`"timeout": "5s"`, `"timeout": "5"`, `steps[1]: "5": expected a duration such as 800ms`},
		{"}\n", "}\n{}", "line 33: expected the end of the file behind the schedule"},
		{"    }\n  ]\n}\n", "    }", "the file ends too early"},
	} {
		text := sound
		if i := strings.LastIndex(text, tt.old); i >= 0 {
			text = text[:i] + tt.new + text[i+len(tt.old):]
		}
		_, err := Read([]byte(text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: got %v, want %q", tt.new, tt.old, err, tt.want)
		}
	}
}

func TestTwoStepsOfOneMomentAreRefused(t *testing.T) {
	begin, end := strings.Index(sound, "    {\n      \"step\""), strings.LastIndex(sound, "\n  ]")
	step := sound[begin:end]
	text := sound[:end] + ",\n" + strings.Replace(step, `"step": 1`, `"step": 2`, 1) + sound[end:]
	if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), "line 31: steps[2]: the same moment as step 1; expected another") {
		t.Errorf("got %v", err)
	}
}
