# Everything goes through here; `make help` lists it. Each target first brings the set-up up to date.

SHELL := /bin/bash
BIN := .venv/bin
# Any Python from 3.11 on; it only creates .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)

DATAFUSION = $(BIN)/maturin develop --locked --quiet -m extensions/datafusion/Cargo.toml --target-dir build/datafusion

export VIRTUAL_ENV := $(CURDIR)/.venv

.DEFAULT_GOAL := help
.PHONY: help setup peers build checked datafusion demo check test test-all test-seeds test-guest book-tools docs docs-book fmt regs lint-hw formal sanitize clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the pinned tools into .venv (a second run is instant)
	@$(PYTHON) tools/setup.py

peers: ## install the query engines that tests and experiments of tables compare with
	@$(PYTHON) tools/setup.py --peers

build: ## compile the Python package `nearside`, with all Rust crates in it
	@$(PYTHON) tools/setup.py --package
	@echo "build: Python extension, with the Rust crates"
	@PIP_QUIET=1 $(BIN)/maturin develop --release --quiet

book-tools: ## install what the book is built with
	@$(PYTHON) tools/setup.py --docs

checked: setup ## compile the package as tests use it, with the assertions of debug builds; make build replaces it
	@echo "build: Python extension for tests, with the Rust crates"
	@PIP_QUIET=1 $(BIN)/maturin develop --profile checked --quiet

datafusion: peers build ## compile the extension with which DataFusion sorts on devices (Rust 1.94 or newer; some minutes)
	@PIP_QUIET=1 $(DATAFUSION)

demo: build ## send a generated 8 MiB file through the simulated device and back
	@$(BIN)/nearside demo

check: setup checked ## format, lint, fast tests (under 4 minutes when built)
	@$(BIN)/python tools/check.py check $(STEPS)

test: peers book-tools checked ## everything: proofs, simulations, cross-layer tests, quick claims (STEPS="words" picks steps)
	@$(BIN)/python tools/check.py test $(STEPS)

test-all: peers book-tools checked ## make test, with long tests: more sizes, more proofs, more of the RTL
	@$(BIN)/python tools/check.py all $(STEPS)

test-seeds: setup ## simulations of blocks with five seeds, registers of zeros, ones and random each (hours; STEPS="zeros")
	@$(BIN)/python tools/check.py seeds $(STEPS)

test-guest: setup build ## boot a stock Linux guest on the device and let it work there (under 5 minutes; part of make test)
	@$(BIN)/python tools/guest.py test

docs: peers build ## measure every claim, write docs/validation.md, and build the book
	@$(BIN)/nearside claim run --report docs/validation.md --exit-zero
	@$(MAKE) --no-print-directory docs-book

docs-book: book-tools build ## build the book into build/book: open build/book/index.html
	@$(BIN)/python tools/book/build.py

fmt: setup ## format Rust, Python and SystemVerilog in place
	@cargo fmt --all
	@cargo fmt --manifest-path extensions/datafusion/Cargo.toml
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .
	@$(BIN)/python tools/fmt_hw.py

regs: setup ## regenerate register blocks and Rust modules from hw/*/*/regs/*.rdl and engine.toml
	@$(BIN)/python tools/regs.py

lint-hw: setup ## lint the SystemVerilog
	@$(BIN)/python tools/lint_hw.py

formal: setup ## run the formal proofs
	@$(BIN)/python tools/formal.py

# The server maps memory that hostile clients share, media are mapped files, and bitstreams are foreign code; the sanitizer's
# runtime comes with rustup's toolchains, not with Debian's.
SANITIZE = -p nearside-vfio-user -p nearside-sim -p nearside-rtl --lib --test messages --test hostile --test serve --test bitstream
# Verilator's VerilatedFst::close loses its writer's memory.
SANITIZE += -- --skip waveforms
sanitize: ## run the tests of all unsafe Rust under AddressSanitizer (rustup's cargo; some minutes)
	@RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=build/sanitize \
		cargo test --target $(shell rustc -vV | sed -n 's/^host: //p') $(SANITIZE)

clean: ## remove what was built (the set-up in .venv stays)
	rm -rf build target results
