package admin

import (
	"encoding/json"
	"errors"
	"net/http"
)

func (a *api) rules(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"rules": append([]Rule{}, a.parts.Rules.List()...)})
}

func (a *api) ruleNames() (names []string) {
	for _, r := range a.parts.Rules.List() {
		names = append(names, r.Name)
	}
	return names
}

// bounded is the part of a body that bounds how far a rule acts.
type bounded struct {
	For   *string `json:"for"`
	Times *int    `json:"times"`
}

func (b bounded) read() (out Bounds, err error) {
	if b.For != nil {
		if out.For, err = duration("for", *b.For); err != nil {
			return out, err
		}
	}
	if b.Times != nil {
		if out.Times = *b.Times; out.Times < 1 {
			return out, errors.New("times: expected a whole number from 1")
		}
	}
	return out, nil
}

// added is the body of a rule that is to be added.
type added struct {
	Rule  json.RawMessage `json:"rule"`
	Name  string          `json:"name"`
	Armed *bool           `json:"armed"`
	bounded
}

func (b added) read() (n NewRule, err error) {
	n = NewRule{Name: b.Name, Off: b.Armed != nil && !*b.Armed}
	if n.Bounds, err = b.bounded.read(); err != nil {
		return n, err
	}
	switch {
	case n.Off && n.Bounds != Bounds{}:
		return n, errors.New("for and times say how far a rule acts that is armed; expected them when it is, or no \"armed\": false")
	case len(b.Rule) > 0 && b.Rule[0] == '{':
		n.Fields = b.Rule
		return n, nil
	case len(b.Rule) > 0 && b.Rule[0] == '"':
		err = json.Unmarshal(b.Rule, &n.Text)
		return n, err
	}
	return n, errors.New(`rule: expected a text such as "--freeze-before write#1=2s", or an object with the fields of a rule in a configuration file`)
}

func (a *api) addRule(w http.ResponseWriter, r *http.Request) {
	var b added
	if !bodyOf(w, r, &b) {
		return
	}
	n, err := b.read()
	if err != nil {
		reply(w, http.StatusBadRequest, refused{err.Error()})
		return
	}
	a.answer(w, http.StatusCreated)(a.parts.Rules.Add(n))
}

func (a *api) removeRule(w http.ResponseWriter, r *http.Request) {
	if bodyOf(w, r, &nothing{}) {
		a.answer(w, http.StatusOK)(a.parts.Rules.Remove(r.PathValue("name")))
	}
}

func (a *api) armRule(w http.ResponseWriter, r *http.Request) {
	var b bounded
	if !bodyOf(w, r, &b) {
		return
	}
	bounds, err := b.read()
	if err != nil {
		reply(w, http.StatusBadRequest, refused{err.Error()})
		return
	}
	a.answer(w, http.StatusOK)(a.parts.Rules.Arm(r.PathValue("name"), bounds))
}

func (a *api) disarmRule(w http.ResponseWriter, r *http.Request) {
	if bodyOf(w, r, &nothing{}) {
		a.answer(w, http.StatusOK)(a.parts.Rules.Disarm(r.PathValue("name")))
	}
}

// answer tells of a rule, or why there is none to tell of.
func (a *api) answer(w http.ResponseWriter, status int) func(Rule, error) {
	return func(r Rule, err error) {
		if err != nil {
			fail(w, err, a.ruleNames)
			return
		}
		reply(w, status, r)
	}
}
