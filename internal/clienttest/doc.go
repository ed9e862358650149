// Package clienttest plays one program with the clients that people use, on
// redis-server and on ebb:
//
//	goredis_test.go     github.com/redis/go-redis    RESP3
//	node/main.js        ioredis                      RESP2
//	python/main.py      redis-py (python3-redis)     RESP2
//
// Each program takes an address, does what applications do (SET, GET, expiry,
// SCAN, pipelines, MULTI, keyspace events) through its client's own methods,
// and prints a line for each thing it sees. Invariant: expected.txt holds those
// lines, the same for all clients and both servers. Start reading at
// TestClientsSeeTheSameOnRedisAndOnEbb.
package clienttest
