# Two commands do everything on a fresh Debian machine: make demo, make test.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
export CGO_ENABLED ?= 0

.PHONY: build demo test check bench fuzz oracle orders conformance matrix broken gates aimed replay sweep soak staging soak-freezer soak-locks nightly clean

build: ## static binaries in bin/
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

demo: ## catch a lost update on real Redis and Postgres, in about two minutes
	@[ -n "$$REDIS_URL" -a -n "$$DATABASE_URL" ] || ./scripts/need.sh redis postgres
	@go run ./internal/demo

test: ## every test, against real servers, under the race detector
	./scripts/need.sh redis postgres postgres18 python pytest jest net cc ioredis suites matrix chromium promtool
	@$(MAKE) --no-print-directory check
	CI=true CGO_ENABLED=1 go test -race -timeout 20m ./...
	cd browser && go vet . && CI=true go test -timeout 20m .
	go run ./conformance -suites libpq_pipeline,isolation -ways armed
	go run ./matrix -quick
	go run ./internal/demo broken -quick
	go run ./internal/demo gates -quick -libraries -n 1
	go run ./internal/demo aimed -quick -n 5
	go run ./internal/demo replay -quick -n 2
	go run ./internal/demo sweep -quick -repeat 1

check: ## formatting, vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...

bench: ## lockfaultd beside HAProxy, toxiproxy and a bare copying proxy (20 minutes); freezer latencies
	./scripts/need.sh redis postgres haproxy toxiproxy
	go run ./bench $(BENCH)
	go test -run '^$$' -bench 'Freeze|Thaw|Lookup|Kill' -benchtime 100x ./freezer

fuzz: ## each fuzz target for 30 s
	./scripts/fuzz.sh 30s

oracle: ## what is read of SQL, against Postgres's own grammar and regression tests
	./scripts/need.sh cc
	cd internal/oracle && CGO_ENABLED=1 go vet . && CGO_ENABLED=1 go run .

orders: ## the judge against every order of 150,000 histories, and of as many of a lock's key; porcupine beside it
	ORDERS=150000 go test ./probe/check -run 'EveryOrder|OrdersOfAKey|Porcupine' -v -timeout 2h

conformance: ## the public suites of Postgres, pgx and Redis through lockfaultd, byte for byte
	./scripts/need.sh redis postgres cc suites
	go run ./conformance $(CONFORMANCE)

matrix: ## the locks that people use, unmodified, through lockfaultd
	./scripts/need.sh redis postgres matrix
	go run ./matrix $(MATRIX)

broken: ## services that are broken in one way each give their own verdicts, and their sound twins none
	./scripts/need.sh redis postgres
	go run ./internal/demo broken $(BROKEN)

gates: ## the same race every time: each gate, 200 times; of services with redsync and redlock, 20 times
	./scripts/need.sh redis postgres matrix
	go run ./internal/demo gates -n 200
	go run ./internal/demo gates -n 20 -libraries

aimed: ## faults that are aimed at a section land in one: 100 at each place of it
	./scripts/need.sh redis postgres
	go run ./internal/demo aimed $(AIMED)

replay: ## recorded runs, done again 50 times each: the same verdicts, and the same schedule byte for byte
	./scripts/need.sh redis postgres
	go run ./internal/demo replay -n 50 $(REPLAY)

sweep: ## every fault at every place of four services, against tables that were reviewed by hand (half an hour)
	./scripts/need.sh redis postgres
	go run ./internal/demo sweep $(SWEEP)

soak: ## ten thousand clients for an hour, with servers that are started anew meanwhile
	./scripts/need.sh redis postgres
	go run ./soak $(SOAK)

staging: ## a day of a staging environment in twenty minutes: everything is killed in turn, no verdict is lost and none invented
	./scripts/need.sh redis postgres
	go run ./staging $(STAGING)

soak-freezer: ## 10,000 freezes and thaws of every scope under load; the daemon is killed 300 times, its guard 100 times
	LOCKFAULT_CYCLES=10000 LOCKFAULT_DAEMON_KILLS=300 LOCKFAULT_GUARD_KILLS=100 go test ./freezer -run TestSoak -v -count 1 -timeout 2h

soak-locks: ## 200,000 sections under these locks, with pauses that none of them minds: no verdict (an hour)
	./scripts/need.sh redis postgres matrix
	go run ./matrix -soak 225000 -labs 3 $(MATRIX)

nightly: conformance matrix broken gates aimed replay sweep soak staging soak-freezer soak-locks oracle orders ## what takes too long for every change
	./scripts/fuzz.sh 10m

clean:
	rm -rf bin out
