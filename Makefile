# `make demo` and `make test` run on a machine that has Go and either Docker or
# Postgres. `make check` is all that must hold before a change lands; it wants
# everything (see tools/need.sh) and fails where something is missing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VERSIONS  ?= 13 15 17 18
FUZZTIME  ?= 30s
BENCH     ?= .
BENCHTIME ?= 1s
ROUNDS    ?= 10

MODULES := . cmd/pgyield integration_test pgtest
# The packages whose tests do not measure latencies: they may run side by side.
PACKAGES := ./... ./cmd/pgyield/... ./pgtest/...

# How tests are run; check counts them as well.
TEST  := go test
COUNT :=

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.PHONY: demo
demo: ## raw pgxpool against pgyield under one load; a table, and report.html
	go run ./cmd/pgyield demo

.PHONY: test
test: ## every test that can run here
	@docker version > /dev/null 2>&1 || echo "make test: no Docker daemon answers: the tests of other Postgres versions ($(VERSIONS)) are left out"
	$(TEST) $(PACKAGES) $(COUNT)
	$(TEST) -count=1 -p 1 -timeout 30m ./integration_test/... $(COUNT)

.PHONY: check
check: bin/tally bin/golangci-lint ## test first, then race, GOWORK=off, vet and lint; nothing may be missing
	rm -rf build && mkdir build
	VERSIONS="$(VERSIONS)" tools/need.sh
	PGYIELD_VERSIONS="$(VERSIONS)" $(MAKE) --no-print-directory test race alone \
		TEST="go test -json" COUNT="| bin/tally -strict -add build/counts.txt"
	cd tools && GOWORK=off go test ./...
	$(MAKE) --no-print-directory vet lint
	@bin/tally -sum build/counts.txt

.PHONY: race
race: ## the race detector over all that does not measure latencies
	$(TEST) -race $(PACKAGES) $(COUNT)
	$(TEST) -race -count=1 -timeout 20m -run 'DropIn|Release|Liveness|Close|Shared' ./integration_test $(COUNT)

.PHONY: alone
alone: export GOWORK = off
alone: ## the root module as its users see it, without the workspace
	go build ./...
	$(TEST) ./... $(COUNT)

.PHONY: vet
vet: ## go vet, and formatting
	go vet $(PACKAGES) ./integration_test/...
	GOWORK=off go vet ./...
	cd tools && GOWORK=off go vet ./...
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi

.PHONY: lint
lint: bin/golangci-lint ## golangci-lint, in every module
	@for module in $(MODULES); do echo "lint $$module"; (cd $$module && $(CURDIR)/bin/golangci-lint run ./...); done

.PHONY: bench
bench: bin/ratios ## all benchmarks, each beside its baseline; raw, for benchstat, in build/bench.txt
	mkdir -p build && rm -f build/bench.txt
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(PACKAGES) | tee -a build/bench.txt
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 60m ./integration_test | tee -a build/bench.txt
	go test -c -o build/peers.test ./integration_test/peers
	bin/ratios -rounds $(ROUNDS) -o build/bench.txt \
		build/peers.test -test.run '^$$' -test.bench '$(BENCH)' -test.benchtime 0.3s -test.cpu 2
	@echo "raw, for benchstat: build/bench.txt"

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) tools/fuzz.sh $(MODULES)

.PHONY: sim
sim: ## the simulations that the defaults come from
	go test -count=1 -v -run 'Sim' ./...

.PHONY: images
images: ## the Postgres images that tests use: pulled, or built where they cannot be
	integration_test/image/build.sh $(VERSIONS)

.PHONY: tidy
tidy: ## go mod tidy in every module
	tools/tidy.sh $(MODULES)

# The tools' own module pins them; go builds, since a folder named bin is no package.
bin/golangci-lint: tools/go.mod
	GOWORK=off go build -modfile=tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/tally: tools/go.mod $(wildcard tools/tally/*.go)
	cd tools && GOWORK=off go build -o ../$@ ./tally

bin/ratios: tools/go.mod $(wildcard tools/ratios/*.go)
	cd tools && GOWORK=off go build -o ../$@ ./ratios
