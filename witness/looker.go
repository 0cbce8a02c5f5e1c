package witness

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

const (
	waiting  = 256 // questions that may wait for a looker
	atOnce   = 32  // of them asked in one go
	mostKeys = 16  // of one question

	// atOneInstant is how many microseconds of the server's clock a look may take. What two say of
	// when a key ends then differs by less than what a renewal is known by.
	atOneInstant = 1000
	mostLooks    = 3 // for one that does not take longer
)

// A question is what a looker is to find out: the states of some keys, as of one
// instant, and where in the server's order that was.
type question struct {
	refs  []resp.Ref
	then  func() // called when it is done, from the looker's goroutine; may be nil
	shown func() // called when MONITOR has shown its mark, from the monitor's; may be nil

	commands [][][]byte
	number   atomic.Uint64 // of its mark; 0: not asked yet
	sights   []resp.Sight
	at       int64 // by the server's clock, Unix microseconds
	ok       bool  // it was answered
	slow     bool  // its look took longer than an instant
	done     chan struct{}
}

// await reports whether the question is done within that time.
func (q *question) await(most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-q.done:
		return true
	case <-t.C:
		return false
	}
}

// A looker asks a Redis about keys over a link of its own.
type looker struct {
	redis Redis
	hash  *lock.Hasher
	queue chan *question
	mark  []byte // what its marks begin with
	say   *notes

	ready chan struct{} // closed when it was up, or failed, for the first time
	first sync.Once

	mu     sync.Mutex
	up     bool
	number uint64
	asked  map[uint64]*question // whose mark is to be shown
}

func newLooker(r Redis, h *lock.Hasher, say *notes) *looker {
	nonce := make([]byte, 8)
	_, _ = rand.Read(nonce)
	return &looker{
		redis: r, hash: h, say: say, queue: make(chan *question, waiting), asked: map[uint64]*question{}, ready: make(chan struct{}),
		mark: []byte("lockfaultd-" + hex.EncodeToString(nonce) + "-"),
	}
}

// ask queues a question, and reports whether there is hope of an answer.
func (l *looker) ask(q *question) bool {
	if !l.isUp() || len(q.refs) > mostKeys {
		return false
	}
	q.done = make(chan struct{})
	select {
	case l.queue <- q:
		return true
	default:
		return false
	}
}

func (l *looker) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// markOf reads the number of a mark that MONITOR shows; 0 if it is none.
func (l *looker) markOf(text []byte) uint64 {
	rest, ok := bytes.CutPrefix(text, l.mark)
	if !ok {
		return 0
	}
	n, _ := strconv.ParseUint(string(rest), 10, 64)
	return n
}

// ofMark returns the question whose mark MONITOR has shown; nil if nobody cares.
func (l *looker) ofMark(n uint64) *question {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.asked[n]
	delete(l.asked, n)
	return q
}

// unshown forgets the questions whose marks will not be shown any more.
func (l *looker) unshown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.asked)
}

// run serves until ctx ends.
func (l *looker) run(ctx context.Context) {
	l.redis.keep(ctx, func(k *link) error {
		defer l.down()
		return l.serve(ctx, k)
	}, func(err error) {
		l.say.lost("look-ups", l.redis.Name, err)
		l.first.Do(func() { close(l.ready) })
	})
}

// down gives up the questions that have no answer.
func (l *looker) down() {
	l.mu.Lock()
	l.up = false
	l.mu.Unlock()
	for {
		select {
		case q := <-l.queue:
			l.finish(q)
		default:
			return
		}
	}
}

func (l *looker) finish(q *question) {
	close(q.done)
	if q.then != nil {
		q.then()
	}
}

