package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client asks for what is answered at once.
var client = http.Client{Timeout: 10 * time.Second}

// ask sends a request, with a body unless that is nil, and reads the answer into out unless that is nil.
func ask(ctx context.Context, method, url string, body, out any) error {
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, &b)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("ask %s %s: %w", method, url, err)
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("ask %s %s: %s: %s", method, url, answer.Status, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("ask %s %s: %w: %s", method, url, err, text)
	}
	return nil
}

// until polls until it is so, for as long as patience.
func until(ctx context.Context, patience time.Duration, what string, so func() (bool, error)) error {
	end := time.Now().Add(patience)
	for {
		ok, err := so()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %v: %v", what, patience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ready waits until a daemon says that it is.
func (s *theatre) ready(ctx context.Context, url string) error {
	return until(ctx, time.Minute, "readiness of "+url, func() (bool, error) {
		err := ask(ctx, http.MethodGet, url+"/readyz", nil, nil)
		return err == nil, err
	})
}

// A group is verdicts of one code and level, as probe counts them.
type group struct {
	Code, Level, Lock, Table, Invariant string
	Harm                                bool
	Verdicts, Count                     int
}

// A findings is what probe has told so far.
type findings struct {
	Groups []group
	Missed int
}

func (s *theatre) findings(ctx context.Context) (f findings, err error) {
	err = ask(ctx, http.MethodGet, s.watcher+"/v1/report", nil, &f)
	return f, err
}

// lost is how many lost updates are proven, and others everything else that is harm. What
// the counter lacks by them is told once: nobody makes up for it.
func (f findings) lost() (lost int, others []group) {
	for _, g := range f.Groups {
		switch {
		case g.Code == "LF104" && g.Level == "PROVEN" && g.Table == "counter":
			lost += g.Count
		case g.Harm && !(g.Code == "LF403" && g.Invariant == "counter" && g.Verdicts == 1):
			others = append(others, g)
		}
	}
	return lost, others
}
