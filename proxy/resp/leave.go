package resp

// One upstream is one address. Some answers name others, to which the client may
// then connect past the proxy. They are passed on as they are, and told once.

// leave tells what may lead the client away.
func (t *Tracker) leave(what string) {
	if t.opt.Leaves != nil && !t.left {
		t.left = true
		t.opt.Leaves(what)
	}
}

// leaving looks at a request that asks for addresses.
func (t *Tracker) leaving() {
	r := &t.req
	switch name := r.plan.cmd.name; name {
	case "CLUSTER":
		for _, sub := range []string{"SLOTS", "SHARDS", "NODES", "REPLICAS"} {
			if is(r.arg(1), sub) {
				t.leave(name + " " + sub)
			}
		}
	default:
		t.leave(name)
	}
}

// redirected looks at an error.
func (t *Tracker) redirected(a *answer) {
	switch {
	case a.begins("MOVED "):
		t.leave("MOVED")
	case a.begins("ASK "):
		t.leave("ASK")
	}
}
