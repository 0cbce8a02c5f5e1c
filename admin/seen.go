package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func (a *api) locks(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"locks": append([]Lock{}, a.parts.Seen.Locks()...)})
}

func (a *api) actors(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"actors": append([]Actor{}, a.parts.Seen.Actors()...)})
}

func (a *api) sessions(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"sessions": append([]Session{}, a.parts.Seen.Sessions()...)})
}

// labels are those of who is connected, as far as that is told.
func (a *api) labels() (out []string) {
	if a.parts.Seen == nil {
		return nil
	}
	for _, one := range a.parts.Seen.Actors() {
		out = append(out, one.Label)
	}
	return out
}

// scopes are what may be frozen.
var scopes = [...]string{"process", "tree", "cgroup"}

func (a *api) freeze(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Actor string `json:"actor"`
		For   string `json:"for"`
		Scope string `json:"scope"`
	}
	if !bodyOf(w, r, &b) {
		return
	}
	length, err := duration("for", b.For)
	if b.Scope == "" {
		b.Scope = scopes[0]
	}
	switch {
	case b.Actor == "":
		err = fmt.Errorf("actor: expected the label of a process, as /v1/actors has it")
	case err == nil && !slices.Contains(scopes[:], b.Scope):
		err = fmt.Errorf("scope: expected one of %s, found %q", strings.Join(scopes[:], ", "), b.Scope)
	}
	if err != nil {
		reply(w, http.StatusBadRequest, refused{err.Error()})
		return
	}
	frozen, err := a.parts.Freezing.Freeze(r.Context(), b.Actor, b.Scope, length)
	if err != nil {
		fail(w, err, a.labels)
		return
	}
	reply(w, http.StatusOK, frozen)
}

// A thawed is the answer to who has processes let go.
type thawed struct {
	Thawed int `json:"thawed"`
}

func (a *api) thaw(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Actor *string `json:"actor"`
	}
	if !bodyOf(w, r, &b) {
		return
	}
	label := ""
	if b.Actor != nil {
		if label = *b.Actor; label == "" {
			reply(w, http.StatusBadRequest, refused{"actor: expected the label of a process, or no such field: then all are thawed"})
			return
		}
	}
	n, err := a.parts.Freezing.Thaw(label)
	if err != nil {
		fail(w, err, a.labels)
		return
	}
	reply(w, http.StatusOK, thawed{n})
}

func (a *api) stop(w http.ResponseWriter, r *http.Request) {
	if bodyOf(w, r, &nothing{}) {
		reply(w, http.StatusOK, a.parts.Stopping.Stop())
	}
}
