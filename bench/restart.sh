#!/bin/bash
# restart.sh [KEYS]: how long redis-server and ebb take to serve again after kill -9,
# from an RDB file and from append-only files (a base and as many commands again).
#
# Environment: EBB, the program (default ./ebb), ROUNDS (default 2).
set -euo pipefail
keys=${1:-5000000} ebb=$(realpath "${EBB:-./ebb}") rounds=${ROUNDS:-2}
dir=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
port=${PORT:-7390}

start() { # redis|ebb
	local options=(--port $port --dir "$dir/$1" --save "" --appendonly "$2" --enable-debug-command yes --auto-aof-rewrite-percentage 0)
	case $1 in
	redis) redis-server "${options[@]}" >"$dir/log" 2>&1 & ;;
	ebb) "$ebb" serve "${options[@]}" >"$dir/log" 2>&1 & ;;
	esac
	pid=$!
	until [ "$(redis-cli -p $port ping 2>/dev/null)" = PONG ]; do sleep 0.01; done
}
die() { kill -9 "$pid"; wait "$pid" 2>/dev/null || true; }
again() { # NAME APPENDONLY WHAT
	local from; from=$(date +%s%N)
	start "$1" "$2"
	printf '%-6s %-28s %6.2f s  (%s keys)\n' "$1" "$3" "$(awk -v a="$from" -v b="$(date +%s%N)" 'BEGIN { print (b - a) / 1e9 }')" "$(redis-cli -p $port dbsize)"
	die
}
for name in redis ebb; do
	mkdir "$dir/$name"
	start $name no
	redis-cli -p $port debug populate "$keys" key 32 >/dev/null
	redis-cli -p $port save >/dev/null
	die
	for _ in $(seq "$rounds"); do again $name no "RDB file"; done
	rm -rf "${dir:?}/$name"/*
	start $name yes
	redis-cli -p $port debug populate "$keys" key 32 >/dev/null
	redis-cli -p $port bgrewriteaof >/dev/null
	while redis-cli -p $port info persistence | grep -qE 'aof_rewrite_(in_progress|scheduled):1'; do sleep 0.1; done
	redis-benchmark -p $port -c 50 -P 32 -n "$keys" -r "$keys" -d 32 -t set -q >/dev/null
	sleep 1.5
	die
	for _ in $(seq "$rounds"); do again $name yes "AOF: base and as many SETs"; done
	rm -rf "${dir:?}/$name"
done
