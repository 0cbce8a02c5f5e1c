package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Suggest makes three rules to try from what was seen, each with its flag and
// quoted for a shell: a pause before the writes of the table that is written
// most, one after the grants of the lock that is granted most, and one after
// the reads. It returns none if no lock was seen, since a rule made of nothing
// would match nothing.
func Suggest(f check.Facts) []string {
	l, ok := busiestLock(f.Locks)
	if !ok {
		return nil
	}
	key := lockGlob(l, f.Locks)
	all := []string{
		tableRule(f, "--freeze-before", "write", "#*/20", writesOf),
		fmt.Sprintf("--stall-after %s", quote(fmt.Sprintf("acquire(%s)#1-3=%s", key, afterGrant(l)))),
		tableRule(f, "--freeze-after", "read", "#1-6", readsOf),
		fmt.Sprintf("--freeze-after %s", quote(fmt.Sprintf("tick(1.5s)#1-6=%s", pastLease(l)))),
		fmt.Sprintf("--freeze-before %s", quote(fmt.Sprintf("release(%s)#1-3=%s", key, afterGrant(l)))),
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return all[:3]
}

// suggestCounters proposes to count the integers that sections read and wrote,
// at most two of the table that is written most.
func suggestCounters(f check.Facts) []string {
	var best check.TableFact
	for _, t := range f.Tables {
		if len(t.Numbers) > 0 && (len(best.Numbers) == 0 || t.Writes > best.Writes) {
			best = t
		}
	}
	var out []string
	for _, column := range best.Numbers[:min(2, len(best.Numbers))] {
		out = append(out, counterFlag(best.Table, column, best.Where))
	}
	return out
}

// counterFlag is the flag that names a number, its row still to be filled in.
func counterFlag(table, column, where string) string {
	if where == "" {
		where = "..."
	}
	return "--counter " + quote(plain("SELECT "+column+" FROM "+table+" WHERE "+where))
}

func writesOf(t check.TableFact) int { return t.Writes }
func readsOf(t check.TableFact) int  { return t.Reads }

// tableRule aims at the table with the most of something; "" if none has any.
func tableRule(f check.Facts, flag, event, sel string, of func(check.TableFact) int) string {
	var best check.TableFact
	for _, t := range f.Tables {
		if of(t) > of(best) && printable(t.Table) {
			best = t
		}
	}
	if of(best) == 0 {
		return ""
	}
	return flag + " " + quote(fmt.Sprintf("%s(%s)%s=%s", event, escapeGlob(best.Table), sel, pastLeaseOf(best, f.Locks)))
}

// pastLeaseOf outlasts the lease under which a table is written: a rule that goes by the
// ttl never fires where there is none.
func pastLeaseOf(t check.TableFact, locks []check.LockFact) string {
	l, _ := busiestLock(locks)
	if i := slices.IndexFunc(locks, func(l check.LockFact) bool { return l.Lock == t.Lock }); i >= 0 {
		l = locks[i]
	}
	if longestLease(l) == 0 {
		return pastLease(l)
	}
	return "ttl+300ms"
}

// globKey is the lock's key as a rule's glob is matched against it: without the
// database that its name may end in.
func globKey(l check.LockFact) string {
	key, db, ok := cutLast(l.Lock, " db ")
	if _, err := strconv.Atoi(db); ok && err == nil {
		return key
	}
	return l.Lock
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func busiestLock(locks []check.LockFact) (check.LockFact, bool) {
	usable := slices.DeleteFunc(slices.Clone(locks), func(l check.LockFact) bool {
		return l.Grants == 0 || l.Marker || !printable(globKey(l))
	})
	if len(usable) == 0 {
		return check.LockFact{}, false
	}
	return slices.MaxFunc(usable, func(a, b check.LockFact) int { return cmp.Compare(a.Grants, b.Grants) }), true
}

// lockGlob is the lock's key, or the family that it shares with two others: a
// lock for each order is seldom granted twice. What names a row by its hash has
// another name in the next run.
func lockGlob(l check.LockFact, locks []check.LockFact) string {
	key := globKey(l)
	end := strings.LastIndexByte(key, ':') + 1
	if ofRow(key) {
		return escapeGlob(key[:end]) + "*"
	}
	kin := 0
	for _, other := range locks {
		if end > 0 && strings.HasPrefix(globKey(other), key[:end]) {
			kin++
		}
	}
	if kin >= 3 {
		return escapeGlob(key[:end]) + "*"
	}
	return escapeGlob(key)
}

// ofRow reports whether a key names a row of Postgres by its hash.
func ofRow(key string) bool {
	hash := key[strings.LastIndexByte(key, ':')+1:]
	_, err := strconv.ParseUint(hash, 16, 64)
	return len(hash) == 16 && err == nil && (strings.HasPrefix(key, "lease:") || strings.HasPrefix(key, "row:"))
}

func afterGrant(l check.LockFact) string {
	if longestLease(l) == 0 {
		return "800ms"
	}
	return "ttl+20%"
}

// pastLease is a duration that outlasts the lease, for a rule that knows none.
func pastLease(l check.LockFact) string {
	return (max(longestLease(l), 500*time.Millisecond) + 300*time.Millisecond).Round(time.Millisecond).String()
}

func longestLease(l check.LockFact) time.Duration {
	if len(l.TTLs) == 0 {
		return 0
	}
	return slices.Max(l.TTLs)
}

// escapeGlob makes a name match itself alone.
func escapeGlob(name string) string {
	var b strings.Builder
	for _, c := range name {
		if strings.ContainsRune(`\*()`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func printable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}
