#!/bin/sh
# packaging/build.sh DIST FORMAT...: builds packages (deb, rpm, apk) of this tree into DIST for GOARCH,
# with the program, its manual pages and its completions. The Makefile has the version of nfpm.
set -eu
dist=$1
shift
GO=${GO:-go}
GOARCH=${GOARCH:-$($GO env GOARCH)}
VERSION=${VERSION:-$(sed -n 's/^## \([0-9][0-9.]*\) ([0-9].*/\1/p' CHANGELOG.md | head -n 1)}
export GOARCH VERSION
mkdir -p "$dist/files"
CGO_ENABLED=0 GOOS=linux $GO build -trimpath -ldflags '-s -w' -o "$dist/files/ebb" ./cmd/ebb
packaging/files.sh "$dist/files"
# nfpm expands no variables in the paths of contents.
sed "s|dist/|$dist/files/|" packaging/nfpm.yaml >"$dist/nfpm.yaml"
nfpm=$(.ci/tool "${NFPM:-$(sed -n "s/^NFPM *= *//p" Makefile)}")
for format in "$@"; do
	"$nfpm" package --config "$dist/nfpm.yaml" --packager "$format" --target "$dist/"
done
