module github.com/ebbdb/ebb

go 1.26.0

// The engine, its files and its clock.
require (
	github.com/klauspost/compress v1.20.3 // zstd of RDB files that Valkey has compressed: internal/rdb
	github.com/pierrec/lz4/v4 v4.1.33 // LZ4 of the same
	github.com/robfig/cron/v3 v3.0.1 // cron expressions of schedules: internal/cron
	github.com/zeebo/xxh3 v1.1.0 // the hash of Bloom filters, of DIGEST and of ebb check
	golang.org/x/sys v0.48.0 // epoll, kqueue and sockets: internal/reactor
)

// The directory of groups.
require (
	github.com/hashicorp/go-hclog v1.6.3 // the type of raft's logger: internal/group/voter
	github.com/hashicorp/raft v1.8.0 // the voters of the directory
)

// The driver of servers.
require github.com/redis/go-redis/v9 v9.23.0 // goredis; tests use it as a client

// The program ebb. It is no module of its own, because then each release would need two tags. What programs link of this module
// does not grow by it: arrows_test.go asserts what the toolkit links.
require (
	github.com/coreos/go-systemd/v22 v22.7.0 // tells systemd that the server is ready or ends
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // manual pages, with the build tag man
	github.com/ergochat/readline v0.1.3 // the line editor of ebb cli
	github.com/spf13/cobra v1.10.1 // the subcommands of ebb
	github.com/spf13/pflag v1.0.9 // the options of the subcommands
)

// Tests.
require (
	github.com/anishathalye/porcupine v1.0.3 // checks that histories are linearizable
	go.uber.org/goleak v1.3.0 // finds goroutines that a test leaves
	pgregory.net/rapid v1.2.0 // state machines that draw from a seed
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fatih/color v1.13.0 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-metrics v0.7.0 // indirect
	github.com/hashicorp/go-msgpack/v2 v2.1.5 // indirect
	github.com/hashicorp/golang-lru v1.0.2 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/mattn/go-colorable v0.1.12 // indirect
	github.com/mattn/go-isatty v0.0.14 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/text v0.28.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
