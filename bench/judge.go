package main

import (
	"bufio"
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
	judgement "github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/report/html"
)

// judge prints what it takes to judge a history that is made up: from memory, where
// ops are made in a goroutine of their own, a few ahead of the judge, and from a file.
func judge(args []string) error {
	fs := flag.NewFlagSet("bench judge", flag.ContinueOnError)
	n := fs.Int("ops", 1_000_000, "how many")
	shape := fs.String("shape", "mixed", "of what: mixed (three processes, four locks, a few of them late), one (one lock, which is never free) or broken (one that excludes nobody)")
	file := fs.Bool("file", false, "write it to a file first, and read that")
	page := fs.Bool("page", false, "and draw the report's page of it (with -file)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if shapes[*shape] == nil {
		return fmt.Errorf("-shape %q: expected mixed, one or broken", *shape)
	}
	src := check.Source(func(take func(history.Entry) error) error { return newTape(*shape, *n).play(take) })
	if *file {
		dir, err := os.MkdirTemp("", "lockfaultd-bench-")
		if err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "history.jsonl")
		if err := writeTape(path, src); err != nil {
			return err
		}
		src = fromFile(path)
	}
	if !*file {
		src = ahead(src)
	}
	return measureJudge(*shape, src, *page)
}

// ahead plays a source in a goroutine of its own, as history.Scan reads a file.
func ahead(src check.Source) check.Source {
	const size = 256
	return func(take func(history.Entry) error) (err error) {
		batches, failed := make(chan []history.Entry, 2), error(nil)
		go func() {
			defer close(batches)
			b := make([]history.Entry, 0, size)
			failed = src(func(e history.Entry) error {
				if b = append(b, e); len(b) == size {
					batches <- b
					b = make([]history.Entry, 0, size)
				}
				return nil
			})
			batches <- b
		}()
		for b := range batches {
			for _, e := range b {
				if err == nil {
					err = take(e)
				}
			}
		}
		return cmp.Or(err, failed)
	}
}

// judgePercent is how often garbage is collected, as by probe verify.
const judgePercent = 200

func measureJudge(shape string, src check.Source, page bool) error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak so far
		return fmt.Errorf("reset peak: %w", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(judgePercent)
	}
	start, before := time.Now(), processorTime()
	judged := check.Stream
	if page {
		judged = check.Draw
	}
	r, err := judged(src, nil, nil)
	if err != nil {
		return err
	}
	var drawn bytes.Buffer
	if page {
		if err := html.Write(&drawn, judgement.Run{Result: r, Unplanned: true}); err != nil {
			return err
		}
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	codes := map[string]int{}
	for _, v := range r.Verdicts {
		codes[v.Code+" "+string(v.Level)] += v.Count
	}
	fmt.Printf("%s: %d ops in %.2f s, %.2f s of processor time, at most %d MiB\n",
		shape, r.Facts.Ops, time.Since(start).Seconds(), (processorTime() - before).Seconds(), peak>>20)
	if page {
		fmt.Printf("a page of %d bytes\n", drawn.Len())
	}
	fmt.Printf("%d grants, %d verdicts: %v\n", r.Facts.Grants, len(r.Verdicts), codes)
	return nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most that this process had in memory, in bytes.
func peakMemory() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read peak: %w", err)
	}
	_, rest, ok := bytes.Cut(b, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("read peak: it is not told")
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}

func writeTape(path string, src check.Source) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	var w *history.Writer
	err = src(func(e history.Entry) error {
		switch {
		case e.Header != nil:
			w = history.NewWriter(out, *e.Header, func(_, column string) bool { return column == "value" || column == "fence" })
		case e.Op != nil:
			w.Op(e.Op)
		case e.Invariants != nil:
			w.Invariants(*e.Invariants)
		}
		return w.Err()
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func fromFile(path string) check.Source {
	return func(take func(history.Entry) error) error {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		defer f.Close()
		return history.Scan(f, take)
	}
}
