package pgwire

// maxSavepoints bounds those that are known of a transaction.
const maxSavepoints = 1024

// A savepoint is where a ROLLBACK TO can go back to.
type savepoint struct {
	name string
	seq  uint64 // of the last op before it
}

// savepoints are those of the open transaction, the newest last. What upstream
// has said makes them. Of too many the oldest are forgotten.
type savepoints struct {
	list []savepoint
	seq  uint64 // of the last op that was answered
}

func (s *savepoints) set(name string) {
	if len(s.list) >= maxSavepoints {
		s.list = s.list[:copy(s.list, s.list[1:])]
	}
	s.list = append(s.list, savepoint{name, s.seq})
}

// find returns the place of the newest one of a name. Where there is none, it
// is older than all that are known.
func (s *savepoints) find(name string) int {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].name == name {
			return i
		}
	}
	return none
}

// release forgets a savepoint and those behind it.
func (s *savepoints) release(name string) { s.list = s.list[:max(0, s.find(name))] }

// back goes back to a savepoint, which stays, and returns the Seq from which
// ops are undone; 0: it is not known.
func (s *savepoints) back(name string) uint64 {
	i := s.find(name)
	s.list = s.list[:i+1]
	if i == none {
		return 0
	}
	return s.list[i].seq + 1
}

func (s *savepoints) clear() { s.list = nil }

// points reports whether a statement sets or releases a savepoint.
func (e effect) points() bool { return e == setPoint || e == releasePoint }

// carriedOut follows a statement that upstream says it has carried out.
func (t *Tracker) carriedOut(tm *template) {
	if tm.unread {
		t.opt.Statements.unread.Add(1)
	}
	switch tm.effect {
	case setPoint:
		t.tx.points.set(tm.name)
	case releasePoint:
		t.tx.points.release(tm.name)
	}
}
