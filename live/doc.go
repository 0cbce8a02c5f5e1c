// Package live shows what a daemon sees now: to a browser and to a terminal, the same for lockfaultd and probe.
//
// A [Snapshot] is the whole of what is shown, at one instant. Who serves one makes it, and answers GET /v1/state with
// its JSON; the package asks nobody and keeps nothing.
package live
