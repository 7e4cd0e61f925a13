# SPDX-FileCopyrightText: The kubestandup authors
# SPDX-License-Identifier: Apache-2.0

# Go, git and make are all that is needed; the rest is built from Go modules
# into .cache, once.

MODULE  := github.com/kubestandup/kubestandup
PLUGINS := kubectl-standup kubectl-tiers kubectl-unwedge
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0)
LDFLAGS := -s -w -X $(MODULE)/pkg/version.version=$(VERSION)

# Several packages start a control plane; two at a time suit two cores.
TEST_P       ?= 2
# Tests wait for controllers most of the time.
TEST_PARALLEL ?= 4
TEST_TIMEOUT ?= 40m
TEST_FLAGS   ?=
# The longest first, so that the rest runs beside it.
TESTS        ?= ./test/e2e ./test/cluster ./...

# One way to compile, which test/cluster uses for the programs too: then the
# build cache holds each package once.
export CGO_ENABLED := 0
export GOFLAGS     := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: tools ## Play the incident on a real control plane (KEEP=1 leaves it up)
	go run ./test/demo $(if $(KEEP),-keep)

.PHONY: cluster
cluster: tools ## Hold a control plane with Flux up, until Ctrl-C
	go run ./test/cluster/cmd/hold $(ARGS)

##@ Build

.PHONY: build
build: ## Build the three plugins into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ $(addprefix ./cmd/,$(PLUGINS))

.PHONY: install
install: ## Install the three plugins into Go's bin folder
	go install -ldflags '$(LDFLAGS)' $(addprefix ./cmd/,$(PLUGINS))

.PHONY: generate
generate: ## Write what is derived from the code: reference pages, JSON schemas
	go run ./hack/generate

.PHONY: tools
tools: ## Build the programs that the tests run: etcd, Kubernetes, Flux, CDI, Helm
	go run ./test/cluster/cmd/tools

##@ Test

.PHONY: test
test: tools ## Run every test: units, and on a real control plane
	go test -p $(TEST_P) -parallel $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $(TESTS)

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane
	go test -timeout 10m $(TEST_FLAGS) $$(hack/unit-packages.sh)

.PHONY: bench
bench: tools ## Run the benchmarks: of code, and of the plugins beside what else there is
	go test -run '^$$' -bench . -benchmem $(TEST_FLAGS) $$(hack/unit-packages.sh) ./bench

##@ Check

.PHONY: verify
verify: generate-check tidy-check lint ## Check all that CI checks beside the tests

.PHONY: fmt
fmt: ## Format the Go files
	hack/tool.sh golangci-lint fmt

.PHONY: generate-check
generate-check:
	go run ./hack/generate -check

.PHONY: tidy-check
tidy-check:
	go mod tidy -diff

.PHONY: lint
lint: ## Run the linters, which look at the format too
	hack/tool.sh golangci-lint run $(LINT_FLAGS)

##@ Release

.PHONY: dist
dist: ## Build a snapshot of a release into dist/
	hack/tool.sh goreleaser release --snapshot --clean --skip=sign,sbom

.PHONY: krew-check
krew-check: dist ## Check the snapshot's krew manifests, and install from its archives
	hack/krew-check.sh

.PHONY: clean
clean: ## Remove what was built; what .cache holds stays
	rm -rf bin dist

.PHONY: distclean
distclean: clean ## Remove the built programs and tools too: the next run builds them again
	rm -rf .cache
