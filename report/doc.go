// Package report tells people and CI what a run came to. It takes what the
// judge found, which knows nothing of faults, lays beside it what was
// injected, and so makes the one verdict that needs both: LF401, the hazard
// was never exercised. From all of it follows the outcome: the exit status and
// the reason for it.
//
// A Run goes in, by value; Text, JSON, Markdown and JUnit each write it once to the
// writer they are given, in the order of the Run, so that the same Run makes
// the same bytes. Nothing of a Run is kept or changed. Instants are printed as
// the history has them, in nanoseconds since the daemon's start.
//
// The package judges nothing: it counts, groups and puts into words. It opens
// no file and no connection, and does not end the process.
package report
