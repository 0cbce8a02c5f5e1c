// Command soak keeps ten thousand clients at work through lockfaultd, and looks
// for a wrong reply and for a leak.
//
// It starts two Redis servers, a Postgres, lockfaultd with its history on (more
// than one, where a process may not open as many files as it takes) and clients
// in processes of their own. A client's values are a function of who it is and
// of a count, so that it knows every reply beforehand. Clients come and go, in
// good order and not, and the servers are started anew five times meanwhile: a
// connection may be lost then, and only then; a reply is never wrong. In the end
// lockfaultd has to have given everything back, its history must have no gap, and
// it may have complained of nothing but a server that was down: no connection may
// have gone desync. It has no witness: the connections and files of one would look
// like a leak, and MONITOR would have to show all that ten thousand clients do.
//
// run.go is the course of events, clients.go the process of some clients,
// redis.go and postgres.go what one of them does, watch.go what lockfaultd
// costs, files.go whether it gives everything back, said.go what it complains of.
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

func main() {
	if len(os.Args) == 3 && os.Args[1] == "clients" {
		fatal(clients(os.Args[2], os.Stdin, os.Stdout))
		return
	}
	var o options
	flag.IntVar(&o.Connections, "connections", 10000, "clients at a time, all in all")
	flag.IntVar(&o.Postgres, "postgres", 180, "of them, on Postgres")
	flag.DurationVar(&o.Time, "time", time.Hour, "how long")
	flag.IntVar(&o.Restarts, "restarts", 5, "of a server")
	flag.Float64Var(&o.Rate, "rate", 3000, "actions per second, all in all")
	flag.DurationVar(&o.Stay, "stay", 5*time.Minute, "how long a client stays connected, on average")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Log = os.Stdout
	fatal(soak(ctx, o))
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
