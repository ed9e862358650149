package cli

import "strings"

// Description returns the text of ebb cli's manual page: the purpose, and the flags, which are indented as text that keeps its lines.
func Description() string {
	_, flags, _ := strings.Cut(usage, "\n\nServer\n")
	return "Talk to a server that speaks the Redis protocol: ebb, Redis or Valkey. With a command it runs that, and ends; without one it is " +
		"interactive, with completion (TAB), hints and a history.\n\n    Server\n    " +
		strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(flags), "\n", "\n    "), "\n    \n", "\n\n")
}

const usage = `ebb cli: talk to a server that speaks the Redis protocol

Usage: ebb cli [OPTIONS] [cmd [arg [arg ...]]]

Server
  -h <hostname>        Host (default: 127.0.0.1).
  -p <port>            Port (default: 6379).
  -s <socket>          Unix socket (overrides host and port).
  -u <uri>             redis://user:password@host:port/db, rediss:// for TLS, or
                       unix://user:password@/path/to/socket?db=0; valkey://, valkeys://,
                       redis+unix:// and redis-socket:// are understood too.
  -n <db>              Database number.
  -t <seconds>         Give up connecting after this time (default: never).
  -4, -6               Try addresses of IPv4, or of IPv6, first.
  --mptcp              Connect with Multipath TCP where both systems have it.
  -2, -3               Protocol version.
  -c                   Go where a cluster redirects a command to (MOVED, ASK).

Password
  -a, --pass <pw>      Password; or the environment variable REDISCLI_AUTH
                       or VALKEYCLI_AUTH.
  --user <name>        User name.
  --askpass            Ask for the password.
  --no-auth-warning    Do not warn about a password in the argument list.

TLS
  --tls                Connect with TLS.
  --sni <host>         Server name to ask for and to check.
  --cacert <file>      Certificate authority (default: the system's).
  --cacertdir <dir>    Directory of certificate authorities.
  --cert, --key <file> Client certificate and its key.
  --insecure           Accept any certificate.

Input
  -x                   Last argument from standard input.
  -X <tag>             The argument equal to <tag> from standard input.
  --quoted-input       Arguments may be quoted: '"a\x00b"'.
  -r <n>               Run the command n times, -1 for ever.
  -i <seconds>         Wait between them (fractions allowed); also for --scan, --stat.

Output
  --raw                Replies as they are (default when output is not a terminal).
  --no-raw             Replies for people, terminal or not.
  --csv, --json        As CSV; as JSON (with RESP3, unless -2 is given).
  --quoted-json        As --json, with text in ASCII: \\xc3\\xa9.
  -d <s>, -D <s>       With --raw: between elements, behind replies (default: \n).
  -e                   Exit with 1 on an error reply.
  --show-pushes <yn>   Print RESP3 push messages (default: on a terminal).

Modes
  --eval <file>        Run a Lua script: --eval FILE [key ...] [, arg ...]
  --ldb                With --eval: run the script step by step, on a copy of the data.
  --ldb-sync-mode      The same on the data; the server serves no other client meanwhile.
  --rdb <file>         Write a snapshot of the server into a file, - for standard output.
  --functions-rdb <file>  The same of its functions alone, without the keys.
  --pipe               Send raw protocol from standard input, count the replies.
  --pipe-timeout <s>   Longest wait for the last reply (default: 30, 0: for ever).
  --scan               All keys, one a line; with --pattern <glob> or
                       --quoted-pattern <glob>, --count <n>, --type <type>.
  --bigkeys            The key of each type with the most elements or bytes.
  --memkeys            The key of each type that takes the most memory.
  --memkeys-samples <n>  The same; n elements of each key are weighed, 0 for all.
  --hotkeys            The keys that are used most; needs an LFU policy.
  --hotkeys-count <n>  The same for n keys (default: 16).
                       These take --pattern and --count too; -i waits after 100 SCANs.
  --latency            Sample PING; --latency-history in rows of 15 s (-i).
  --latency-dist       Sample PING, and paint a row of colours each second (-i).
  --intrinsic-latency <s>  How long this machine holds a busy program up; no server needed.
  --stat               Keys, memory, clients and requests, once a second (-i).
  --verbose            Accepted, without effect.
  --help, -v, --version

Without a command: interactive mode, with completion (TAB), hints and history.
There, "help" explains the rest.

Examples
  ebb cli set greeting hello px 1500
  cat photo.jpg | ebb cli -x set photo
  ebb cli -r -1 -i 1 info memory
  ebb cli --scan --pattern 'session:*' --type string
  ebb cli --eval script.lua key1 key2 , arg1
  printf 'SET a 1\r\nINCR a\r\n' | ebb cli --pipe
`
