# The targets, as `make help` prints them. A first patch needs the three with a star.

GO       ?= go
NFPM      = github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
BENCH    ?= .
COUNT    ?= 6
TOOLKIT   = ./conn/... ./limit/... ./lock/... ./expmap/... ./expset/... ./queue/... ./topic/... ./stream/... ./bloom/... ./unique/... ./bits/... ./near/... ./cache/... ./internal/sessions ./internal/testing/backends
BACKENDS ?= all
PKG      ?= ./...

# The kinds of campaigns: TIME for each kind of test, and FUZZTIME for each fuzz target. crash kills servers ROUNDS times, and migrates
# KEYS keys (of the test's own number without KEYS). clients needs port 6379, and takes five minutes.
TIME     ?= 2m
FUZZTIME ?= 1m
ROUNDS   ?= 20
KINDS     = models stress scripts lua group crash chaos ratios fuzz
RANDOM    = EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -v -count 1 -timeout 0
RUN_models  = $(RANDOM) ./internal/testing/modeltest -own.time $(TIME) -meta.time $(TIME) -snap.time $(TIME) \
	-plain.time $(TIME) -diff.time $(TIME)
RUN_diff    = $(RANDOM) -run TestRandomSequencesAreAnsweredAsByRealServers ./internal/testing/modeltest -diff.time $(TIME)
RUN_stress  = $(RANDOM) ./internal/session -run EverythingAtOnce -stress.time $(TIME)
RUN_scripts = $(RANDOM) ./internal/instance -run 'ScriptsBeside|FallsDueUnder' -scripts.time $(TIME) -due.time $(TIME)
RUN_lua     = $(RANDOM) ./internal/testing/luafuzz -lua.time $(TIME)
RUN_group   = $(RANDOM) ./internal/testing/groupsim -sim.time $(TIME)
RUN_crash   = cd internal/test && $(RANDOM) ./crashtest -crash.own $(TIME) -crash.rounds $(ROUNDS) $(if $(KEYS),-crash.keys $(KEYS)) && \
	$(RANDOM) ./grouptest -group.rounds $(ROUNDS)
RUN_chaos   = cd internal/test && $(RANDOM) ./chaostest -chaos.time $(TIME)
RUN_ratios  = $(GO) test -C bench -run '^$$' -bench Ratios -benchtime 1x -timeout 0 .
RUN_fuzz    = .ci/fuzz $(FUZZTIME)
RUN_clients = internal/test/clienttest/upstream.sh

export GO NFPM

.DEFAULT_GOAL := help
.PHONY: help build test check again race lint docs campaign campaigns conformance bench browser packages

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 } END { print "  * what a first patch needs: CONTRIBUTING.md" }' Makefile

build: ## compile everything, and the binary to ./ebb
	$(GO) build ./...
	$(GO) build -trimpath -o ebb ./cmd/ebb

test: ## * format and the short tests (of PKG), with Go alone; says what it skipped
	@PKG='$(PKG)' .ci/test format short

check: ## * what CI runs, with the programs that this machine has; lint too
	@EBB_LINT=1 .ci/test format build rules tidy docs size vet lint cross ui -- unit programs contrib race browser

again: ## the tests that a change adds or edits: 20 times alone, 5 with the race detector, 5 beside busy processes
	@.ci/again

race: ## every test of every module under the race detector, in full
	@failed=; for mod in $$(git ls-files '*go.mod'); do \
		echo "== $${mod%go.mod}"; (cd "./$${mod%go.mod}" && EBB_FULL=1 $(GO) test -race -timeout 30m ./...) || failed="$$failed $$mod"; \
	done; [ -z "$$failed" ] || { echo "== failed:$$failed"; exit 1; }

lint: ## golangci-lint with .golangci.yml (the first run builds it: two minutes)
	@EBB_LINT=1 .ci/test lint

docs: ## * write docs/commands, docs/compatibility.md and the generated Go files again
	$(GO) run ./internal/gen/cmd

campaign: ## random tests of one KIND for TIME (2m), with new seeds: models, diff, stress, scripts, lua, group, crash, chaos, ratios, fuzz, clients
	$(or $(RUN_$(KIND)),$(error KIND must be one of $(KINDS) diff clients))

campaigns: ## each kind of random test for TIME (2m), with new seeds, which are printed; one that fails does not stop the others
	@failed=; for kind in $(KINDS); do $(MAKE) campaign KIND=$$kind || failed="$$failed $$kind"; done; \
		[ -z "$$failed" ] || { echo "== failed:$$failed"; exit 1; }

conformance: ## the toolkit's tests on BACKENDS (all kinds of internal/testing/backends), as a table
	export EBB_FULL=1 EBB_BACKENDS=$(BACKENDS); { \
		$(GO) test -json -count 1 -p 1 -timeout 60m $(TOOLKIT); \
		$(GO) test -C redisson -json -count 1 -timeout 60m .; \
	} | $(GO) run ./internal/testing/backends/table -out conformance.out

bench: ## Go benchmarks matching BENCH, COUNT times, for benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
	cd bench && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

browser: ## the console in Chromium, with screenshots in SHOTS (if set)
	EBB_SCREENSHOTS=$(abspath $(SHOTS)) EBB_FULL=1 EBB_REQUIRE=1 $(GO) test -C console/browsertest -v -count 1 -timeout 30m ./...

packages: ## build deb, rpm and apk packages into dist
	packaging/build.sh dist deb rpm apk

