// Package clienttest plays programs with the clients that people use, on
// redis-server and on ebb:
//
//	program       prints              clients
//	goredis       expected.txt        go-redis, ioredis, redis-py: strings, expiry, SCAN, pipelines, MULTI, events
//	containers    containers_exp...   these, rueidis, node-redis (RESP2 and RESP3): all data types
//	cluster       cluster_exp...      all of these as cluster clients, on ebb alone: a cluster of one node
//	scripts       scripts_exp...      go-redis, rueidis, ioredis, redis-py: scripts.lua, functions.lua, SCRIPT KILL, locks
//	queues        bullmq, rq, celery  each with its own expected lines: jobs, delays, retries, flows, and their workers
//	due           (due_test.go)       bullmq, celery, sidekiq: delayed jobs taken with ZPOPDUE and ZMOVEDUE, on ebb alone
//	caching                           rueidis with client-side caching, opt-in and broadcast
//	limits                            sockets: the server closes a client that uses too much
//	rediscli                          redis-cli (its scans, samplers, --pipe, formats) and redis-benchmark
//	exporter                          prometheus-redis-exporter: every metric that redis-server has, and its value
//
// The programs are in Go here, in JavaScript in node/, in Python in python/ and in Ruby in ruby/.
// Each takes an address, does what applications do through its client's own
// methods, and prints a line for each thing it sees. Invariant: the expected
// lines are the same for all clients and both servers. upstream.sh runs the
// tests of other projects, unchanged, against a server. Start reading at
// TestClientsSeeTheSameOnRedisAndOnEbb.
package clienttest
