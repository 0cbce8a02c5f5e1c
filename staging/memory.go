package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A memory is what a part took of resident memory over its lives, in KiB.
type memory struct {
	mu    sync.Mutex
	lives [][]int // one for each process
	last  int64   // its pid
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

// look notes what the process takes now.
func (m *memory) look(pid int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := resident.FindSubmatch(b)
	if err != nil || found == nil {
		return
	}
	n, _ := strconv.Atoi(string(found[1]))
	m.mu.Lock()
	defer m.mu.Unlock()
	if pid != m.last {
		m.lives, m.last = append(m.lives, nil), pid
	}
	m.lives[len(m.lives)-1] = append(m.lives[len(m.lives)-1], n)
}

// settled is how long a process may grow until it has what it keeps.
const settled = 5 * time.Minute

// growth compares, in the longest life, the medians of what was taken before and after its middle, once it had settled.
func (m *memory) growth(between time.Duration) (early, late, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := slices.MaxFunc(append(m.lives, nil), func(a, b []int) int { return len(a) - len(b) })
	for _, life := range m.lives {
		for _, n := range life {
			most = max(most, n)
		}
	}
	longest = longest[min(len(longest), int(settled/between)):]
	half := len(longest) / 2
	return median(longest[:half]), median(longest[half:]), most
}

func median(list []int) int {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
