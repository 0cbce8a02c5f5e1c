package resp

import "github.com/lockfaultd/lockfaultd/lock"

// An act is what a command does to a key.
type act uint8

const (
	looks    act = iota // asks whether it is there, or for how long
	sizes               // asks how many members it has
	compares            // reads its value, or members of it
	stores              // gives it a value
	removes             // removes it
	lasts               // moves its end
	adds                // adds to the number that it holds
	joins               // sets a member
	leaves              // removes one
	alters              // does something else
)

// A touch is what one command did to one key, or to one member of it.
type touch struct {
	act      act
	key      Ref
	did      tri   // whether it took effect; of a reading, whether that is there
	was, now State // of the key
	member   bool  // it is of the member token
	token    lock.Value
	value    lock.Value // that was stored, in the key or the member
	nx       bool       // it stores only what is not there
	xx       bool       // joins: it sets only a member that is
	equal    bool       // it acts only if the value is token
	lease               // that was asked for
	by       int64      // adds: so much; joins: to a field that counts
	score    float64    // joins: of a member of a sorted set
}
