package service

import (
	"context"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
)

// A Folder is where a daemon writes its histories, in parts.
type Folder struct{ Dir string }

// How often it is looked for more, and how much is read at a time.
const (
	folderPause = 100 * time.Millisecond
	folderBatch = 1000
)

// Name is the folder.
func (f Folder) Name() string { return f.Dir }

// Follow reads the parts, waits for more, and begins anew behind the last line that it told of where a reading fails.
func (f Folder) Follow(ctx context.Context, from Position, tell func(Message)) {
	for ctx.Err() == nil {
		err := f.follow(ctx, &from, tell)
		if err == nil || ctx.Err() != nil {
			return
		}
		tell(Message{At: time.Now(), Down: err.Error()})
		pause(ctx, lastRetry)
	}
}

func (f Folder) follow(ctx context.Context, from *Position, tell func(Message)) error {
	follower := history.Follow(f.Dir)
	if from.Run != "" {
		follower = history.FollowFrom(f.Dir, from.Run, from.N)
	}
	defer follower.Close()
	for up := false; ctx.Err() == nil; {
		lines, err := follower.Next(folderBatch)
		if err != nil {
			return err
		}
		if !up {
			up = true
			tell(Message{At: time.Now(), Up: true})
		}
		for _, l := range lines {
			*from = Position{l.Run, l.N}
			tell(Message{At: time.Now(), Pos: *from, Line: l.Text})
		}
		if len(lines) == 0 {
			pause(ctx, folderPause)
		}
	}
	return nil
}

// pause waits, until the context ends at the latest.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
