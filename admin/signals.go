package admin

import (
	"net/http"
	"slices"
)

// Gates are what signals are given to.
type Gates interface {
	// Signals lists the names that the armed rules wait for, sorted.
	Signals() []string
	// Waiting returns how many gates wait for one of them now, and whether it is kept for the next that will.
	Waiting(name string) (gates int, kept bool)
	// Signal gives one of them, and returns how many gates waited for it and how many of those it opened.
	Signal(name string) (heard, opened int)
}

// given is the answer to a signal.
type given struct {
	Signal string `json:"signal"`
	Heard  int    `json:"heard"`  // gates that waited for it
	Opened int    `json:"opened"` // of these, those that wait for nothing else any more
	Kept   bool   `json:"kept"`   // none waited: the first that comes to has it
}

// unknown is the answer to a signal that no rule waits for.
type unknown struct {
	Error   string   `json:"error"`
	Signals []string `json:"signals"` // those that are waited for
}

// awaited is a signal that rules wait for, as it stands.
type awaited struct {
	Signal  string `json:"signal"`
	Waiting int    `json:"waiting"` // gates that are held by it now
	Kept    bool   `json:"kept"`    // it was given and no gate has waited for it yet
}

func (a *api) signals(w http.ResponseWriter, _ *http.Request) {
	list := []awaited{}
	for _, name := range a.parts.Gates.Signals() {
		gates, kept := a.parts.Gates.Waiting(name)
		list = append(list, awaited{name, gates, kept})
	}
	reply(w, http.StatusOK, map[string]any{"signals": list})
}

func (a *api) signal(w http.ResponseWriter, r *http.Request) {
	name, names := r.PathValue("name"), a.parts.Gates.Signals()
	if !slices.Contains(names, name) {
		reply(w, http.StatusNotFound, unknown{"no armed rule waits for a signal of that name", append([]string{}, names...)})
		return
	}
	heard, opened := a.parts.Gates.Signal(name)
	reply(w, http.StatusOK, given{name, heard, opened, heard == 0})
}
