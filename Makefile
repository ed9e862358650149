# The targets, as `make help` prints them. `make test` is the one to run before a
# commit; it needs Go alone.

GO       ?= go
NFPM      = github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
FUZZTIME ?= 1m
CAMPAIGN ?= 2m
DIFFTIME ?= 10m
CHAOSTIME ?= 10m
BENCH    ?= .
COUNT    ?= 6
KEYS     ?= 1000000
TOOLKIT   = ./conn/... ./limit/... ./lock/... ./expmap/... ./expset/... ./queue/... ./topic/... ./stream/... ./bloom/... ./unique/... ./bits/... ./near/... ./cache/... ./internal/sessions ./internal/testing/backends
BACKENDS ?= all

RANDOM    = EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0

export GO NFPM

.DEFAULT_GOAL := help
.PHONY: help build test check again race lint docs fuzz diff luadiff crash chaos campaigns campaign-models campaign-stress \
	campaign-scripts campaign-lua campaign-crash campaign-chaos campaign-ratios conformance clients browser bench cross packages ci

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## compile everything, and the binary to ./ebb
	$(GO) build ./...
	$(GO) build -trimpath -o ebb ./cmd/ebb

test: ## format and the short tests, with Go alone; says what it skipped
	@.ci/test format short

check: ## what CI runs, with the programs that this machine has; lint too
	@EBB_LINT=1 .ci/test format build rules tidy docs size vet lint cross ui -- unit programs contrib race browser

again: ## the tests that a change adds or edits: 20 times alone, 5 with the race detector, 5 beside busy processes
	@.ci/again

race: ## every test of every module under the race detector, in full
	@failed=; for mod in $$(git ls-files '*go.mod'); do \
		echo "== $${mod%go.mod}"; (cd "./$${mod%go.mod}" && EBB_FULL=1 $(GO) test -race -timeout 30m ./...) || failed="$$failed $$mod"; \
	done; [ -z "$$failed" ] || { echo "== failed:$$failed"; exit 1; }

lint: ## golangci-lint with .golangci.yml (the first run builds it: two minutes)
	@EBB_LINT=1 .ci/test lint

docs: ## write docs/commands, docs/compatibility.md and the generated Go files again
	$(GO) run ./internal/gen/cmd

fuzz: ## each fuzz target for FUZZTIME (1m)
	@.ci/fuzz $(FUZZTIME)

diff: ## random commands on ebb and on Redis 7, Redis 8 and Valkey 9, for DIFFTIME (10m) each
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0 -run TestRandomSequencesAreAnsweredAsByRealServers ./internal/testing/modeltest -diff.time $(DIFFTIME)

luadiff: ## random Lua programs here, on lua5.1 and on redis-server, DIFFTIME (10m) each
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0 ./internal/lua/luafuzz -lua.time $(DIFFTIME)

crash: ## kill -9 under load 100 times, 10 failovers by Sentinel, migration of KEYS (1000000) keys (ten minutes)
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C internal/test -v -count 1 -timeout 0 -run Killed ./crashtest -crash.rounds 100
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C internal/test -v -count 1 -timeout 0 -run Sentinel ./crashtest -crash.rounds 10
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C internal/test -v -count 1 -timeout 0 -run Migration ./crashtest -crash.keys $(KEYS)

chaos: ## programs whose clocks are wrong on a cluster whose nodes are killed, paused and partitioned, for CHAOSTIME (10m)
	EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C internal/test -v -count 1 -timeout 0 -run TestChaos ./chaostest -chaos.time $(CHAOSTIME)

campaigns: ## each kind of random test for CAMPAIGN (2m), with new seeds, which are printed; one that fails does not stop the others
	@$(MAKE) -k campaign-models campaign-stress campaign-scripts campaign-lua campaign-crash campaign-chaos campaign-ratios fuzz

campaign-models:
	$(RANDOM) ./internal/testing/modeltest -own.time $(CAMPAIGN) -meta.time $(CAMPAIGN) -snap.time $(CAMPAIGN) -plain.time $(CAMPAIGN) -diff.time $(CAMPAIGN)
campaign-stress:
	$(RANDOM) ./internal/session -run EverythingAtOnce -stress.time $(CAMPAIGN)
campaign-scripts:
	$(RANDOM) ./internal/instance -run 'ScriptsBeside|FallsDueUnder' -scripts.time $(CAMPAIGN) -due.time $(CAMPAIGN)
campaign-lua:
	$(RANDOM) ./internal/lua/luafuzz -lua.time $(CAMPAIGN)
campaign-crash:
	cd internal/test && $(RANDOM) ./crashtest -crash.own $(CAMPAIGN) -crash.rounds 20
campaign-chaos:
	cd internal/test && $(RANDOM) ./chaostest -chaos.time $(CAMPAIGN)
campaign-ratios:
	$(GO) test -C bench -run '^$$' -bench Ratios -benchtime 1x -timeout 0 .

conformance: ## the toolkit's tests on BACKENDS (all kinds of internal/testing/backends), as a table
	export EBB_FULL=1 EBB_BACKENDS=$(BACKENDS); { \
		$(GO) test -json -count 1 -p 1 -timeout 60m $(TOOLKIT); \
		$(GO) test -C redisson -json -count 1 -timeout 60m .; \
	} | $(GO) run ./internal/testing/backends/table -out conformance.out

clients: ## the tests of asynq and other Go projects that depend on EVAL, on ebb (five minutes; port 6379)
	internal/test/clienttest/upstream.sh

bench: ## Go benchmarks matching BENCH, COUNT times, for benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
	cd bench && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

browser: ## the console in Chromium, with screenshots in SHOTS (if set)
	EBB_SCREENSHOTS=$(abspath $(SHOTS)) EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C console/browsertest -v -count 1 -timeout 30m ./...

cross: ## check the types for the other systems, and build ebb for Windows
	@.ci/test cross

packages: ## build deb, rpm and apk packages into dist
	packaging/build.sh dist deb rpm apk

ci: ## what CI runs: install the real programs, and run everything; a skip is a failure
	.ci/run
