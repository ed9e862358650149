#!/bin/sh
# packaging/image.sh ROOT: makes the files of the image around ROOT/usr/bin/ebb.
set -eu
root=$1
mkdir -p "$root/data" "$root/tmp" "$root/usr/share/doc/ebb"
chmod 1777 "$root/tmp"
here=$(dirname "$0")
cp "$here/../LICENSE" "$here/third-party.txt" "$root/usr/share/doc/ebb"
for name in server cli benchmark check-rdb check-aof; do
	ln -sf ebb "$root/usr/bin/redis-$name"
	ln -sf ebb "$root/usr/bin/valkey-$name"
done
