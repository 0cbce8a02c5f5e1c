package resp

import "github.com/lockfaultd/lockfaultd/lock"

// A Ref names a key of a server.
type Ref struct {
	DB  int
	Key string
}

// A KeyType is what a key is, as far as it matters to locks.
type KeyType uint8

// The types of key.
const (
	Unseen    KeyType = iota // nothing is known of the key
	Absent                   // there is none
	String                   //
	Hash                     //
	Set                      //
	SortedSet                //
	OtherType                // a list, a stream, or a module's
)

// KeyTypeOf reads what the server answers to TYPE.
func KeyTypeOf(answer string) KeyType {
	switch answer {
	case "none":
		return Absent
	case "string":
		return String
	case "hash":
		return Hash
	case "set":
		return Set
	case "zset":
		return SortedSet
	}
	return OtherType
}

// UnknownEnd is the State.Ends of a key of which it is not known whether and when
// it expires.
const UnknownEnd = -1

// MaxMembers is how many members of a key a State has at most.
const MaxMembers = 64

// A State is what is known of a key at one instant. Its values are hashed by the
// hasher of the tracker. A State that was handed over is not changed any more.
type State struct {
	Type    KeyType
	Value   lock.Value // of a String; not Known() where it is not known
	Members []Member   // of a Hash, a Set or a SortedSet, in no order
	Partial bool       // there may be other members
	Ends    int64      // when it expires by the server's clock, Unix milliseconds; 0: never; or UnknownEnd
}

// A Member is a field of a hash, or a member of a set.
type Member struct {
	Token lock.Value // the field's name, or the member
	Value lock.Value // of a field; not Known() where it is not known
	Score float64    // of a member of a sorted set
}

// A Sight is what a look at a key has found.
type Sight struct {
	Ref
	State
}

// An Effect is what a call did to locks, as a witness knows it.
//
// Of each op the lock's part is set, and Kind, Outcome and Evidence. A refused
// attempt shows as nothing but reads of a lock's key: such an op's Kind is what
// the same script did when it had success, or else what its text suggests, or else
// Other.
type Effect struct {
	Ops      []lock.Op
	Evidence lock.Evidence
	// Unsure are keys of which too little was known to tell what became of them.
	// A look at them, if it comes before any other client has got to them, tells
	// more: see [Shadow.Settle].
	Unsure []Ref
	// Asked is what an op of Kind Other has asked for.
	Asked Asked
}
