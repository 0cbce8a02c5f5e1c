package check

// A Limit is one that the judge met, and what it did not look at for that reason.
type Limit struct {
	What string // in words, beginning with what N counts
	N    int
}

// A bound is a limit that the judge has.
type bound int

const (
	boundTerms bound = iota
	boundHanging
	boundCluster
	boundOrders
	boundLocks
	boundTables
	boundCells
	boundVerdicts
	bounds
)

var boundWords = [bounds]string{
	boundTerms:    "terms that went on for longer than the judge keeps ops: what is said of them is LIKELY at most",
	boundHanging:  "ops without an answer that were forgotten after a long time: if they happened late, nothing was compared with them",
	boundCluster:  "sections, or writers under no lock, that met too many others to be put in every order: only what two of them show for certain was judged, so a harm that takes more may be missed, and what is told is no less sure",
	boundOrders:   "groups of them with too many orders to go through: of those only what two show for certain was judged, likewise",
	boundLocks:    "terms of locks beyond the number that is told apart",
	boundTables:   "writes of tables beyond the number that is remembered",
	boundCells:    "cells beyond the number of which it is remembered what was in them",
	boundVerdicts: "verdicts beyond the number that is told one by one: they are counted in the last of their kind",
}

// meet notes that a limit kept something from being looked at.
func (c *carry) meet(b bound) { c.limits[b]++ }

// sumLimits lists the limits that were met.
func (c *carry) sumLimits() {
	c.limits[boundTerms], c.limits[boundHanging] = c.pins, c.hung
	for b, n := range c.limits {
		if n > 0 {
			c.out.Facts.Limits = append(c.out.Facts.Limits, Limit{boundWords[b], n})
		}
	}
}
