package testbed

import (
	"bytes"
	"sync"
)

// A Log is what was written to it so far. It may be read while it is written, by whomever.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