// serve answers questions until the link fails.
func (l *looker) serve(ctx context.Context, k *link) error {
	stop := context.AfterFunc(ctx, k.close)
	defer stop()
	l.mu.Lock()
	l.up = true
	l.mu.Unlock()
	l.first.Do(func() { close(l.ready) })
	for {
		var batch []*question
		select {
		case q := <-l.queue:
			batch = append(batch, q)
		case <-ctx.Done():
			return ctx.Err()
		}
		for len(batch) < atOnce && len(l.queue) > 0 {
			batch = append(batch, <-l.queue)
		}
		err := l.answer(k, batch)
		for _, q := range batch {
			l.finish(q)
		}
		if err != nil {
			return err
		}
	}
}

// answer asks several questions, and those again whose look took too long. What MONITOR is to show has its
// place there, and is asked once.
func (l *looker) answer(k *link, batch []*question) error {
	err := l.look(k, batch)
	for range mostLooks - 1 {
		batch = slices.DeleteFunc(slices.Clone(batch), func(q *question) bool { return !q.slow || q.shown != nil })
		if err != nil || len(batch) == 0 {
			break
		}
		err = l.look(k, batch)
	}
	return err
}

// look asks several questions in one go.
func (l *looker) look(k *link, batch []*question) error {
	var commands [][][]byte
	db := k.db
	for _, q := range batch {
		l.enlist(q)
		commands = append(commands, l.commands(q, &db)...)
	}
	got, err := k.ask(commands...)
	if err != nil {
		return err
	}
	k.db = db
	for _, q := range batch {
		n := len(q.commands)
		if !l.read(q, got[:n]) {
			k.db = -1 // whichever it is
		}
		got = got[n:]
	}
	return nil
}

// enlist gives a question its number, before anybody can see its mark.
func (l *looker) enlist(q *question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	q.number.Store(l.number)
	if q.shown != nil {
		l.asked[l.number] = q
	}
}

// commands returns those that ask a question: all at one instant, if they are
// several, and between two looks at the clock, since a server reckons what is left of a
// lifetime from its clock at the first command or at each. db is what is selected before and after.
func (l *looker) commands(q *question, db *int) [][][]byte {
	mark := [][]byte{[]byte("ECHO"), strconv.AppendUint(bytes.Clone(l.mark), q.number.Load(), 10)}
	if len(q.refs) == 0 {
		q.commands = [][][]byte{mark}
		return q.commands
	}
	out := append(q.commands[:0], words("TIME"), words("MULTI"))
	for _, ref := range q.refs {
		if ref.DB != *db {
			*db = ref.DB
			out = append(out, words("SELECT", strconv.Itoa(ref.DB)))
		}
		out = append(out, commandsOn(ref.Key)...)
	}
	q.commands = append(out, words("TIME"), mark, words("EXEC"))
	return q.commands
}

// read takes the replies to a question's commands, and reports whether they
// were all carried out.
func (l *looker) read(q *question, got []reply) bool {
	if len(q.refs) == 0 {
		q.ok = got[0].kind == '$'
		return q.ok
	}
	all := got[len(got)-1].list
	if len(all) != len(got)-3 {
		l.say.lost("look-ups", l.redis.Name, refusal(firstError(got)))
		return false
	}
	began := instant(&got[0])
	q.at = instant(&all[len(all)-2])
	q.slow = q.at < began || q.at-began > atOneInstant
	q.ok, q.sights = !q.slow, nil
	names := q.commands[2:]
	for _, ref := range q.refs {
		if string(names[0][0]) == "SELECT" {
			all, names = all[1:], names[1:]
		}
		st, ok := seen(l.hash, all[:perKey], q.at/1000)
		q.ok = q.ok && ok
		q.sights = append(q.sights, resp.Sight{Ref: ref, State: st})
		all, names = all[perKey:], names[perKey:]
	}
	return true
}

// instant reads the reply to TIME, in Unix microseconds.
func instant(r *reply) int64 {
	seconds, _ := r.at(0).integer()
	micros, _ := r.at(1).integer()
	return seconds*1e6 + micros
}

func firstError(got []reply) string {
	for _, r := range got {
		if r.kind == '-' {
			return string(r.text)
		}
	}
	return "a transaction without a result"
}
