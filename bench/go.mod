module github.com/ebbdb/ebb/bench

go 1.26

require (
	github.com/ebbdb/ebb v0.0.0
	golang.org/x/time v0.14.0
)

require (
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	golang.org/x/sys v0.38.0 // indirect
)

replace github.com/ebbdb/ebb => ../
