#!/bin/bash
# memory.sh EBB PORT: bytes that a deadline adds to a field, member or element, and bytes of a limiter, a lock and a
# delayed job: resident memory of a fresh `EBB serve` after a million of each, less that of the empty server. Needs
# redis-cli, awk and python3.
set -eu
ebb=$1 port=$2
n=1000000 at=$(($(date +%s) * 1000 + 3600000))

# gen COMMAND...: a million requests; %c is the container (a thousand items each), %s one of five items, %i the item.
gen() {
	python3 - "$n" "$@" <<-'END'
		import sys
		n, args, out = int(sys.argv[1]), sys.argv[2:], sys.stdout
		head = "*%d\r\n" % len(args)
		for i in range(n):
		    b = [head]
		    for a in args:
		        if "%" in a:
		            a = a.replace("%c", "c%06d" % (i // 1000)).replace("%s", "s%06d" % (i // 5)).replace("%i", "i%09d" % i).replace("%n", str(i))
		        b.append("$%d\r\n%s\r\n" % (len(a), a))
		    out.write("".join(b))
	END
}

# measure COMMAND...: resident and living bytes for each.
measure() {
	"$ebb" serve --port "$port" >/dev/null 2>&1 &
	pid=$!
	until redis-cli -p "$port" ping >/dev/null 2>&1; do :; done
	rss() { awk '/VmRSS/ {print $2 * 1024}' "/proc/$pid/status"; }
	used() { redis-cli -p "$port" info memory | tr -d '\r' | awk -F: '$1 == "used_memory_dataset" {print $2}'; }
	a=$(rss) u=$(used)
	gen "$@" | redis-cli -p "$port" --pipe >/dev/null
	awk -v a="$a" -v b="$(rss)" -v u="$u" -v v="$(used)" -v n=$n 'BEGIN {printf "%.1f %.1f", (b - a) / n, (v - u) / n}'
	kill $pid
	wait $pid 2>/dev/null || true
}

# pair NAME PLAIN -- TIMED
pair() {
	name=$1; shift
	plain=() timed=() seen=
	for w in "$@"; do if [ "$w" = -- ]; then seen=1; elif [ -n "$seen" ]; then timed+=("$w"); else plain+=("$w"); fi; done
	read -r p pu <<<"$(measure "${plain[@]}")"
	read -r t tu <<<"$(measure "${timed[@]}")"
	awk -v name="$name" -v p="$p" -v t="$t" -v pu="$pu" -v tu="$tu" 'BEGIN {printf "%-34s plain %6.1f  with a deadline %6.1f  more %5.1f   (living bytes %5.1f, %5.1f: %5.1f more)\n", name, p, t, t - p, pu, tu, tu - pu}'
}

one() {
	name=$1; shift
	read -r p pu <<<"$(measure "$@")"
	printf '%-34s %6.1f  (living bytes %.1f)\n' "$name" "$p" "$pu"
}

value=0123456789abcdef
pair "field, hashes of 1000"        HSET %c %i $value -- HSETEX %c PXAT $at FIELDS 1 %i $value
pair "field, hashes of 5"           HSET %s %i $value -- HSETEX %s PXAT $at FIELDS 1 %i $value
pair "set member, sets of 1000"     SADD %c %i -- SADDEX %c PXAT $at MEMBERS 1 %i
pair "set member, sets of 5"        SADD %s %i -- SADDEX %s PXAT $at MEMBERS 1 %i
pair "zset member, zsets of 1000"   ZADD %c %n %i -- ZADDEX %c PXAT $at MEMBERS 1 %n %i
pair "zset member, zsets of 5"      ZADD %s %n %i -- ZADDEX %s PXAT $at MEMBERS 1 %n %i
pair "list element, lists of 1000"  RPUSH %c %i -- RPUSHEX %c PXAT $at ELEMENTS 1 %i
one  "limiter (gcra), key of 10"    RL.TAKE %i 100 3600000
one  "lock, key of 10, owner of 10" LOCK.ACQUIRE %i %i 3600000
one  "delayed job, id 10, payload 16" DQ.ADD q %i $value DELAY 3600000
