package probe

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// workerArg makes the test binary a worker, as the hidden subcommand does.
const workerArg = "probe-test-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		if err := ServeWorker(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
