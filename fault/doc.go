// Package fault holds the rules: what was asked for, and when to do it.
//
// A rule says at which moments something may happen and what. [Parse] compiles
// the text of a rule flag into a [Rule] and refuses what could never work, with
// the column and what was expected there. [NewPlan] arms an ordered list of
// rules under [Limits]. From then on the engine describes every [Moment], the
// point just before an op is forwarded or just before its reply is, to
// [Plan.Decide], and carries out the [Decision] that it gets. The clock's own
// events go through [Plan.NextTick] and [Plan.Tick]. When the effect of a
// decision is over, whatever became of it, the engine says so by [Plan.Ended].
// [Plan.Uses] tells the report what each rule saw, did and could not do.
//
// Rules may come and go while the plan is at work: [Plan.Add], [Plan.Remove],
// [Plan.Reload]; [Plan.Arm] has one act for a time or a number of times, and
// [Plan.Disarm] has it neither act nor count. Nothing of that changes what another
// rule counts or draws. [Plan.Hand] decides what somebody asks for beside them.
//
// Of each moment, the armed rules are asked in the order of the list, and the first
// one that matches, could fire and selects the event wins. A rule counts an
// event, per matched name, only if it could have fired at it; everything else
// is barred, with a reason, and counted apart. An event that an earlier rule
// has taken is barred for the later ones ("earlier rule"): so #3 is always the
// third event at which the rule was free to act, and never lost to a rival.
//
// Time is an argument: an instant of the engine's clock, never running
// backwards. A draw is a hash of the seed, the rule's number, the matched name
// and the ordinal, so the order in which names arrive changes no draw. The
// same calls give the same decisions.
//
// A Plan is not safe for concurrent use, except for [Plan.Wants],
// [Plan.KeysOf], [Plan.CouldTable] and [Plan.Epoch]; its owner has a mutex. It keeps no
// reference to an op after Decide has returned.
//
// The package does not wait, freeze, read a clock or do I/O, and it does not
// know whether a decision could be carried out: proxy and freezer do.
package fault
