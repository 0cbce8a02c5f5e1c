// Package schedule says what a run decided in words that mean the same in the
// next run, so that it can be decided again.
//
// A [Book] is told of every moment at which a rule might act, in their order,
// of what was decided and of how that ended. It gives each moment a [Key]: who
// did it, under which lock, what it was, and the how-manieth of its kind. Nothing
// in a key is a pid, an address or a time. Who somebody is goes by the order in
// which processes were first granted the lock (holder:1, holder:2 ...), with the
// name in between that they call themselves, if they do (holder:billing:1); before
// that by the order in which they came (process:python3.11:2).
//
// With a [Schedule] to repeat, the book says at each moment whether a step of
// that is due ([Book.Moment]), and what was different first ([Book.Diverged]).
// A step is due where its key says; steps of different processes may come in
// another order than they did.
//
// [Schedule.Write] and [Read] are schedule.json, which docs/replay.md describes: the same
// steps give the same bytes, and what is wrong with a file is said with its line.
//
// The package reads no clock and does no I/O but through the writer it is given,
// and it does not know how a decision is carried out: proxy does. A Book is not
// safe for concurrent use; its owner has a mutex.
package schedule
