module github.com/ebbdb/ebb

go 1.26.0

// The engine, its files and its metrics.
require (
	github.com/klauspost/compress v1.20.3
	github.com/pierrec/lz4/v4 v4.1.33
	github.com/robfig/cron/v3 v3.0.1
	github.com/zeebo/xxh3 v1.1.0
	golang.org/x/sys v0.48.0
)

// The directory of groups.
require (
	github.com/hashicorp/go-hclog v1.6.3
	github.com/hashicorp/raft v1.8.0
)

// The driver of servers.
require github.com/redis/go-redis/v9 v9.23.0

// The program ebb. It is no module of its own, because then each release would need two tags. What programs link of this module
// does not grow by it: arrows_test.go asserts what the toolkit links.
require (
	github.com/coreos/go-systemd/v22 v22.7.0
	github.com/cpuguy83/go-md2man/v2 v2.0.6
	github.com/ergochat/readline v0.1.3
	github.com/spf13/cobra v1.10.1
	github.com/spf13/pflag v1.0.9
)

// Tests.
require (
	github.com/anishathalye/porcupine v1.0.3
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.2.0
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
