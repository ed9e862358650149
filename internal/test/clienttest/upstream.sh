#!/bin/bash
# Runs the tests of Go projects that live on EVAL, unchanged, against a server:
#
#   internal/test/clienttest/upstream.sh [host:port | program]
#
# Without an argument it builds ebb and serves an empty one on 127.0.0.1:6379,
# the port that most of these tests have in their source; a program, such as
# redis-server, is started there in its place. Tests empty the databases that
# they use. It prints a line for each project, and what failed; it exits with 1
# if a test failed for which no reason stands below, or a project ran none.
# EBB_UPSTREAM=asynq runs the projects alone whose module path matches, and
# EBB_UPSTREAM_LOG names a file to which the output of failures is appended.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
GO=${GO:-go}
addr=127.0.0.1:6379
program=
work=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null; chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

case ${1:-} in
*:*) addr=$1 ;;
'')
	$GO build -o "$work/ebb" ./cmd/ebb || exit 1
	program=$work/bin/redis-server
	mkdir "$work/bin"
	printf '#!/bin/sh\nexec "%s" serve "$@"\n' "$work/ebb" >"$program"
	chmod +x "$program"
	;;
*) program=$(command -v "$1") || exit 1 ;;
esac

# answers: whether a server replies to PING at the address.
answers() {
	local line
	exec 3<>"/dev/tcp/${addr%:*}/${addr##*:}" || return 1
	printf 'PING\r\n' >&3
	read -r -t 5 line <&3
	exec 3>&-
	[ "$line" = $'+PONG\r' ]
} 2>/dev/null

if [ -n "$program" ]; then
	if answers; then
		echo "another server listens on $addr already" >&2
		exit 1
	fi
	"$program" --port "${addr##*:}" --bind "${addr%:*}" --dir "$work" --save '' >"$work/server.log" 2>&1 &
	server=$!
	until answers; do
		if ! kill -0 "$server" 2>/dev/null; then
			cat "$work/server.log" >&2
			exit 1
		fi
	done
elif ! answers; then
	echo "no server replies at $addr" >&2
	exit 1
fi

# ended ACTION: the tests that ended so, among them subtests.
ended() { sed -n 's/.*"Action":"'"$1"'".*"Test":"\([^"]*\)".*/\1/p' "$work/events" | sort; }

status=0
# project MODULE VERSION NEEDS FLAGS...: NEEDS is the port that its tests insist
# on, "any", or "program" where they start redis-server from the PATH. The tests
# in $known fail on redis-server as well.
project() {
	local module=$1 version=$2 needs=$3 name dir from new
	shift 3
	[[ $module =~ ${EBB_UPSTREAM:-} ]] || return
	name=$(printf '%-36s %-8s' "$module" "$version")
	case $needs in
	any | "${addr##*:}") ;;
	program)
		if [ -z "$program" ]; then
			echo "$name not run: its tests start a server of their own, so name the program"
			return
		fi
		;;
	*)
		echo "$name not run: its tests want port $needs"
		return
		;;
	esac
	dir=$($GO mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	if [ -z "$dir" ]; then
		echo "$name cannot be downloaded"
		status=1
		return
	fi
	# The module cache is read-only, and go test adds to go.sum. Packages run one
	# after the other, for they share databases.
	cp -r "$dir" "$work/src"
	chmod -R u+w "$work/src"
	from=$(date +%s)
	(
		cd "$work/src" || exit
		[ -z "$program" ] || PATH=$(dirname "$program"):$PATH
		GOFLAGS=-mod=mod $GO test -json -count 1 -p 1 -timeout 15m "$@"
	) >"$work/events" 2>"$work/complaints"
	local went=$?
	ended fail >"$work/failed"
	new=$(tr ' ' '\n' <<<"${known:-}" | sort | comm -23 "$work/failed" -)
	echo "$name $(ended pass | wc -l) passed, $(wc -l <"$work/failed") failed, $(ended skip | wc -l) skipped, $(($(date +%s) - from)) s"
	sed 's/^/  failed: /' "$work/failed"
	[ ! -s "$work/failed" ] || [ -z "${EBB_UPSTREAM_LOG:-}" ] || cat "$work/events" >>"$EBB_UPSTREAM_LOG"
	if [ -n "$new" ] || [ "$(ended pass | wc -l)" = 0 ]; then
		status=1
	elif [ -s "$work/failed" ]; then
		echo "  a reason for each stands in $0"
	elif [ $went != 0 ]; then
		status=1
		sed 's/^/  /' "$work/complaints"
	fi
	rm -rf "$work/src"
}

project github.com/hibiken/asynq v0.26.0 any . ./internal/rdb -redis_addr "$addr"

# Its script computes with seconds since 2017 as floating point. Since they went
# beyond 2^28, on 2025-07-04, what remains of ten is 8.999999, and is cut to 8,
# on redis-server as well.
known='TestAllow TestAllowN_IncrementZero TestAllowAtMost TestAllowAtMost_IncrementZero ExampleNewLimiter' \
	project github.com/go-redis/redis_rate/v10 v10.0.1 6379 ./...
project github.com/bsm/redislock v0.9.4 6379 ./...
project github.com/throttled/throttled/v2 v2.15.0 6379 ./...
REDIS_URI=redis://$addr/0 project github.com/ulule/limiter/v3 v3.11.2 any ./drivers/store/redis

# It imitates Redis 8, and its tests compare it with a real one. HELLO lists the module
# vectorset there; TTL with a member of the key is ebb's own; BITCOUNT takes a start alone, as Valkey's.
known='TestHello TestExpire TestBitcount' \
	INT=1 project github.com/alicebob/miniredis/v2 v2.36.1 program ./integration

# Its tests start 48 servers, with directives on the standard input, and wait for the line that says "Ready to accept connections".
project github.com/go-redsync/redsync/v4 v4.15.0 program ./...
exit $status
