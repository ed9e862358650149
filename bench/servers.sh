# servers.sh: what the scripts of bench/ that compare servers have in common. They source it.
#
# Environment: SERVERS, the programs to compare (default: ./ebb redis-server valkey-server-9; one that is not installed is left out),
# ROUNDS (default 3), PORT, the first server's port (default 7401; the others have the next ones), DIR, where the servers' files go
# (default: a temporary directory).
read -ra servers <<<"${SERVERS:-./ebb redis-server valkey-server-9}"
rounds=${ROUNDS:-3} first=${PORT:-7401}
work=$(mktemp -d ${DIR:+-p "$DIR"})
trap 'kill -9 $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
for i in "${!servers[@]}"; do
	command -v "${servers[i]}" >/dev/null || { echo "${servers[i]} is not installed" >&2; unset "servers[i]"; }
done
servers=("${servers[@]}")
pids=()

port() { echo $((first + $1)); }
name() { basename "${servers[$1]}"; }

# start I [OPTION...]: starts the I-th server, which keeps nothing on disk if no option says so, and waits until it replies. A password,
# TLS and the like are the options' matter: it asks on the plain port.
start() {
	local i=$1 program=("${servers[$1]}"); shift
	case $(basename "${program[0]}") in ebb*) program+=(serve) ;; esac
	mkdir -p "$work/$i"
	"${program[@]}" --port "$(port "$i")" --dir "$work/$i" --save "" --appendonly no "$@" >"$work/log.$i" 2>&1 &
	pids[i]=$!
	until [ "$(redis-cli -p "$(port "$i")" ping 2>/dev/null)" = PONG ]; do
		kill -0 "${pids[i]}" 2>/dev/null || { cat "$work/log.$i" >&2; exit 1; }
		sleep 0.05
	done
}

# stop I: kills the I-th server, and deletes its files.
stop() {
	kill -9 "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null || true
	rm -rf "${work:?}/$1"
}

# cpu I: the CPU time that the I-th server has used, in hundredths of a second.
cpu() { awk '{ print $14 + $15 }' "/proc/${pids[$1]}/stat"; }

# rss I: its resident memory in bytes.
rss() { awk '/VmRSS/ { print $2 * 1024 }' "/proc/${pids[$1]}/status"; }

# fill I KEYS: sets key:000000000000 and so on, with values of 32 bytes.
fill() {
	local request='*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$32\r\na value of thirty-two characters\r\n'
	awk -v n="$2" -v request="$request" 'BEGIN { for (i = 0; i < n; i++) printf request, i }' |
		redis-cli -p "$(port "$1")" --pipe >/dev/null
}

# load I REQUESTS TEST [OPTION...]: redis-benchmark on the I-th server; prints op/s, p99 in ms, and the server's CPU in us for a request.
load() {
	local i=$1 n=$2 test=$3 before line; shift 3
	before=$(cpu "$i")
	line=$(redis-benchmark -p "$(port "$i")" -n "$n" -t "$test" --csv "$@" 2>/dev/null | tail -1)
	awk -F '"' -v n="$n" -v ticks="$(($(cpu "$i") - before))" '{ print $4, $14, ticks * 1e4 / n }' <<<"$line"
}

# ours I REQUESTS TEST [OPTION...]: the same with `ebb bench` (EBB, default ./ebb), which has the options.
ours() {
	local i=$1 n=$2 test=$3; shift 3
	"${EBB:-./ebb}" bench -q --csv --pid "${pids[i]}" -n "$n" -t "$test" "$@" | awk -F , 'END { print $5, $9, $12 }'
}

# table: reads lines of a row's name, a tab, a server's name, a tab, and figures; prints for each row and server the medians.
table() {
	awk -F '\t' '
		{ key = $1 "\t" $2; if (!(key in count)) order[++keys] = key; lines[key, ++count[key]] = $3 }
		function median(key, column,   i, j, x, v, f) {
			for (i = 1; i <= count[key]; i++) {
				split(lines[key, i], f, " "); x = f[column] + 0
				for (j = i - 1; j > 0 && v[j] > x; j--) v[j + 1] = v[j]
				v[j + 1] = x
			}
			return v[int((count[key] + 1) / 2)]
		}
		END { for (k = 1; k <= keys; k++) {
			split(order[k], names, "\t"); columns = split(lines[order[k], 1], f, " ")
			printf "%-34s %-16s", names[1], names[2]
			for (c = 1; c <= columns; c++) { x = median(order[k], c); printf (x >= 1000 ? " %10.0f" : " %10.2f"), x }
			print ""
		} }'
}
