package orders

// A Rand draws numbers, the same ones from the same seed for ever (splitmix64).
type Rand struct{ state uint64 }

// NewRand returns a source that starts from the seed.
func NewRand(seed uint64) *Rand { return &Rand{seed} }

func (r *Rand) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number of [0, n).
func (r *Rand) Below(n int) int { return int(r.next() % uint64(n)) }

// Chance reports true in percent of a hundred cases.
func (r *Rand) Chance(percent int) bool { return r.Below(100) < percent }
