package report

import (
	"fmt"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
)

// A Code is one entry of the list of verdicts. Codes are stable: a code keeps
// its meaning, and one that is dropped is not given out again.
type Code struct {
	Code  string // LF104
	Name  string // lost-update
	Class string // harm, declared, hazard, good or inconclusive
	Short string // what it says, in a few words

	// What a verdict's own count is. It adds up to the group's unless it is
	// something else: the victims of one root cause, or an amount.
	victims, amount bool
}

// Codes returns every code, in order.
func Codes() []Code {
	return []Code{
		{Code: "LF101", Name: "lease-overrun", Class: "hazard", Short: "a holder went on after its lease had ended"},
		{Code: "LF102", Name: "overlap", Class: "hazard", Short: "two holders in their sections at once"},
		{Code: "LF103", Name: "stale-write", Class: "hazard", Short: "an unguarded write accepted after the next grant"},
		{Code: "LF104", Name: "lost-update", Class: "harm", Short: "an acknowledged write was overwritten unread", victims: true},
		{Code: "LF105", Name: "fence-regression", Class: "harm", Short: "a lower fence accepted after a higher one"},
		{Code: "LF106", Name: "section-anomaly", Class: "harm", Short: "sections that no order explains, across rows", victims: true},
		{Code: "LF107", Name: "released-before-commit", Class: "hazard", Short: "the lock let go before its transaction committed"},
		{Code: "LF201", Name: "fence-rejected", Class: "good", Short: "a guard refused a write"},
		{Code: "LF202", Name: "replayed-as-is", Class: "harm", Short: "a refused write sent again without a new read"},
		{Code: "LF301", Name: "unsafe-release", Class: "harm", Short: "a release removed another holder's lock"},
		{Code: "LF302", Name: "foreign-renew", Class: "harm", Short: "a renewal extended another holder's lock"},
		{Code: "LF303", Name: "resurrected", Class: "declared", Short: "a renewal created a lapsed lock again"},
		{Code: "LF304", Name: "no-expiry", Class: "hazard", Short: "a lock without a lifetime"},
		{Code: "LF305", Name: "double-grant", Class: "declared", Short: "two live grants of one lock"},
		{Code: "LF306", Name: "failover-lost", Class: "declared", Short: "two live grants of one lock, after a failover"},
		{Code: "LF307", Name: "ghost-acquire", Class: "hazard", Short: "a lock held by a client that never heard so"},
		{Code: "LF308", Name: "wrote-without-lock", Class: "declared", Short: "a protected write by a client that was refused"},
		{Code: "LF309", Name: "fence-inversion", Class: "declared", Short: "the older grant got the higher fence"},
		{Code: "LF310", Name: "split-session-lock", Class: "declared", Short: "an advisory lock and its unlock on two backends"},
		{Code: "LF311", Name: "no-common-lock", Class: "hazard", Short: "one row written under locks with nothing in common"},
		{Code: "LF312", Name: "read-before-acquire", Class: "hazard", Short: "a write that rests on a read before the grant"},
		{Code: "LF313", Name: "held-long", Class: "hazard", Short: "a lock held for longer than it may be"},
		{Code: "LF401", Name: "not-exercised", Class: "inconclusive", Short: "no lease ended while it was held"},
		{Code: "LF402", Name: "blind-spot", Class: "inconclusive", Short: "something happened that was not seen"},
		{Code: "LF403", Name: "counter-mismatch", Class: "harm", Short: "the counter is not what was acknowledged", amount: true},
		{Code: "LF404", Name: "counter-regressed", Class: "harm", Short: "a counter that only rises has fallen"},
		{Code: "LF405", Name: "invariant-broken", Class: "harm", Short: "what must hold of the data did not, when it was looked at"},
	}
}

// The words that --fail-on takes besides codes and names.
const (
	failAny    = "any"    // whatever is not good, nor inconclusive
	failHazard = "hazard" // hazards, and what would be harm if the lock were declared
)

// ParseCodes reads the value of a flag that takes verdicts: codes or names,
// separated by commas, in either case. It answers with codes, each once, in
// the order given. With flag "fail-on" the words any and hazard are taken too,
// and returned as they are. An error names the flag, the entry and the nearest
// known one.
func ParseCodes(flag, text string) ([]string, error) {
	flag = strings.TrimLeft(flag, "-")
	var out []string
	seen := map[string]bool{}
	for i, entry := range strings.Split(text, ",") {
		code, err := parseCode(flag, i+1, strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if !seen[code] {
			seen[code] = true
			out = append(out, code)
		}
	}
	return out, nil
}

func parseCode(flag string, place int, entry string) (string, error) {
	words := groupWords(flag)
	if entry == "" {
		return "", fmt.Errorf("--%s: entry %d is empty: expected a code or a name, as LF104 or lost-update%s",
			flag, place, orWords(words))
	}
	for _, w := range words {
		if strings.EqualFold(entry, w) {
			return w, nil
		}
	}
	if c, ok := lookup(entry); ok {
		return c.Code, nil
	}
	return "", fmt.Errorf("--%s: unknown verdict %q in entry %d: the nearest is %s; expected a code or a name, as LF104 or lost-update%s",
		flag, entry, place, closest(entry, words), orWords(words))
}

func groupWords(flag string) []string {
	if flag == "fail-on" {
		return []string{failAny, failHazard}
	}
	return nil
}

func orWords(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ", or " + strings.Join(words, ", ")
}

// lookup finds a code by its code or name, in either case.
func lookup(text string) (Code, bool) {
	for _, c := range Codes() {
		if strings.EqualFold(text, c.Code) || strings.EqualFold(text, c.Name) {
			return c, true
		}
	}
	return Code{}, false
}

// closest is the known spelling that takes the fewest changes to reach.
func closest(entry string, words []string) string {
	best, least := "", 1<<30
	try := func(spelling, shown string) {
		if d := nearest.Distance(strings.ToLower(entry), strings.ToLower(spelling)); d < least {
			best, least = shown, d
		}
	}
	for _, c := range Codes() {
		try(c.Code, c.Code+" "+c.Name)
		try(c.Name, c.Code+" "+c.Name)
	}
	for _, w := range words {
		try(w, w)
	}
	return best
}
