#!/bin/bash
# appendfsync.sh [REQUESTS]: SETs a second with appendfsync everysec and always, 50
# connections, depth 1 and 16, on redis-server and on ebb, in turn.
#
# Environment: EBB, the program (default ./ebb), ROUNDS (default 3), DIR, where the
# files go (default: a temporary directory).
set -euo pipefail
n=${1:-200000} ebb=$(realpath "${EBB:-./ebb}")
dir=$(mktemp -d ${DIR:+-p "$DIR"})
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
port=${PORT:-7391}
for policy in everysec always; do
	for round in $(seq "${ROUNDS:-3}"); do
		for name in redis ebb; do
			mkdir "$dir/$name"
			options=(--port $port --dir "$dir/$name" --save "" --appendonly yes --appendfsync $policy)
			case $name in
			redis) redis-server "${options[@]}" >/dev/null 2>&1 & ;;
			ebb) "$ebb" serve "${options[@]}" >/dev/null 2>&1 & ;;
			esac
			pid=$!
			until [ "$(redis-cli -p $port ping 2>/dev/null)" = PONG ]; do sleep 0.05; done
			for depth in 1 16; do
				cpu() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
				requests=$n
				[ $policy = everysec ] || requests=$((n / 4))
				[ $depth = 1 ] || requests=$((requests * 4))
				before=$(cpu)
				line=$(redis-benchmark -p $port -c 50 -P $depth -n $requests -r 100000 -d 32 -t set --csv 2>/dev/null | tail -1)
				awk -F '"' -v l="$name $policy" -v d=$depth -v n=$requests -v t="$(($(cpu) - before))" \
					'{ printf "%-15s depth %2d %9.0f op/s  p99 %7s ms  %5.2f us CPU\n", l, d, $4, $14, t * 1e4 / n }' <<<"$line"
			done
			kill -9 "$pid"; wait "$pid" 2>/dev/null || true
			rm -rf "${dir:?}/$name"
		done
	done
done
