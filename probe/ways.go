package probe

import (
	"context"
	"slices"
)

// What is done under the lock.
const (
	WriteSet      = "set" // right under a lock alone
	writeTx       = "tx"  // likewise
	writeHandOver = "hand-over"
)

// A Form is one of the ways in which the workload does its work, or is broken.
type Form struct {
	Name string
	What string // in words, for a help text
}

// A form is one piece of work under the lock. It says whether it was done, false
// when a guard of its own refused it.
type form struct {
	Form
	tables []string // that it needs beside the counter's; %s stands for that one's name
	counts bool     // it adds one to the counter
	do     func(ctx context.Context, s *stint) (done bool, err error)
}

func forms() []form {
	return []form{
		{Form: Form{WriteSet, "read the value, and set it to one more"}, counts: true, do: setValue},
		{Form: Form{writeTx, "the same in one transaction"}, counts: true, do: inTransaction},
		{Form: Form{"row-lock", "the same, with SELECT FOR UPDATE"}, counts: true, do: underRowLock},
		{Form: Form{"serializable", "the same at SERIALIZABLE, again when refused"}, counts: true, do: serializable},
		{Form: Form{"version", "the same, if the version is the one that was read"}, tables: []string{"ALTER TABLE %s ADD COLUMN IF NOT EXISTS version bigint NOT NULL DEFAULT 0"}, counts: true, do: versioned},
		{Form: Form{"add", "SET value = value + 1"}, counts: true, do: add},
		{Form: Form{"insert", "INSERT the next number under a unique key"}, tables: []string{"DROP TABLE IF EXISTS %s_log", "CREATE TABLE %s_log (n bigint PRIMARY KEY)"}, do: insertNext},
		{Form: Form{"touch", "read the row, and set its time"}, tables: []string{"ALTER TABLE %s ADD COLUMN IF NOT EXISTS touched text"}, do: touch},
		{Form: Form{"upsert", "put a result that is always the same, as a cache does"}, tables: []string{"DROP TABLE IF EXISTS %s_cache", "CREATE TABLE %s_cache (id int PRIMARY KEY, body text)"}, do: upsert},
		{Form: Form{writeHandOver, "give the token to another process, which adds one and releases"}, tables: []string{"ALTER TABLE %s ADD COLUMN IF NOT EXISTS owner text"}, counts: true, do: handOver},
	}
}

// How the workload is broken on purpose.
const (
	BrokenNoNX           = "no-nx"
	BrokenBlindDel       = "blind-del"
	BrokenSplitFence     = "split-fence"
	BrokenBlindRenew     = "blind-renew"
	BrokenUpsertRenew    = "upsert-renew"
	BrokenFenceUnchecked = "fence-unchecked"
	BrokenFenceElsewhere = "fence-elsewhere"
	BrokenResend         = "resend"
	BrokenSetNXExpire    = "setnx-expire"
	BrokenIgnoreRefusal  = "ignore-refusal"
	BrokenSwallowErrors  = "swallow-errors"
	BrokenSplitSession   = "split-session"
	BrokenEarlyRelease   = "early-release"
	BrokenEarlyRead      = "early-read"
)

// A breakage is one fault of the workload's own.
type breakage struct {
	Form
	needs  string // flags, in words
	fits   func(l Load) bool
	tables []string
}

func breakages() []breakage {
	return []breakage{
		{Form: Form{BrokenNoNX, "the lock is taken without NX: it excludes nobody"}, needs: "--lock redis", fits: Load.leased},
		{Form: Form{BrokenBlindDel, "the lock is released by a plain DEL, whoever holds it"}, needs: "--lock redis", fits: Load.leased},
		{Form: Form{BrokenBlindRenew, "the lock is renewed by a plain PEXPIRE, whoever holds it"}, needs: "--renew", fits: Load.renews},
		{Form: Form{BrokenUpsertRenew, "the lock is renewed by SET without XX, whether there is one or not"}, needs: "--renew", fits: Load.renews},
		{Form: Form{BrokenSetNXExpire, "SETNX and its EXPIRE are two commands; --crash dies in between"}, needs: "--lock redis and --fence none", fits: Load.unfenced},
		{Form: Form{BrokenIgnoreRefusal, "every tenth refusal is taken for a grant"}, needs: "--lock redis and --fence none", fits: Load.unfenced},
		{Form: Form{BrokenSwallowErrors, "an error of the acquire is taken for a grant"}, needs: "--lock redis and --fence none", fits: Load.unfenced},
		{Form: Form{BrokenSplitFence, "the fence is issued by a command of its own, after the grant"}, needs: "--fence write or --fence claim", fits: Load.fenced},
		{Form: Form{BrokenFenceUnchecked, "the fence is stored and never compared"}, needs: "--fence write", fits: Load.fencedAtWrite},
		{Form: Form{BrokenFenceElsewhere, "the fence is kept in another table than the value"}, needs: "--fence write", fits: Load.fencedAtWrite, tables: []string{
			"DROP TABLE IF EXISTS %s_fence", "CREATE TABLE %s_fence (id int PRIMARY KEY, fence bigint NOT NULL)", "INSERT INTO %s_fence VALUES (1, 0)"}},
		{Form: Form{BrokenResend, "a write that was refused is sent again under the next grant, with the old value"}, needs: "--fence write", fits: Load.fencedAtWrite},
		{Form: Form{BrokenSplitSession, "lock and unlock go to different sessions, as through a pooler"}, needs: "--lock advisory", fits: func(l Load) bool { return l.Lock == LockAdvisory }},
		{Form: Form{BrokenEarlyRelease, "the lock is released before COMMIT"}, needs: "--write tx", fits: func(l Load) bool { return l.Write == writeTx && l.Lock == LockRedis }},
		{Form: Form{BrokenEarlyRead, "the value is read before the lock is taken"}, needs: "--write set and --fence none", fits: func(l Load) bool { return l.Write == WriteSet && l.Fence == FenceNone }},
	}
}

func (l Load) leased() bool        { return l.Lock == LockRedis }
func (l Load) renews() bool        { return l.Renew > 0 }
func (l Load) fenced() bool        { return l.Fence != FenceNone }
func (l Load) fencedAtWrite() bool { return l.Fence == FenceWrite }
func (l Load) unfenced() bool      { return l.leased() && !l.fenced() }

// Writes lists what can be done under the lock.
func Writes() (list []Form) {
	for _, f := range forms() {
		list = append(list, f.Form)
	}
	return list
}

// Breaks lists how the workload can be broken.
func Breaks() (list []Form) {
	for _, b := range breakages() {
		list = append(list, b.Form)
	}
	return list
}

func formOf(name string) (form, bool) {
	all := forms()
	i := slices.IndexFunc(all, func(f form) bool { return f.Name == name })
	if i < 0 {
		return form{}, false
	}
	return all[i], true
}

func breakOf(name string) (breakage, bool) {
	all := breakages()
	i := slices.IndexFunc(all, func(b breakage) bool { return b.Name == name })
	if i < 0 {
		return breakage{}, false
	}
	return all[i], true
}
