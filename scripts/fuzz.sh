#!/bin/sh
# Runs every fuzz target of the module for the given time each.
set -eu
time=${1:-30s}
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
    for target in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do
        echo "== $dir $target"
        go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
    done
done
