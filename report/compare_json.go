package report

import (
	"encoding/json"
	"fmt"
	"io"
)

type jsonComparison struct {
	Schema   int            `json:"schema"`
	Exit     int            `json:"exit"`
	Outcome  string         `json:"outcome"`
	Why      string         `json:"why"`
	A        jsonSide       `json:"a"`
	B        jsonSide       `json:"b"`
	Unlike   []string       `json:"unlike"`
	Verdicts []jsonCompared `json:"verdicts"`
	Figures  []jsonPair     `json:"figures"`
}

type jsonSide struct {
	From    string `json:"from"`
	Exit    int    `json:"exit"`
	Outcome string `json:"outcome"`
	Why     string `json:"why"`
}

type jsonCompared struct {
	Code     string       `json:"code"`
	Name     string       `json:"name"`
	Standing string       `json:"standing"`
	Worse    bool         `json:"worse"`
	NewOn    []string     `json:"new_on,omitempty"` // where it is bad in B and was not in A, of a code that was bad in A
	A        []jsonLevels `json:"a"`
	B        []jsonLevels `json:"b"`
}

type jsonLevels struct {
	Level    string `json:"level"`
	Class    string `json:"class"`
	Harm     bool   `json:"harm"`
	Fails    bool   `json:"fails"`
	Accepted bool   `json:"accepted"`
	Count    int    `json:"count"`
	Victims  int    `json:"victims"`
}

// A jsonPair has null for what is not known.
type jsonPair struct {
	Name string `json:"name"`
	A    *int64 `json:"a"`
	B    *int64 `json:"b"`
}

// CompareJSON writes the comparison as docs/compare.schema.json has it. It returns the
// writer's first error.
func CompareJSON(w io.Writer, c Comparison) error {
	o := c.Outcome()
	j := jsonComparison{Schema: Schema, Exit: o.Exit, Outcome: o.Word, Why: o.Why, A: c.A.side(c.NameA), B: c.B.side(c.NameB), Unlike: c.unlike(),
		Verdicts: each(c.compared(), compared.json),
		Figures:  each(c.pairs(), func(p pair) jsonPair { return jsonPair{p.name, p.a.json(), p.b.json()} })}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(j); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

func (s Saved) side(name string) jsonSide { return jsonSide{name, s.j.Exit, s.j.Outcome, s.j.Why} }

func (c compared) json() jsonCompared {
	j := jsonCompared{Code: c.code, Name: c.name, Standing: c.standing(), Worse: c.worse(), A: each(c.a, jsonVerdict.levels), B: each(c.b, jsonVerdict.levels)}
	if bad(c.a) {
		j.NewOn = c.newWhere
	}
	return j
}

func (v jsonVerdict) levels() jsonLevels {
	return jsonLevels{v.Level, v.Class, v.Harm, v.Fails, v.Accepted != "", v.Count, v.Victims}
}

func (f figure) json() *int64 {
	if !f.known {
		return nil
	}
	return &f.value
}
