#!/bin/bash
# acked.sh: SET that a group acknowledges at min-sync-replicas 1, beside SET and WAIT 1 on the other servers, each with a replica, and
# beside ebb without a group. The group is two servers and a witness, in memory. Some three minutes; ROUNDS (7) are more than elsewhere.
# servers.sh has the rest of the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
export ROUNDS=${ROUNDS:-7}
source bench/servers.sh
ebb=${EBB:-./ebb} against=
list=127.0.0.1:$((first + 50)),127.0.0.1:$((first + 51)),127.0.0.1:$((first + 52))
member() { # member COMMAND I [OPTION...]: a node of the group
	local command=$1 i=$2; shift 2
	mkdir -p "$work/node$i"
	"$ebb" "$command" --port $((first + 30 + i)) --dir "$work/node$i" --group "$list" --group-port $((first + 50 + i)) \
		--sentinel-port $((first + 60 + i)) --min-sync-replicas 1 "$@" >"$work/log.node$i" 2>&1 &
}
member serve 0 --save "" --appendonly no
member serve 1 --save "" --appendonly no
member witness 2
for i in "${!servers[@]}"; do
	start "$i"
	case $(name "$i") in ebb*) alone=127.0.0.1:$(port "$i"); continue ;; esac
	against+=${against:+,}$(name "$i")=127.0.0.1:$(port "$i")
	mkdir "$work/replica$i"
	"${servers[i]}" --port $((first + 20 + i)) --dir "$work/replica$i" --save "" --replicaof "127.0.0.1 $(port "$i")" \
		>"$work/log.replica$i" 2>&1 &
	until redis-cli -p "$(port "$i")" info replication | grep -q state=online; do sleep 0.1; done
done
until master=$(redis-cli -p $((first + 62)) sentinel get-master-addr-by-name ebb 2>/dev/null | sed -n 2p) && [ -n "$master" ] &&
	redis-cli -p "$master" info replication | grep -q group_in_sync:2; do sleep 0.1; done
"$ebb" bench acked -q -p "$master" --against "$against" ${alone:+--alone "$alone"} --rounds "$rounds" ${DURATION:+-d "$DURATION"}
