// Package nearest finds the known word that somebody may have meant.
//
// It compares bytes, in the order given, and does not know what the words are.
package nearest

import "strings"

// most is how much of a word is looked at, so that hostile input costs little.
const most = 64

// Word returns the candidate most like word: by letters first, and by their
// case among equals; the earlier one where even that is equal. It is "" when
// there are no candidates.
func Word(word string, candidates []string) string {
	best, least := "", 1<<30
	for _, c := range candidates {
		d := most*Distance(strings.ToLower(word), strings.ToLower(c)) + min(most-1, Distance(word, c))
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// Near returns the candidate most like word if somebody may have meant that one:
// it differs in no more than a third of the word's letters. Else it is "".
func Near(word string, candidates []string) string {
	best := Word(word, candidates)
	if Distance(strings.ToLower(word), strings.ToLower(best)) > (len(word)+2)/3 {
		return ""
	}
	return best
}

// Distance is the number of bytes to insert, delete or replace to turn a into
// b, of the first 64 of each.
func Distance(a, b string) int {
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
