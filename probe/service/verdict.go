package service

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Verdict is one that was told, of the history's judge or of a watch.
type Verdict struct {
	N         uint64        `json:"n"`  // from 1, in the order of telling
	ID        string        `json:"id"` // of what it says: the same evidence has the same
	At        time.Time     `json:"at"` // when it was told
	Run       string        `json:"run,omitempty"`
	Invariant string        `json:"invariant,omitempty"` // the watch's name; "": the judge's
	Code      string        `json:"code"`
	Name      string        `json:"name"`
	Class     check.Class   `json:"class"`
	Level     check.Level   `json:"level"`
	Harm      bool          `json:"harm"`
	Lock      string        `json:"lock,omitempty"`
	Table     string        `json:"table,omitempty"`
	Terms     []lock.TermID `json:"terms,omitempty"`
	Ops       []uint64      `json:"ops,omitempty"`
	Count     int           `json:"count"`
	Proof     string        `json:"proof,omitempty"`
}

// ofJudge makes the judge's verdict one of ours.
func ofJudge(run string, v check.Verdict) Verdict {
	return Verdict{
		ID: identity(run, v.Code, v.Level, v.Lock, v.Table, v.Ops), Run: run, Code: v.Code, Name: v.Name, Class: v.Class, Level: v.Level,
		Harm: v.Harm, Lock: v.Lock, Table: v.Table, Terms: v.Terms, Ops: v.Ops, Count: max(1, v.Count), Proof: v.Proof,
	}
}

// identity is a short name of what a verdict is about.
func identity(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:8])
}
