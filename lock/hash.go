package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// A Hasher turns what was on the wire into a [Value]. Values of two hashers
// compare only if both were made with the same key. It is safe for concurrent
// use.
type Hasher struct{ key []byte }

// NewHasher returns a hasher with the given secret key, which it keeps.
func NewHasher(key []byte) *Hasher { return &Hasher{key: key} }

// ID identifies the key without telling it.
func (h *Hasher) ID() string { return h.sum([]byte("lockfaultd history key")) }

// Of returns the value of the text b, which is not kept.
func (h *Hasher) Of(b []byte) Value {
	v := Value{Hash: h.sum(b)}
	if n, ok := integer(b); ok {
		v.Int, v.IsInt = n, true
	}
	return v
}

// sum is SHA-256 over key and text, cut to 8 bytes: what is left out is what an
// attacker would need to lengthen the text, so this is as good as an HMAC.
func (h *Hasher) sum(b []byte) string {
	var room [128]byte
	sum := sha256.Sum256(append(append(room[:0], h.key...), b...))
	var text [16]byte
	hex.Encode(text[:], sum[:8])
	return string(text[:])
}

func integer(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 || b[len(b)-1] < '0' || b[len(b)-1] > '9' {
		return 0, false // spares what is no integer the making of an error
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}
