// Package urlquery edits the options of a URL. Those that are not edited stay as
// they were typed, since not all who read them decode them alike: to libpq a plus
// is a plus, and to others a space.
package urlquery

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Edit returns a raw query in which the options are those of want: what is in it
// with another value is set, what is not in want is taken out, and what is new
// comes last. What [url.ParseQuery] does not read is left alone.
func Edit(raw string, want url.Values) string {
	var out []string
	seen := map[string]int{}
	for _, pair := range split(raw) {
		key, name, value, ok := read(pair)
		if !ok {
			out = append(out, pair)
			continue
		}
		i := seen[name]
		seen[name]++
		switch values := want[name]; {
		case i >= len(values):
		case values[i] == value:
			out = append(out, pair)
		default:
			out = append(out, key+"="+url.QueryEscape(values[i]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, value := range want[name][min(seen[name], len(want[name])):] {
			out = append(out, url.QueryEscape(name)+"="+url.QueryEscape(value))
		}
	}
	return strings.Join(out, "&")
}

func split(raw string) []string {
	if raw == "" {
		return nil
	}
	return strings.Split(raw, "&")
}

// read returns an option's name as it was typed, and name and value as they are
// meant.
func read(pair string) (key, name, value string, ok bool) {
	key, value, _ = strings.Cut(pair, "=")
	name, e1 := url.QueryUnescape(key)
	value, e2 := url.QueryUnescape(value)
	return key, name, value, pair != "" && e1 == nil && e2 == nil && !strings.Contains(pair, ";")
}
