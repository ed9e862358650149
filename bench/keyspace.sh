#!/bin/bash
# keyspace.sh [KEYS...]: SET and GET of keys at random in keyspaces of 1, 10 and 20 million keys (of 16 bytes, values of 32), 50
# connections, depth 1 and 32, on the servers in turn: op/s, p99 in ms, CPU in us for a request, medians of the rounds; and the resident
# bytes of a key. Some 3 minutes for 20 million keys. servers.sh has the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/servers.sh
for keys in "${@:-1000000 10000000 20000000}"; do for n in $keys; do
	for i in "${!servers[@]}"; do
		start "$i"
		empty=$(rss "$i")
		fill "$i" "$n"
		printf '%-34s %-16s %10.1f\n' \
			"resident bytes of a key, $n keys" "$(name "$i")" \
			"$(awk -v a="$empty" -v b="$(rss "$i")" -v n="$n" 'BEGIN { print (b - a) / n }')"
	done
	for depth in 1 32; do
		requests=200000
		[ $depth = 1 ] || requests=2000000
		for _ in $(seq "$rounds"); do for test in set get; do for i in "${!servers[@]}"; do
			printf '%s\t%s\t%s\n' "$test, depth $depth, $n keys" "$(name "$i")" "$(load "$i" $requests $test -c 50 -P $depth -r "$n" -d 32)"
		done; done; done
	done | table
	for i in "${!servers[@]}"; do stop "$i"; done
done; done
