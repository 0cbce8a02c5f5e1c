package pgwire

import "strings"

// Names say a little about what a column or a table is for. They decide only where
// the way in which a statement uses a column leaves it open.

// nameWords splits a name at underscores, dots and changes to capitals, in lower case.
func nameWords(name string) []string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteByte(c)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(c rune) bool { return c == '_' || c == '.' || c == '-' || c == ' ' })
}

func anyWord(name string, is func(word string) bool) bool {
	for _, w := range nameWords(name) {
		if is(w) {
			return true
		}
	}
	return false
}

func oneOf(word string, list string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// holding are words for having a lock, in the forms that columns use.
const holding = "lock locked lease leased claim claimed pick picked take taken hold held reserve reserved acquire acquired attempt attempted lock_by owned worked processing running checked"

// ownerName reports whether a column may say who has a lock.
func ownerName(column string) bool {
	words := nameWords(column)
	last := len(words) - 1
	if last < 0 {
		return false
	}
	if words[last] == "by" && last > 0 {
		return oneOf(words[last-1], holding)
	}
	name := strings.Join(words, "")
	if oneOf(name, "lockedby lockby claimedby pickedby ownedby lockowner lockholder ownerid") {
		return name != "ownerid"
	}
	if words[last] == "id" && last > 0 {
		return oneOf(words[last-1], "holder locker worker leader client node host instance process runner executor consumer")
	}
	return oneOf(words[last], "owner holder locker lessee worker leader node host hostname instance consumer executor runner pid") ||
		words[last] == "token" && last > 0 && (oneOf(words[last-1], holding) || words[last-1] == "key") || name == "token"
}

// timeName reports whether a column may hold a time.
func timeName(column string) bool {
	words := nameWords(column)
	if len(words) == 0 {
		return false
	}
	return words[len(words)-1] == "at" || endName(column) || anyWord(column, func(w string) bool {
		return oneOf(w, "time timestamp ts heartbeat granted seen since ping beat fetched fetchedat lockgranted lockedat date") || strings.HasSuffix(w, "edat") || strings.HasPrefix(w, "heartbeat")
	})
}

// endName reports whether a column may hold the end of a lease.
func endName(column string) bool {
	return anyWord(column, func(w string) bool {
		return strings.HasPrefix(w, "expir") || strings.HasSuffix(w, "until") || oneOf(w, "until deadline timeout vt visible ttl lapses ends")
	})
}

// flagName reports whether a column may say that a lock is taken.
func flagName(column string) bool {
	return anyWord(column, func(w string) bool {
		return oneOf(w, "locked leased picked taken held claimed busy reserved running acquired active")
	})
}

// versionName reports whether a column may count the changes of its row.
func versionName(column string) bool {
	return anyWord(column, func(w string) bool {
		return oneOf(w, "version rev revision rvn etag seq xmin fence epoch generation attempt attempts")
	})
}

// lockTable reports whether the rows of a table may be locks.
func lockTable(table string) bool {
	return anyWord(table, func(w string) bool {
		if strings.HasSuffix(w, "block") || strings.HasSuffix(w, "blocks") || strings.HasSuffix(w, "clock") || strings.HasSuffix(w, "clocks") {
			return false
		}
		return strings.HasPrefix(w, "lock") || strings.HasSuffix(w, "lock") || strings.HasSuffix(w, "locks") || strings.HasSuffix(w, "lockentry") ||
			strings.HasPrefix(w, "lease") || strings.HasPrefix(w, "leader") || oneOf(w, "mutex mutexes semaphore semaphores")
	})
}
