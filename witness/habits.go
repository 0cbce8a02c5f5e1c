package witness

import "github.com/lockfaultd/lockfaultd/proxy/resp"

const (
	mostHabits = 4096 // scripts that are remembered
	enough     = 8    // calls without a sign of a lock, behind which a script is left alone
	again      = 64   // but for one call of so many
)

// habits remember which scripts have to do with locks at all.
type habits map[string]*habit

type habit struct {
	calls   int
	lockish bool
}

// worth reports whether a call of the script should be looked at.
func (h *habits) worth(script string) bool {
	known := (*h)[script]
	if known == nil {
		if *h == nil || len(*h) == mostHabits {
			*h = habits{}
		}
		known = &habit{}
		(*h)[script] = known
	}
	known.calls++
	return known.lockish || known.calls <= enough || known.calls%again == 0
}

// saw notes what was found at the keys of a call, whoever has left it there, and whether the call
// did something to a lock.
func (h *habits) saw(script string, found []resp.Sight, did bool) {
	known := (*h)[script]
	if known == nil {
		return
	}
	known.lockish = known.lockish || did
	for _, s := range found {
		known.lockish = known.lockish || lockish(s.State)
	}
}

// lockish reports whether a key may be a lock's: it ends, and is no number.
func lockish(st resp.State) bool {
	return st.Type > resp.Absent && st.Type < resp.OtherType && st.Ends != 0 && !st.Value.IsInt
}
