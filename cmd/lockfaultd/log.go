package main

import (
	"io"
	"log/slog"
)

// logOfSidecar is of a daemon that serves on: what its rules do is worth a line
// with its time, and with verbose so is each session.
func logOfSidecar(w io.Writer, verbose bool) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level(slog.LevelInfo, verbose)}))
}

// logTo is of what stands beside the output of a command.
func logTo(w io.Writer, verbose bool) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level(slog.LevelWarn, verbose), ReplaceAttr: withoutTime}))
}

func level(usual slog.Level, verbose bool) slog.Level {
	if verbose {
		return slog.LevelDebug
	}
	return usual
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
