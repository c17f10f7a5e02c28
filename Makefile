# `make check` and `make test` set up everything themselves, in .venv/. No root needed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
INSTALLED := .venv/.installed
PIPELINE ?= nemotron-cpu
CHECK_ARGUMENTS ?=

.PHONY: help setup check test test-system test-nightly test-gpu benchmark lint format clean

help:
	@echo 'make check         validate this machine: train $(PIPELINE) and compare every step with its golden'
	@echo 'make test          lint, types, import rules and the tests that need neither root nor a GPU'
	@echo 'make test-system   the tests that need root, servers of their own, or minutes of the whole machine'
	@echo 'make test-nightly  the tests that are too long for every change'
	@echo 'make test-gpu      the tests that need a CUDA device'
	@echo 'make benchmark     measure what benchmarks/ measures'
	@echo 'make setup         only create .venv/ (5.5 GB with torch; done by the others when needed)'

setup: $(INSTALLED)

# Done again only when what is to be installed has changed. The stamp comes last: an interrupted set-up is continued.
$(INSTALLED): pyproject.toml constraints.txt .python-version
	@scripts/create-environment .venv
	@echo 'Installing packages into .venv (the first time: some minutes, 5.5 GB)'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[workload,github,service,postgresql,test,dev]'
	@touch $@

check: setup
	$(BIN)/validator check $(PIPELINE) $(CHECK_ARGUMENTS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -m 'not slow and not system and not nightly and not gpu' -n 4 --dist loadfile --durations=10
	$(BIN)/python -m pytest -m 'slow and not system and not nightly and not gpu' --durations=10

# pytest ends with 5 where no test carries the marker: said in words, and no failure.
test-system test-nightly test-gpu: test-%: setup
	@status=0; $(BIN)/python -m pytest --collect-only -q -m '$*' >/dev/null 2>&1 || status=$$?; \
	if [ "$$status" -eq 5 ]; then echo 'There is no test marked $* yet.'; exit 0; fi; \
	$(BIN)/python -m pytest -m '$*' --durations=10

benchmark: setup
	@missed=; for file in benchmarks/*.py; do \
	    echo "== $$file"; $(BIN)/python "$$file" || missed="$$missed $$file"; \
	done; [ -z "$$missed" ] || { echo "A target was missed, or a benchmark failed:$$missed"; exit 1; }

clean:
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
