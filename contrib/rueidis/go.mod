module github.com/ebbdb/ebb/contrib/rueidis

go 1.26

require (
	github.com/ebbdb/ebb v0.0.0
	github.com/redis/rueidis v1.0.67
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/minio/highwayhash v1.0.3 // indirect
	github.com/redis/go-redis/v9 v9.17.3 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)

replace github.com/ebbdb/ebb => ../..
