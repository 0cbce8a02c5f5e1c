// Package alarm finds in lockfaultd's log what a good run has none of. Pure.
package alarm

import (
	"regexp"
	"strings"
)

// A Kind is what is wrong.
type Kind string

// The kinds.
const (
	Desync Kind = "desync" // a connection could not be followed to its end
	Gap    Kind = "gap"    // the history lacks something
	Error  Kind = "error"
	Panic  Kind = "panic"
)

var (
	gap = regexp.MustCompile(`^lockfaultd: the history lacks \d+ entries`)
	// What the Go runtime says before it ends a program, or the race detector.
	broke = regexp.MustCompile(`^(panic: |fatal error: |unexpected fault address |SIG[A-Z]+: |WARNING: DATA RACE)`)
)

// Of returns what a line complains of; "" for nothing. Of a connection that
// went desync the line of its own counts, not the sum at the end.
func Of(line string) Kind {
	switch {
	case broke.MatchString(line):
		return Panic
	case strings.Contains(line, `msg="desync: `):
		return Desync
	case gap.MatchString(line):
		return Gap
	case strings.Contains(line, "level=ERROR"):
		return Error
	}
	return ""
}
