// Package history is the record of a run: what was seen, in order, as lines of
// JSON that a person can read and a later version still can.
//
// A [Writer] appends one line for the header, then one for each actor, op,
// injection, turn, end of a session, and the like and gap, as it is told of them; [Read] gives them
// back. Ops are written when they are finished, so lines come in the order in
// which replies were delivered; Seq and ReplySeq tell the order in which things
// happened. docs/history.md describes every field.
//
// What it keeps of values is a keyed hash. The integer beside it is written only
// where the caller allowed it for that table and column, for those have to be
// summed or ordered; elsewhere a column's integers are shifted by a secret of the
// writer's own, which leaves their differences. Lock keys, table and column names are written in clear,
// since a report must name them.
//
// Lines are counted from the header, which is 0. A [Ring] keeps the last of them for
// those that read while it is written.
//
// Reading ignores types of line and fields that it does not know, and refuses a
// newer major version of the schema. The package judges nothing.
package history
