package metrics

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// The bounds of a label: how many values it has beside those that were declared, and how long one is.
const (
	mostNames = 100
	longName  = 100
)

// mostKeys is how many keys are remembered, since to find a name takes longer than all else.
const mostKeys = 1024

// Other is the value for all that come when there are too many.
const Other = "other"

// Names gives locks, and whatever else there may be any number of, values of a label of which there are few. It is safe for
// concurrent use.
type Names struct {
	named func(key string) string

	mu    sync.Mutex
	known map[string]bool
	keys  map[string]string // the names of the keys that came last
}

// NewNames returns one that asks what a lock was called by who declared it, of whom there are few; "" where nobody did. named may be nil.
func NewNames(named func(key string) string) *Names {
	if named == nil {
		named = func(string) string { return "" }
	}
	return &Names{named: named, known: map[string]bool{}, keys: map[string]string{}}
}

// Of returns the name of a lock: the one that it was declared by, or how its key begins.
func (n *Names) Of(key string) string {
	n.mu.Lock()
	name, ok := n.keys[key]
	n.mu.Unlock()
	if ok {
		return name
	}
	name = n.find(key)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) >= mostKeys {
		clear(n.keys)
	}
	if len(key) <= longName {
		n.keys[key] = name
	}
	return name
}

func (n *Names) find(key string) string {
	if name := n.named(key); name != "" {
		return clean(name)
	}
	return n.Few(shape(key))
}

// Few returns a text itself as long as there are few of them.
func (n *Names) Few(text string) string {
	text = clean(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[text]:
		return text
	case len(n.known) >= mostNames:
		return Other
	}
	n.known[text] = true
	return text
}

// longPrefix is how long the beginning of a key is at most that is taken for the word that all of its kind begin with.
const longPrefix = 40

// prefix matches such a word and what ends it. What has other characters is a hash tag, a name of somebody or worse.
var prefix = regexp.MustCompile(`^[\w.-]*[:/]`)

// varying matches what in a prefix tells one key from another: UUIDs, runs of hexadecimal digits among which there are decimal
// ones, and numbers. Of what has a letter before or behind it only the digits go.
var varying = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*\b|[0-9]+`)

// shape returns what of a key nobody has to keep to himself: how it begins. Who the lock is of comes behind that.
func shape(key string) string {
	begin := prefix.FindString(key[:min(len(key), longPrefix)])
	return varying.ReplaceAllString(begin, "*") + "*"
}

// clean makes a text one that a label can be.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= longName {
		return text
	}
	cut := longName
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
