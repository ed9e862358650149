package cli

const usage = `ebb cli: talk to a server that speaks the Redis protocol

Usage: ebb cli [OPTIONS] [cmd [arg [arg ...]]]

Server
  -h <hostname>        Host (default: 127.0.0.1).
  -p <port>            Port (default: 6379).
  -s <socket>          Unix socket (overrides host and port).
  -u <uri>             redis://user:password@host:port/db, or rediss:// for TLS.
  -n <db>              Database number.
  -t <seconds>         Give up connecting after this time (default: never).
  -2, -3               Protocol version.
  -c                   Accepted, without effect: there is one node.

Password
  -a, --pass <pw>      Password; or the environment variable REDISCLI_AUTH.
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
  --raw                Replies as they are (default when output is no terminal).
  --no-raw             Replies for people, terminal or not.
  --csv, --json        As CSV; as JSON.
  -d <s>, -D <s>       With --raw: between elements, behind replies (default: \n).
  -e                   Exit with 1 on an error reply.
  --show-pushes <yn>   Print RESP3 push messages (default: on a terminal).

Modes
  --rdb <file>         Write a snapshot of the server into a file, - for standard output.
  --pipe               Send raw protocol from standard input, count the replies.
  --pipe-timeout <s>   Longest wait for the last reply (default: 30, 0: for ever).
  --scan               All keys, one a line; with --pattern <glob> or
                       --quoted-pattern <glob>, --count <n>, --type <type>.
  --latency            Sample PING; --latency-history in rows of 15 s (-i).
  --stat               Keys, memory, clients and requests, once a second (-i).
  --help, --version

Without a command: interactive mode, with completion (TAB), hints and history.
There, "help" explains the rest.

Examples
  ebb cli set greeting hello px 1500
  cat photo.jpg | ebb cli -x set photo
  ebb cli -r -1 -i 1 info memory
  ebb cli --scan --pattern 'session:*' --type string
  printf 'SET a 1\r\nINCR a\r\n' | ebb cli --pipe
`
