# The targets, as `make help` prints them. `make test` is the one to run before a
# commit; it needs Go alone. Versions of tools stand here and nowhere else.

GO       ?= go
LINT      = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 1m
DIFFTIME ?= 10m
BENCH    ?= .
COUNT    ?= 6

export GO LINT

.DEFAULT_GOAL := help
.PHONY: help build test race lint docs fuzz diff luadiff clients bench cross ci

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

build: ## compile everything, and the binary to ./ebb
	$(GO) build ./...
	$(GO) build -trimpath -o ebb ./cmd/ebb

test: ## all checks and tests, in about six minutes; says what it skipped and why
	@.ci/test

race: ## every test under the race detector, in full
	$(GO) test -race -timeout 30m ./...

lint: ## golangci-lint with .golangci.yml (the first run builds it: two minutes)
	$(GO) run $(LINT) run ./...

docs: ## write docs/commands anew from the command table
	$(GO) run ./internal/gen/cmd

fuzz: ## each fuzz target for FUZZTIME (1m)
	@FUZZTIME=$(FUZZTIME) .ci/test fuzz

diff: ## random commands on ebb and on redis-server for DIFFTIME (10m)
	EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0 -run TestRandomSequencesAreAnsweredAsByRedis ./internal/modeltest -diff.time $(DIFFTIME)

luadiff: ## random Lua programs here, on lua5.1 and on redis-server, DIFFTIME (10m) each
	EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0 ./internal/lua/luafuzz -lua.time $(DIFFTIME)

clients: ## the tests of asynq and other Go projects that live on EVAL, on ebb (five minutes; port 6379)
	internal/clienttest/upstream.sh

bench: ## Go benchmarks matching BENCH, COUNT times, for benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
	cd bench && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

cross: ## compile and vet for the other systems
	@.ci/test cross

ci: ## what CI runs: installs the real programs, and then a skip is a failure
	.ci/run
