# Works on a fresh clone with Go, a C compiler, Node.js with npm, git; as root on Debian `make tools` installs what is missing.
# Nothing is kept in the tree but bin/, guests/dist/ and one built test skill; downloads lie in the user's cache folder.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

GO       ?= go
FUZZTIME ?= 30s
PKG      ?= ./...
# the pattern leaves folders called testdata out
TESTED   := ./... ./testdata/wattest ./testdata/gostd ./testdata/shell

.PHONY: build static guests demo test lint bench fuzz ci tools clean help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 10

build: ## bin/exthost, with the engines that this platform has
	$(GO) build -trimpath -o bin/exthost ./cmd/exthost

static: ## bin/exthost-static: no cgo, one static file, the wazero engine
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/exthost-static ./cmd/exthost

guests: tools ## the bundled runtimes into guests/dist, and the Go-built test skill
	$(GO) run ./guests/internal/fetch guests
	mkdir -p testdata/skills/thumbs/scripts
	GOOS=wasip1 GOARCH=wasm $(GO) build -trimpath -ldflags='-s -w' \
	  -o testdata/skills/thumbs/scripts/thumbs.wasm ./guests/examples/thumbs

demo: ## set up all, then run two skills: denied, granted by the hint, working
	@testdata/demo/demo

test: guests ## every test
	REQUIRE_WASMTIME=1 EXTHOST_REQUIRE_GUESTS=1 $(GO) test -count=1 -timeout 20m $(TESTED)

lint: ## gofmt, go vet, staticcheck
	@files=$$(git ls-files '*.go' | xargs gofmt -l); [[ -z $$files ]] || { echo "gofmt would change:" $$files; exit 1; }
	$(GO) vet $(TESTED)
	$(GO) tool staticcheck $(TESTED)

bench: guests build ## every benchmark; whole commands if hyperfine is there
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)
	if command -v hyperfine >/dev/null; then testdata/bench/commands; else echo "hyperfine is not installed: whole commands are left out"; fi

fuzz: ## each fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

ci: ## what has to pass before a change lands
	.ci/run

tools: ## check for the programs that the build needs
	@.ci/tools

clean: ## remove what was built
	rm -rf bin coverage* guests/dist/*.zst guests/dist/manifest.json testdata/skills/thumbs/scripts/thumbs.wasm
