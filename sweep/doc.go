// Package sweep says which faults are worth trying on a service, and what came of them.
//
// [Derive] finds the section that a service goes through most often, in the
// ops of a run without faults. [Section.Cross] names its anchors (after the grant, before
// the write, at the reply of the commit ...), crosses them with the faults, and
// leaves out, each with the reason, those that could show nothing or nothing new. What is left are
// [Trial]s, each a flag of lockfaultd run. [NewRow] makes a row of the table of what a trial came to
// each time it was run; [Table] writes it.
//
// The package runs nothing, reads no clock and judges nothing: cmd/lockfaultd
// runs the trials, and report.json of each says what the judge found.
package sweep
