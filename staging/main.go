// Command staging plays a day of a staging environment, in small: a sidecar and probe
// beside services, for twenty minutes, with everything failing in turn.
//
// It starts a Redis and a Postgres of its own, lockfaultd with an admin API and no rule,
// probe serve behind that, and two services through the proxies: one whose lock has no
// fence, so that a pause at the wrong moment loses an update, and one that claims a fence
// at the read and works as fast as it can. Then, again and again, there is a stretch
// without faults; the rule that makes the first service lose exactly one update is added
// through the API, for one time, and taken away again; and one of probe, lockfaultd,
// Redis and Postgres is killed, or started anew. Probe itself is killed, too, while it has
// yet to tell what has happened.
//
// In the end probe must have told of as many lost updates as were made, once each, and of
// no other harm; and the memory of both must not have grown.
//
// day.go is the course of events, parts.go the processes, config.go what those are told,
// ask.go what is asked of them, memory.go what they take.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Options say how much, and for how long.
type options struct {
	Time  time.Duration // of the whole
	Quiet time.Duration // of each stretch without faults
	Calm  bool          // nothing is killed
	Busy  int           // processes of the second service
	Keep  string        // a folder; "": one that is removed
}

func main() {
	var o options
	flag.DurationVar(&o.Time, "time", 20*time.Minute, "how long")
	flag.DurationVar(&o.Quiet, "quiet", 10*time.Second, "stretches without faults between two rounds")
	flag.BoolVar(&o.Calm, "calm", false, "kill nothing: what memory does over the whole time")
	flag.IntVar(&o.Busy, "busy", 4, "processes of the service that works as fast as it can")
	flag.StringVar(&o.Keep, "keep", "", "folder for histories, state and logs, which then stay")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := stage(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "staging:", err)
		os.Exit(1)
	}
}
