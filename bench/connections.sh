#!/bin/bash
# connections.sh [CONNECTIONS]: SET and GET over 10,000 connections at once, plain and with TLS, depth 1, on the servers in turn: op/s, p99
# in ms, CPU in us for a request, medians of the rounds. Needs openssl, and servers built with TLS. Some five minutes.
# servers.sh has the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
n=${1:-10000}
ulimit -n $((n + 1000))
source bench/servers.sh
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-keyout "$work/key" -out "$work/crt" 2>/dev/null
cp "$work/crt" "$work/ca"
tls=(--tls-cert-file "$work/crt" --tls-key-file "$work/key" --tls-ca-cert-file "$work/ca" --tls-auth-clients no)
for i in "${!servers[@]}"; do
	start "$i" --maxclients $((n + 100)) --tls-port $(($(port "$i") + 100)) "${tls[@]}"
	fill "$i" 1000000
done
for kind in plain TLS; do
	for _ in $(seq "$rounds"); do for test in set get; do for i in "${!servers[@]}"; do
		options=(-p "$(port "$i")")
		[ $kind = plain ] || options=(-p $(($(port "$i") + 100)) --tls --insecure)
		printf '%s\t%s\t%s\n' "$test, $n connections, $kind" "$(name "$i")" \
			"$(ours "$i" 300000 $test -c "$n" -r 1000000 --size 32 "${options[@]}")"
	done; done; done | table
done
