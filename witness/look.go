package witness

import (
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// longest is how much of a key's value is looked at, in bytes: a token is short,
// and what is longer is no lock's.
const longest = 16 << 10

// perKey is how many commands look at one key.
const perKey = 6

// commandsOn returns the commands that look at a key, whatever its type: those that
// do not suit it answer an error. Each is cheap, however large the key is.
func commandsOn(key string) [][][]byte {
	k, most, last := []byte(key), []byte(strconv.Itoa(resp.MaxMembers)), []byte(strconv.Itoa(longest))
	return [][][]byte{
		{[]byte("TYPE"), k},
		{[]byte("PTTL"), k},
		{[]byte("GETRANGE"), k, []byte("0"), last},
		{[]byte("HSCAN"), k, []byte("0"), []byte("COUNT"), most},
		{[]byte("SSCAN"), k, []byte("0"), []byte("COUNT"), most},
		{[]byte("ZSCAN"), k, []byte("0"), []byte("COUNT"), most},
	}
}

// seen reads the replies to these at the time ms of the server's clock, in
// Unix milliseconds. It reports false where they do not tell.
func seen(h *lock.Hasher, got []reply, ms int64) (resp.State, bool) {
	if len(got) < perKey || got[0].kind != '+' || got[1].kind != ':' {
		return resp.State{}, false
	}
	st := resp.State{Type: resp.KeyTypeOf(string(got[0].text))}
	if st.Type == resp.Absent {
		return st, true
	}
	if left, _ := got[1].integer(); left >= 0 {
		st.Ends = ms + left
	}
	switch st.Type {
	case resp.String:
		if v := got[2]; v.kind == '$' && len(v.text) <= longest {
			st.Value = h.Of(v.text)
		}
	case resp.Hash:
		st.Members, st.Partial = members(h, st.Type, &got[3])
	case resp.Set:
		st.Members, st.Partial = members(h, st.Type, &got[4])
	case resp.SortedSet:
		st.Members, st.Partial = members(h, st.Type, &got[5])
	}
	return st, true
}

// members reads the reply to a scan.
func members(h *lock.Hasher, t resp.KeyType, scan *reply) (out []resp.Member, partial bool) {
	partial = string(scan.at(0).text) != "0"
	list, each := scan.at(1).list, 2
	if t == resp.Set {
		each = 1
	}
	for ; len(list) >= each; list = list[each:] {
		if len(out) == resp.MaxMembers || list[0].long {
			partial = true
			continue
		}
		m := resp.Member{Token: h.Of(list[0].text)}
		switch {
		case t == resp.Hash && !list[1].long:
			m.Value = h.Of(list[1].text)
		case t == resp.SortedSet:
			m.Score, _ = strconv.ParseFloat(string(list[1].text), 64)
		}
		out = append(out, m)
	}
	return out, partial
}
