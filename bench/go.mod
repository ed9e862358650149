module github.com/ebbdb/ebb/bench

go 1.26.0

require (
	github.com/bsm/redislock v0.9.4
	github.com/dgraph-io/ristretto/v2 v2.3.0
	github.com/ebbdb/ebb v0.7.0
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/go-redsync/redsync/v4 v4.13.0
	github.com/hibiken/asynq v0.25.1
	github.com/jellydator/ttlcache/v3 v3.4.0
	github.com/maypok86/otter/v2 v2.4.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.69
	github.com/redis/rueidis/rueidiscompat v1.0.69
	github.com/redis/rueidis/rueidislimiter v1.0.67
	github.com/sethvargo/go-limiter v1.0.0
	golang.org/x/time v0.14.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.15.0 // indirect
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/ebbdb/ebb/contrib/rueidis v0.0.0
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.7.0 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.8 // indirect
)

replace github.com/ebbdb/ebb => ../

replace github.com/ebbdb/ebb/contrib/rueidis => ../contrib/rueidis
