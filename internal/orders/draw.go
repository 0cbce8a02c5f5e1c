package orders

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Table, Column and Fence are the names in drawn histories: a counter's, and that of
// the column which keeps its fence.
const (
	Table  = "counter"
	Column = "value"
	Fence  = "fence"
)

// Tick is how far two neighbouring instants of a drawn history lie apart.
const Tick = time.Millisecond

// A world is what really happens: rows, their locks, and clients in the middle of
// something.
type world struct {
	*Rand
	hash    *lock.Hasher
	now     lock.Instant
	seq     uint64
	rows    map[cell]value
	holder  map[string]*client
	token   string // that the key of the lock has
	clients []*client
	out     History
	spoiled bool // a deadlock: what the server does then is not modelled
}

// A client is one process, in the middle of its sections.
type client struct {
	w        *world
	name     string
	session  uint64
	section  int
	plan     []func(*client) *lock.Op
	op       *lock.Op
	done     bool // op took effect
	gone     bool
	tx       uint64
	explicit bool
	snapshot bool
	failed   bool // the transaction was aborted by the server
	snap     map[cell]value
	pending  map[cell]value
	order    []cell
	changed  map[string]bool // rows that others committed to since the snapshot
	heard    map[cell]value
	token    string
}

// A Shape bounds what is drawn.
type Shape struct {
	Sections int // at least two are drawn
	Rows     int
	Steps    int // of a section, each of one or two statements
	Haste    int // how often, in a hundred cases, who has begun something goes on with it

	// Distinct: no section writes what is there, nor what another one does by chance.
	Distinct bool
}

// Draw lets a few sections happen, and returns what was to be seen of them. Where
// they end in a deadlock it draws anew.
func Draw(seed uint64, shape Shape) History {
	for {
		w := &world{Rand: NewRand(seed), hash: lock.NewHasher([]byte("orders")), now: 1000 * lock.Instant(Tick), rows: map[cell]value{}, holder: map[string]*client{}}
		w.prepare(shape)
		w.run(shape.Haste)
		if !w.spoiled {
			return w.out
		}
		seed = w.next()
	}
}

func (w *world) number(n int64) lock.Value { return w.hash.Of([]byte(strconv.FormatInt(n, 10))) }
func (w *world) text(s string) lock.Value  { return w.hash.Of([]byte(s)) }

func (w *world) row(n int) string { return w.number(int64(n + 1)).Hash }

func (w *world) prepare(shape Shape) {
	if !w.Chance(10) {
		w.out.Named = []string{Column}
	}
	for i := range shape.Rows {
		w.rows[cell{w.row(i), Column}] = value{n: 7}
		w.rows[cell{w.row(i), "note"}] = valueOf(w.text("first"))
		w.rows[cell{w.row(i), "version"}] = value{n: 1}
		w.rows[cell{w.row(i), Fence}] = value{n: 0}
	}
	n := 2 + w.Below(shape.Sections-1)
	versioned := w.Chance(15)
	for i := range n {
		c := &client{w: w, name: string(rune('A' + i)), session: uint64(10 * (i + 1)), heard: map[cell]value{}}
		w.clients = append(w.clients, c)
		c.plan = append(c.plan, (*client).grant)
		w.sectionOf(c, shape, versioned)
		c.plan = append(c.plan, (*client).release)
	}
	if w.Chance(15) { // someone who has no lock at all
		c := &client{w: w, name: "X", session: 200, heard: map[cell]value{}, section: -1}
		w.clients = append(w.clients, c)
		w.step(c, shape, versioned, false)
	}
}

func (w *world) sectionOf(c *client, shape Shape, versioned bool) {
	c.section = len(w.clients)
	tx := w.Chance(40)
	if tx {
		c.plan = append(c.plan, (*client).begin)
	}
	for range 1 + w.Below(shape.Steps) {
		w.step(c, shape, versioned, tx)
	}
	if tx {
		c.plan = append(c.plan, (*client).end)
	}
}

// step adds one thing to do to a client's plan.
func (w *world) step(c *client, shape Shape, versioned, tx bool) {
	row := w.row(w.Below(shape.Rows))
	by := int64(w.Below(3))
	if shape.Distinct {
		by++
	}
	look := func(columns ...string) func(*client) *lock.Op {
		locks := tx && w.Chance(20)
		return func(c *client) *lock.Op { return c.read(row, locks, columns...) }
	}
	if versioned {
		c.plan = append(c.plan, look(Column, "version"), func(c *client) *lock.Op { return c.compare(row, by) })
		return
	}
	switch n := w.Below(100); {
	case n < 40:
		c.plan = append(c.plan, look(Column), func(c *client) *lock.Op { return c.modify(row, by) })
	case n < 52:
		other := w.row(w.Below(shape.Rows))
		c.plan = append(c.plan, look(Column), func(c *client) *lock.Op { return c.read(other, false, Column) },
			func(c *client) *lock.Op { return c.modify(row, by) })
	case n < 62:
		c.plan = append(c.plan, func(c *client) *lock.Op { return c.add(row, by+1) })
	case n < 72:
		put := int64(5 + w.Below(5))
		if shape.Distinct {
			put = int64(1000 * (1 + w.Below(1000)))
		}
		c.plan = append(c.plan, func(c *client) *lock.Op { return c.set(row, put) })
	case n < 80:
		c.plan = append(c.plan, look(Column), func(c *client) *lock.Op { return c.swap(row, by) })
	case n < 86:
		c.plan = append(c.plan, look(Column), func(c *client) *lock.Op { return c.fenced(row, by) })
	case n < 91:
		c.plan = append(c.plan, func(c *client) *lock.Op { return c.claim(row) }, func(c *client) *lock.Op { return c.modify(row, by) })
	case n < 96:
		new := fmt.Sprintf("note %d", w.Below(2))
		c.plan = append(c.plan, look(Column, "note"), func(c *client) *lock.Op { return c.whole(row, by, new) })
	default:
		c.plan = append(c.plan, look("note"))
	}
}
