// Package metrics tells Prometheus what a daemon sees.
//
// A [Daemon] is fed with what goes into the history, in the order in which it does and by the goroutine that writes
// it, and asks its [Sources] for the rest at a scrape: no session waits for either. docs/metrics.md lists what it tells.
//
// A lock is named by what declares it, or else by the shape of its key, in which digits and other things that
// tell one from the next are *: see [Names]. There are never more than so many.
package metrics
