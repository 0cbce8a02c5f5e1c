package main

import (
	"fmt"
	"slices"
	"strings"
)

// brokenRows is the table of services that are broken in one way each, and of
// the sound twin of each; behind them are services that are sound though a
// pause outlives their lease.
func brokenRows() []row {
	rows := brokenServices()
	for i := range rows {
		rows[i].must = gives(rows[i].codes...)
	}
	return rows
}

// quickly leaves the first row that gives each code, and those that are marked.
func quickly(all []row) []row {
	met := map[string]bool{}
	return slices.DeleteFunc(all, func(r row) bool {
		fresh := r.quick
		for _, code := range r.codes {
			fresh = fresh || code[0] != '?' && !met[code]
		}
		for _, code := range r.codes {
			met[code] = met[code] || fresh && code[0] != '?'
		}
		return !fresh
	})
}

// brokenServices are the rows, but for what is asked of an outcome.
func brokenServices() []row {
	one := []string{"--workers", "2", "--lease", "300ms"}
	calm := []string{"--workers", "2", "--lease", "5s"} // which a busy machine does not outlive
	slow := []string{"--workers", "2", "--lease", "300ms", "--work", "150ms"}
	with := func(base []string, more ...string) []string { return append(slices.Clone(base), more...) }
	late := []string{"--freeze-before", "UPDATE(counter)#*/5=ttl+250ms"}
	granted := []string{"--freeze-after", "acquire#*/3=ttl+100ms"}
	return []row{
		{service: "no NX", load: with(one, "--broken", "no-nx"), codes: []string{"LF104", "LF305", "?LF403"}},
		{service: "twin: NX", load: calm},
		{service: "blind DEL", fault: "freeze past the lease", load: with(one, "--write", "add", "--broken", "blind-del"), rules: late, codes: []string{"LF301"}},
		{service: "twin: compared DEL", fault: "the same", load: with(one, "--write", "add"), rules: late},
		{service: "renewed without looking at the owner", fault: "freeze past the lease", load: with(slow, "--write", "add", "--renew", "100ms", "--broken", "blind-renew"), rules: granted, codes: []string{"LF302"}},
		{service: "renewed by upsert", fault: "the same", load: with(slow, "--write", "add", "--renew", "100ms", "--broken", "upsert-renew"), rules: granted, codes: []string{"LF303"}},
		{service: "renewed without looking at the owner", fault: "a renewal that is held until another has the lock", load: with(slow, "--write", "add", "--work", "600ms", "--renew", "100ms", "--broken", "blind-renew"), rules: []string{"--hold", "renew#*/3=until:next-acquire"}, codes: []string{"LF302"}},
		{service: "twin: renewed by its owner", fault: "the same", load: with(slow, "--write", "add", "--work", "600ms", "--renew", "100ms"), rules: []string{"--hold", "renew#*/3=until:next-acquire"}},
		{service: "twin: renewed by its owner", fault: "freeze past the lease", load: with(slow, "--write", "add", "--renew", "100ms"), rules: granted},
		{service: "fence never checked", fault: "freeze past the lease", load: with(one, "--fence", "write", "--broken", "fence-unchecked"), rules: late, codes: []string{"LF104", "LF105", "?LF403"}},
		{service: "fence taken apart from the grant", fault: "grant's reply stalled", load: with(one, "--fence", "write", "--broken", "split-fence"), rules: []string{"--stall-after", "SETNX#*/5=ttl+250ms"}, codes: []string{"LF309", "?LF104", "?LF403"}},
		{quick: true, service: "fence in another table", fault: "freeze past the lease", load: with(slow, "--lease", "400ms", "--fence", "write", "--broken", "fence-elsewhere"), rules: []string{"--freeze-before", "UPDATE(counter)#*/3=ttl+75ms"}, codes: []string{"LF104", "?LF403"}},
		{service: "refused write sent again", fault: "freeze past the lease", load: with(one, "--fence", "write", "--broken", "resend"), rules: late, codes: []string{"LF202", "?LF104", "?LF403"}},
		{service: "twin: fence claimed at the read", fault: "freeze past the lease", load: with(one, "--fence", "claim"), rules: []string{"--freeze-before", "write(counter)#*/5=ttl+250ms"}},
		{service: "SETNX, then EXPIRE", fault: "crash in between", load: with(one, "--broken", "setnx-expire", "--crash", "9"), codes: []string{"LF304"}},
		{service: "twin: SET NX PX", fault: "crash behind it", load: with(one, "--crash", "9")},
		{service: "goes on when refused", load: with(one, "--broken", "ignore-refusal"), codes: []string{"LF308", "?LF104", "?LF403"}},
		{service: "takes an error for a grant", fault: "connection reset before the acquire", load: with(one, "--broken", "swallow-errors"), rules: []string{"--reset-before", "SETNX#*/20"}, codes: []string{"LF308", "?LF104", "?LF403"}},
		{service: "twin: asks again", fault: "the same", load: one, rules: []string{"--reset-before", "SETNX#*/20"}},
		{service: "twin: asks again", fault: "the grant is never heard", load: one, rules: []string{"--drop-reply", "acquire#*/20"}, codes: []string{"LF307"}},
		{service: "twin: asks again", fault: "neither side knows of the grant", load: one, rules: []string{"--reset-after", "acquire#*/20"}, codes: []string{"?LF307"}},
		{service: "fence taken apart from the grant", fault: "grant's reply held", load: with(one, "--fence", "write", "--broken", "split-fence"), rules: []string{"--hold-reply", "SETNX#*/5=ttl+250ms"}, codes: []string{"LF309", "?LF104", "?LF403"}},
		{service: "relies on the lock alone", fault: "failover that forgot it", load: with(calm, "--work", "100ms"), rules: []string{"--lose-key", "acquire#*/5"}, codes: []string{"LF104", "LF306", "?LF403"}},
		{service: "twin: fence claimed at the read", fault: "the same", load: with(calm, "--work", "100ms", "--fence", "claim"), rules: []string{"--lose-key", "acquire#*/5"}, codes: []string{"LF306"}},
		{service: "session lock through two sessions", load: with(one, "--lock", "advisory", "--broken", "split-session"), settings: []string{"--lock", "advisory:*=counter"}, codes: []string{"LF310"}},
		{service: "twin: through one", load: with(one, "--lock", "advisory"), settings: []string{"--lock", "advisory:*=counter"}},
		{service: "twin: through one", fault: "its backend dies behind a write", load: with(calm, "--lock", "advisory"), settings: []string{"--lock", "advisory:*=counter"}, rules: []string{"--kill-backend", "write#*/10"}},
		{service: "released before COMMIT", load: with(one, "--write", "tx", "--broken", "early-release"), codes: []string{"LF104", "LF107", "?LF403"}},
		{service: "twin: after it", load: with(calm, "--write", "tx")},
		{service: "read before the lock", load: with(one, "--broken", "early-read"), codes: []string{"LF312", "LF403"}},
		{quick: true, service: "sound: SELECT FOR UPDATE", fault: "freeze past the lease", load: with(one, "--write", "row-lock"), rules: late},
		{service: "sound: value = value + 1", fault: "the same", load: with(one, "--write", "add"), rules: late},
		{service: "sound: version", fault: "the same", load: with(one, "--write", "version"), rules: late},
		{service: "sound: SERIALIZABLE, tried again", fault: "the same", load: with(one, "--write", "serializable"), rules: late},
		{service: "sound: INSERT under a unique key", fault: "the same", load: with(one, "--write", "insert"), rules: []string{"--freeze-before", "INSERT(counter_log)#*/5=ttl+250ms"}, uncounted: true},
		{service: "sound: claim at the read", fault: "the same", load: with(one, "--fence", "claim"), rules: late},
		{service: "sound: last writer decides", fault: "the same", load: with(one, "--write", "touch"), rules: late, uncounted: true},
		{quick: true, service: "sound: token handed to another process", fault: "the same", load: with(one, "--write", "hand-over"), rules: late},
		{service: "sound: lock for efficiency only", fault: "the same", load: with(one, "--write", "upsert"), rules: []string{"--freeze-before", "INSERT(counter_cache)#*/5=ttl+250ms"}, settings: []string{"--config", "internal/demo/efficiency.yaml"}, uncounted: true},
	}
}

