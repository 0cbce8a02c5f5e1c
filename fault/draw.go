package fault

import (
	"encoding/binary"
	"hash/fnv"
)

// draw decides by the rule's chance, for the n-th event of a name.
func (p *Plan) draw(r *armed, name string, n int) bool {
	if r.Chance == 0 {
		return true
	}
	// The upper 53 bits are what a float64 holds exactly.
	u := float64(p.hash(r, name, n)>>11) / (1 << 53)
	return u < r.Chance/100
}

// hash is the only source of chance: a function of the seed, the rule's number,
// how often it has been armed anew, the name and the ordinal.
func (p *Plan) hash(r *armed, name string, n int) uint64 {
	h := fnv.New64a()
	var b []byte
	b = binary.BigEndian.AppendUint64(b, p.seed)
	b = binary.BigEndian.AppendUint64(b, uint64(r.index)|uint64(r.again)<<32)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	h.Write(b)
	h.Write([]byte(name))
	return mix(h.Sum64())
}

// mix spreads every bit over all others (the finaliser of splitmix64): FNV
// alone leaves the upper bits of short inputs alike.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
