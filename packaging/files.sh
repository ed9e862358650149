#!/bin/sh
# packaging/files.sh DIR: makes the manual pages (compressed) and the completions of this tree in DIR, by a program of this machine.
# packaging/build.sh and .goreleaser.yaml use it.
set -eu
dir=$1
GO=${GO:-go}
mkdir -p "$dir/completions"
CGO_ENABLED=0 GOOS='' GOARCH='' $GO build -tags man -o "$dir/here" ./cmd/ebb
"$dir/here" man "$dir"
for shell in bash zsh fish; do
	"$dir/here" completion $shell >"$dir/completions/ebb.$shell"
done
rm "$dir/here"
gzip -9nf "$dir"/man1/*.1 "$dir"/man5/*.5
