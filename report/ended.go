package report

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// leaseless reports whether locks were held and none of them had a lease: those of a
// session or a transaction, and those that are kept until they are given back.
func leaseless(f check.Facts) bool {
	held := slices.ContainsFunc(f.Locks, func(l check.LockFact) bool { return l.Grants > 0 && !l.Marker })
	return held && !slices.ContainsFunc(f.Locks, func(l check.LockFact) bool { return !l.Marker && longestLease(l) > 0 })
}

// nothingEnded is what LF401 says did not happen.
func nothingEnded(f check.Facts) string {
	if leaseless(f) {
		return "no lock was lost"
	}
	return "no lease ended"
}

// noneEnded is the same for a run of which the rules are not known.
func noneEnded(f check.Facts) string {
	if leaseless(f) {
		return nothingEnded(f) + " while held"
	}
	return "0 leases ended while held"
}

// endedOf says how many of what was granted ended, or was lost, while it was held.
func endedOf(f check.Facts) string {
	if leaseless(f) && f.Lost == f.EndedWhileHeld {
		return lostOf(f, many(f.Grants, "lock"))
	}
	said := fmt.Sprintf("%d of %s ended while held", f.EndedWhileHeld-f.Lost, many(f.Grants, "lease"))
	if f.Lost > 0 {
		said += ", and " + lostOf(f, "them")
	}
	return said
}

func lostOf(f check.Facts, all string) string {
	switch f.Lost {
	case 0:
		return fmt.Sprintf("0 of %s were lost while held", all)
	case 1:
		return fmt.Sprintf("1 of %s was lost while held: %s", all, lostHow(f, "its connection", "it"))
	}
	return fmt.Sprintf("%d of %s were lost while held: %s", f.Lost, all, lostHow(f, "their connection", "them"))
}

// lostHow says what the locks went by.
func lostHow(f check.Facts, connection, them string) string {
	forgot := "the server was made to forget " + them
	switch f.Forgotten {
	case 0:
		return connection + " ended"
	case f.Lost:
		return forgot
	}
	return connection + " ended, or " + forgot
}
