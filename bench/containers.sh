#!/bin/bash
# containers.sh: resident bytes for each of a million keys, fields, members and elements, with and without deadlines, on each server: the
# growth of VmRSS of a fresh server, load included. "-": the server does not know the command. Some five minutes. servers.sh has the
# environment; more servers are a matter of SERVERS, such as "./ebb redis-server redis-server-8 valkey-server-9".
set -euo pipefail
cd "$(dirname "$0")/.."
source bench/servers.sh
n=1000000 at=$(($(date +%s) * 1000 + 36000000)) value=0123456789abcdef

# requests COMMAND...: a million of them; %i is the item, %s one of five items, %h of a hundred, %c of a thousand, %n the item's number.
requests() {
	awk -v n=$n 'BEGIN {
		for (i = 0; i < n; i++) {
			out = "*" (ARGC - 1) "\r\n"
			for (a = 1; a < ARGC; a++) {
				w = ARGV[a]
				if (w == "%i") w = sprintf("i%09d", i)
				else if (w == "%s") w = sprintf("s%06d", i / 5)
				else if (w == "%h") w = sprintf("h%06d", i / 100)
				else if (w == "%c") w = sprintf("c%06d", i / 1000)
				else if (w == "%n") w = i
				out = out "$" length(w) "\r\n" w "\r\n"
			}
			printf "%s", out
		}
	}' "$@"
}

row() { # NAME COMMAND...
	printf '%-34s' "$1"; shift
	for i in "${!servers[@]}"; do
		start "$i"
		empty=$(rss "$i")
		if requests "$@" | redis-cli -p "$(port "$i")" --pipe >/dev/null 2>&1; then
			awk -v a="$empty" -v b="$(rss "$i")" -v n=$n 'BEGIN { printf " %16.1f", (b - a) / n }'
		else
			printf ' %16s' -
		fi
		stop "$i"
	done
	echo
}

printf '%-34s' ''
for i in "${!servers[@]}"; do printf ' %16s' "$(name "$i")"; done
echo
row "key of 10, value of 16" SET %i $value
row "the same with a deadline" SET %i $value PXAT $at
row "field, hashes of 5" HSET %s %i $value
row "field, hashes of 1,000" HSET %c %i $value
row "field with a deadline, of 1,000" HSETEX %c PXAT $at FIELDS 1 %i $value
row "set member, sets of 5" SADD %s %i
row "set member, sets of 1,000" SADD %c %i
row "zset member, zsets of 5" ZADD %s %n %i
row "zset member, zsets of 100" ZADD %h %n %i
row "zset member, zsets of 1,000" ZADD %c %n %i
row "zset member, one zset" ZADD zset %n %i
row "list element, lists of 1,000" RPUSH %c %i
row "stream entry, streams of 1,000" XADD %c '*' order %i
