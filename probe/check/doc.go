// Package check is the judge: what do the ops of a history prove?
//
// [Judge] takes ops, the ends of sessions, gaps in the record, what the user
// declared and the invariants' readings. It replays the ops through the ledger,
// in the order in which the daemon saw them, collects what each term read and
// wrote, and answers with facts (what was seen), verdicts (what follows from
// it, with the proof in words) and figures for each counter and fence.
//
// It goes through a history twice. A [Survey] finds out what has to be known of the
// whole: how statements name their rows, and which keys are locks. A [Judging] then
// takes the entries one by one. It keeps in view what something that is still going
// on may touch, judges the rest, each thing once, and forgets it: its memory depends
// on what is open and not on how long the history is. What goes on for longer than
// it keeps ops is judged from what is left, and never PROVEN. What only the whole can
// tell (that a column counts, that a key is no lock) is decided at the end, and
// what rests on it waits until then.
//
// What it finds does not depend on how much it has in view at once. The exception is
// what was never answered: it may have happened at any time since, and the orders
// with it are gone through only while all of that is in view. In a smaller view
// nothing is proven that the whole does not prove, and it may be less. A limit that
// was met is among the facts.
//
// The judge is blind: it does not know what was injected, and would not say
// anything else if it did. What lockfaultd itself did to a lock is an op like others,
// which no client sent. It is a pure function of its input: the same history
// gives the same result, on any machine and at any time.
//
// About time and order it claims no more than the instants allow. An op took
// effect somewhere between being forwarded and being answered; a write takes
// effect when its transaction commits; what was never answered may have
// happened. A verdict is PROVEN only if it holds wherever in those intervals the
// effects lay; LIKELY and POSSIBLE are for what does not reach that. Across a
// gap in the record nothing is more than LIKELY.
//
// Each code has a function of its own, a method of the case that is in view; see
// kase for what it may rely on.
//
// It does not read a database or a clock, and does not decide whether a run has
// failed: package report does that, from the verdicts.
package check
