package report

import (
	"encoding/json"
	"fmt"
	"io"
)

type jsonSeries struct {
	Schema      int             `json:"schema"`
	Exit        int             `json:"exit"`
	Outcome     string          `json:"outcome"`
	Why         string          `json:"why"`
	Interrupted bool            `json:"interrupted,omitempty"`
	Asked       int             `json:"asked"`
	Stable      int             `json:"stable"`
	Alike       []alike         `json:"alike"`
	Verdicts    []jsonFrequency `json:"verdicts"`
	Figures     []jsonRanged    `json:"figures"`
	Runs        []jsonRun       `json:"runs"`
	Seed        uint64          `json:"seed"`
	Repeat      string          `json:"repeat"`
	Command     []string        `json:"command"`
	Files       []string        `json:"files"`
}

type jsonFrequency struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Level string `json:"level"`
	Class string `json:"class"`
	Harm  bool   `json:"harm"`
	Fails bool   `json:"fails"` // in one of the runs at least
	Runs  int    `json:"runs"`
	Least int    `json:"least"` // of the runs in which it is
	Most  int    `json:"most"`
}

// A jsonRanged has null where no run knows the figure.
type jsonRanged struct {
	Name  string `json:"name"`
	Runs  int    `json:"runs"` // that know it
	Least *int64 `json:"least"`
	Most  *int64 `json:"most"`
}

type jsonRun struct {
	Run     int         `json:"run"`
	Exit    int         `json:"exit"`
	Outcome string      `json:"outcome"`
	Why     string      `json:"why"`
	Counts  []jsonTimes `json:"verdicts"`
	Folder  string      `json:"folder,omitempty"`
}

type jsonTimes struct {
	Code  string `json:"code"`
	Level string `json:"level"`
	Count int    `json:"count"`
}

// SeriesJSON writes runs.json. It returns the writer's first error.
func SeriesJSON(w io.Writer, s Series) error {
	o := s.Outcome()
	j := jsonSeries{Schema: Schema, Exit: o.Exit, Outcome: o.Word, Why: o.Why, Interrupted: s.Interrupted, Asked: s.Asked, Stable: s.Stable(),
		Alike: each(s.alikes(), func(a alike) alike { return a }),
		Verdicts: each(s.frequencies(), func(f frequency) jsonFrequency {
			return jsonFrequency{f.Code, f.Name, f.Level, f.Class, f.Harm, f.Fails, f.runs, f.least, f.most}
		}),
		Figures: each(s.ranges(), ranged.json),
		Seed:    s.Seed, Repeat: s.Repeat, Command: list(s.Command), Files: list(s.Files),
	}
	j.Runs = make([]jsonRun, len(s.Runs))
	for i, r := range s.Runs {
		j.Runs[i] = jsonRun{i + 1, r.j.Exit, r.j.Outcome, r.j.Why, each(r.j.Verdicts, func(v jsonVerdict) jsonTimes { return jsonTimes{v.Code, v.Level, v.Count} }), s.folder(i + 1)}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(j); err != nil {
		return fmt.Errorf("write runs: %w", err)
	}
	return nil
}

func (r ranged) json() jsonRanged {
	if r.runs == 0 {
		return jsonRanged{Name: r.Name}
	}
	return jsonRanged{r.Name, r.runs, &r.least, &r.most}
}
