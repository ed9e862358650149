#!/bin/bash
# appendfsync.sh [REQUESTS]: SETs a second with appendfsync everysec and always, 1, 50 and 200 connections, depth 1 and 16, on the servers
# in turn: op/s, p99 in ms, CPU in us for a request, medians of the rounds. Some six minutes. servers.sh has the environment; CLIENTS are
# the numbers of connections.
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/servers.sh
n=${1:-100000}
for policy in everysec always; do
	for i in "${!servers[@]}"; do start "$i" --appendonly yes --appendfsync $policy; done
	for clients in ${CLIENTS:-1 50 200}; do for depth in 1 16; do
		requests=$n
		[ $policy = everysec ] || requests=$((requests / 4))
		[ "$clients" -gt 1 ] || requests=$((requests / 4))
		[ $depth = 1 ] || requests=$((requests * 4))
		for _ in $(seq "$rounds"); do for i in "${!servers[@]}"; do
			printf '%s\t%s\t%s\n' "$policy, $clients connections, depth $depth" "$(name "$i")" \
				"$(load "$i" $requests set -c "$clients" -P $depth -r 100000 -d 32)"
		done; done | table
	done; done
	for i in "${!servers[@]}"; do stop "$i"; done
done
