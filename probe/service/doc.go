// Package service watches what must hold while services work.
//
// A [Service] follows the history of a daemon, from a [Source]: the event stream of its admin API ([Stream]) or the files
// that it writes ([Folder]). Each line goes to a [Judge] (check.Live), which tells verdicts as soon as what they rest on is
// over. Beside that it looks at the databases themselves, each [Watch] as often as its config says, and tells once of each
// episode in which something does not hold.
//
// One goroutine, the desk, owns all that is judged: sources and watches hand over to it what they saw, with the time at
// which they saw it, and HTTP reads what it publishes. After each judging the desk waits four times as long as that took, so
// that it takes a fifth of a processor at most; while many lines wait, as long as it took; and with too many not at all, but
// then it takes no line before those that it has are judged.
//
// What must outlast a kill is in a folder ([OpenStore]). First the lines that the judge needs again are written, then
// verdicts together with the instant up to which the judge has told of everything: one line, one write. Whoever begins
// anew from there loses no verdict and tells none twice. A verdict counts as told once it is on the disk.
//
// What could not be seen (a stream that broke, a database that does not answer) is a gap with its two ends, and in the
// report: nothing is claimed about it.
//
// The package knows nothing of what was injected, and imports neither fault, proxy nor freezer.
package service
