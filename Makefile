# SPDX-License-Identifier: Apache-2.0
# All set-up in two commands: `make prove` and `make test`. Needs Python >= 3.11 and a C++17 compiler; node is optional.

PYTHON ?= python3
VENV   ?= .venv
BUILD  ?= build/release
# test processes at a time; 0 runs all tests in one
WORKERS ?= 2
PYTEST_ARGS ?=
SANITIZE_ARGS ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
# one persistent build directory for each kind of build, so that a second run compiles only what changed
INSTALL := $(PIP) install --no-build-isolation --no-deps
NATIVE  := $(wildcard cuda/*.cuh cuda/*.cu pinzk/_core/*.hpp pinzk/_core/*/*.hpp pinzk/_core/*/*.cpp tests/native/* tests/simt/*.[ch]*)
CYTHON  := $(wildcard pinzk/_core/*.pyx pinzk/_core/*.pxd pinzk/_core/*/*.pyx pinzk/_core/*/*.pxd)

# the source folder of the package has no compiled modules: keep it off the path
export PYTHONSAFEPATH := 1
# meson, ninja and cython come from the environment
export PATH := $(abspath $(BIN)):$(PATH)

# what there is of them
TYPED   := $(patsubst %/,%,$(sort $(dir $(wildcard pinzk/*.py tests/*.py benchmarks/*.py examples/*.py tools/*.py))))

.NOTPARALLEL:
.PHONY: help prove test install check lint format node sanitize bench clean

help:
	@echo "make prove     build pinzk in $(VENV), prove a real circuit, verify the proof"
	@echo "make test      build, lint, type check, all tests, sanitizers (what CI runs)"
	@echo "make check     the tests alone; PYTEST_ARGS='-k zkey' passes options on"
	@echo "make lint      ruff, mypy, cython-lint, clang-format; make format repairs what can be repaired"
	@echo "make sanitize  native code under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make bench     benchmarks against peers (minutes)"
	@echo "make clean     remove everything that make made"

prove: install
	@$(BIN)/python examples/prove.py

test: install lint check sanitize
	@echo "make test: all passed"

# ---- the environment and the build ----

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install Python >= 3.11, or say make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $$($(PYTHON) --version) is too old: pinzk needs Python >= 3.11 (make PYTHON=python3.12)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "make: $(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@$(BIN)/python -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || \
	  { echo "make: Python.h of $(PYTHON) not found (on Debian and Ubuntu: apt install python3-dev)"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	  { echo "make: no C++ compiler found (on Debian and Ubuntu: apt install g++)"; exit 1; }
	@touch $@

$(VENV)/.build-requirements: $(VENV)/.python pyproject.toml
	@echo "installing build requirements into $(VENV)"
	@$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*p["build-system"]["requires"], *p["project"]["dependencies"], sep="\n")' > $(VENV)/requirements.txt
	@$(PIP) install -r $(VENV)/requirements.txt
	@touch $@

$(VENV)/.test-requirements: $(VENV)/.build-requirements
	@echo "installing test requirements into $(VENV)"
	@$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*p["project"]["optional-dependencies"]["test"], sep="\n")' > $(VENV)/requirements-test.txt
	@$(PIP) install -r $(VENV)/requirements-test.txt
	@touch $@

install: $(VENV)/.build-requirements
	@echo "building and installing pinzk"
	@$(INSTALL) -Cbuild-dir=$(BUILD) .

# snarkjs, the independent prover and verifier of the tests; tests that need it skip where node is absent
node: tests/node/node_modules/.stamp
tests/node/node_modules/.stamp: tests/node/package.json tests/node/package-lock.json
	@if command -v npm >/dev/null; then cd tests/node && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.stamp; \
	else echo "npm is not installed: tests against snarkjs will be skipped"; fi

# ---- checks ----

check: install $(VENV)/.test-requirements node
	$(BIN)/python -m pytest --timeout=300 -n $(WORKERS) $(PYTEST_ARGS)

lint: $(VENV)/.test-requirements
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/cython-lint $(CYTHON)
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy $(TYPED)

format: $(VENV)/.test-requirements
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(NATIVE)

# peers of the benchmarks: snarkjs from npm, the rest from here
bench: install $(VENV)/.test-requirements
	@$(PIP) install groth16py
	@for b in benchmarks/bench_*.py; do echo; echo "$$b"; $(BIN)/python $$b || exit 1; done

# ---- native code under AddressSanitizer and UndefinedBehaviorSanitizer ----

SANITIZED := build/sanitize
SANITIZER := g++
LIBASAN   = $(shell $(SANITIZER) -print-file-name=libasan.so) $(shell $(SANITIZER) -print-file-name=libstdc++.so)
# null pointers and objects too small are AddressSanitizer's; the checks twice would double the build
SANITIZER_FLAGS := -Og -g1 -fno-omit-frame-pointer -fno-sanitize=null,object-size,vptr -D_GLIBCXX_ASSERTIONS
# these load no native code, or none but what others load too: the probes of curve, field and fp2 are the toy's templates
UNSANITIZED := backend cli cli_files curve data docs field fp2 kernel_cache kernels layers nvrtc public stubs

sanitize: $(VENV)/.test-requirements
	@command -v $(SANITIZER) >/dev/null || { echo "make sanitize needs g++ and its libasan"; exit 1; }
	@echo "building pinzk with sanitizers"
	@rm -rf $(SANITIZED)/site
	@CXX=$(SANITIZER) $(INSTALL) --target $(SANITIZED)/site -Cbuild-dir=$(SANITIZED)/meson -Csetup-args=-Dbuildtype=plain \
	  -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
	  "-Csetup-args=-Dcpp_args=$(SANITIZER_FLAGS)" .
	LD_PRELOAD="$(LIBASAN)" PYTHONPATH=$(CURDIR)/$(SANITIZED)/site PINZK_SANITIZED=1 \
	  PINZK_PROBE_FLAGS=-fsanitize=address,undefined ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(BIN)/python -m pytest --timeout=300 -q -n $(WORKERS) -m "not unsanitized" \
	  $(UNSANITIZED:%=--ignore=tests/test_%.py) $(SANITIZE_ARGS)

clean:
	rm -rf $(VENV) build dist tests/node/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