// hazards are what any pause past a lease brings, and what says nothing of the data.
var hazards = []string{"LF101", "LF102", "LF103", "LF201", "LF311"}

// gives says what is wrong unless those verdicts are proven, and no others are
// found but hazards of the pause itself. One with a question mark may be found.
func gives(codes ...string) func(outcome) string {
	return func(o outcome) string {
		var got []string
		for _, v := range o.report.Verdicts {
			if !slices.Contains(got, v.Code) && (v.Harm || !slices.Contains(hazards, v.Code)) {
				got = append(got, v.Code)
			}
		}
		for _, code := range codes {
			if code[0] != '?' && !o.has(code) {
				return fmt.Sprintf("expected %s PROVEN", code)
			}
		}
		for _, code := range got {
			if !slices.Contains(codes, code) && !slices.Contains(codes, "?"+code) {
				return fmt.Sprintf("expected %s, found %s", strings.Join(append(slices.Clone(codes), "no other"), ", "), code)
			}
		}
		if len(codes) == 0 && o.exit != 0 && o.exit != 11 {
			return fmt.Sprintf("expected exit 0, or 11 without a pause, got %d", o.exit)
		}
		return ""
	}
}

// chosen returns the rows whose service contains one of the words.
func chosen(all []row, words []string) []row {
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(r row) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(r.service, w) })
	})
}

const brokenLegend = `
Each broken service gives exactly its own verdicts, its twin none; what any pause past
a lease brings (LF101, LF102, LF103, and LF201 where a guard worked) is not counted.
What was read before the lock was taken is no part of a section: LF312 says so, and
what is lost by it LF403.
`
