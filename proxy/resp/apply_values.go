package resp

import (
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
)

// string takes in what is done to strings.
func (a *applying) string() bool {
	switch a.name {
	case "SET":
		a.store(0, readOptions(list(a.words), 3))
	case "SETNX":
		a.store(0, options{nx: true})
	case "SETEX", "PSETEX":
		a.storeAs(a.arg(0), a.arg(2), options{lease: readLease(a.arg(1), a.name == "SETEX", false)})
	case "GETSET":
		a.each(compares, a.first())
		a.store(0, options{})
	case "GETDEL":
		a.remove(a.touch(removes, a.arg(0)))
	case "GETEX":
		a.getex(readOptions(list(a.words), 2))
	case "MSET":
		a.several(0, len(a.args), options{})
	case "MSETNX":
		a.several(0, len(a.args), options{nx: true})
	case "MSETEX":
		a.msetex()
	case "DELEX":
		a.delex()
	case "DELIFEQ":
		a.removeIf(a.arg(1), true)
	case "INCR", "INCRBY", "DECR", "DECRBY":
		a.count()
	default:
		return false
	}
	return true
}

// store takes in a value that is given to the key at i.
func (a *applying) store(i int, o options) { a.storeAs(a.arg(i), a.arg(i+1), o) }

func (a *applying) storeAs(key, value []byte, o options) {
	t := a.touch(stores, key)
	t.nx, t.value, t.lease = o.nx, a.hashOf(value), o.lease
	t.did = yes
	switch operand := a.hashOf(o.operand); {
	case o.digest:
		t.did = maybe
	case o.nx:
		t.did = -t.was.present()
	case o.xx:
		t.did = t.was.present()
	case o.eq:
		t.equal, t.token, t.did = true, operand, t.was.holds(operand)
	case o.ne:
		t.did = -t.was.holds(operand)
	}
	a.stored(t, o.keep)
}

// stored ends a touch that stores, as far as that took effect.
func (a *applying) stored(t *touch, keep bool) {
	switch t.did {
	case yes:
		ends := t.ends(a.ms)
		if keep {
			ends = t.was.Ends
			if t.was.Type == Unseen {
				ends = UnknownEnd
			}
		}
		t.now = State{Type: String, Value: t.value, Ends: ends}
	case maybe:
		t.now = State{}
	}
	a.done(t)
}

// several takes in the pairs from the i-th argument to the end-th, all of which
// are stored or none.
func (a *applying) several(i, end int, o options) {
	did := yes
	for at := i; o.nx && at+1 < end; at += 2 {
		did = min(did, -a.s.Look(a.ref(a.arg(at)), a.ms).present())
	}
	for ; i+1 < end; i += 2 {
		t := a.touch(stores, a.arg(i))
		t.nx, t.value, t.lease, t.did = o.nx, a.hashOf(a.arg(i+1)), o.lease, did
		a.stored(t, o.keep)
	}
}

// msetex takes in MSETEX numkeys key value [key value ...] [NX|XX] [options].
func (a *applying) msetex() {
	n, ok := parseInt(a.arg(0))
	if !ok || n <= 0 || n > int64(len(a.args)-1)/2 {
		return
	}
	end := 1 + 2*int(n)
	o := readOptions(list(a.words), 1+end)
	if o.xx {
		a.unknown()
		return
	}
	a.several(1, end, o)
}

func (a *applying) getex(o options) {
	t := a.touch(lasts, a.arg(0))
	a.tell(&touch{act: compares, key: t.key, was: t.was, now: t.was, did: t.was.present()})
	if !o.expires && !o.persist {
		return
	}
	t.lease, t.did = o.lease, a.there(t)
	a.lasting(t)
}

// delex takes in DELEX key [IFEQ|IFNE value|IFDEQ|IFDNE digest].
func (a *applying) delex() {
	switch o := readOptions(list(a.words), 2); {
	case o.digest:
		t := a.touch(removes, a.arg(0))
		t.did, t.now = min(maybe, t.was.present()), State{}
		a.done(t)
	case o.eq, o.ne:
		a.removeIf(o.operand, o.eq)
	default:
		a.remove(a.touch(removes, a.arg(0)))
	}
}

// removeIf removes the key if its value is the operand, or is another.
func (a *applying) removeIf(operand []byte, equal bool) {
	t := a.touch(removes, a.arg(0))
	t.equal, t.token = equal, a.hashOf(operand)
	t.did = t.was.holds(t.token)
	if !equal {
		t.did = min(-t.did, t.was.present())
	}
	t.now = t.was
	switch t.did {
	case yes:
		t.now = State{Type: Absent}
	case maybe:
		t.now = State{}
	}
	a.done(t)
}

func (a *applying) count() {
	t := a.touch(adds, a.arg(0))
	t.by, t.did = 1, yes
	if len(a.args) > 1 {
		t.by, _ = parseInt(a.arg(1))
	}
	if a.name[0] == 'D' {
		t.by = -t.by
	}
	switch {
	case t.was.Type > String:
		t.did = no
	case t.was.Type == Absent:
		t.now = State{Type: String, Value: a.number(t.by)}
	case t.was.Value.IsInt && t.was.present() == yes:
		t.now.Value = a.number(t.was.Value.Int + t.by)
	default:
		t.now = State{}
	}
	t.value = t.now.Value
	a.done(t)
}

func (a *applying) number(n int64) lock.Value {
	return a.hashOf(strconv.AppendInt(nil, n, 10))
}
