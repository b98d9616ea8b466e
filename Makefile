# `make demo` and `make test` do everything, their own set-up in .venv included.

SHELL := /bin/sh
.DEFAULT_GOAL := help

BIN := .venv/bin
READY := .venv/.ready
REPORT := report.html

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

$(READY): pyproject.toml requirements-dev.lock tools/venv.sh
	@tools/venv.sh .venv
	@touch $@

.PHONY: setup
setup: $(READY) ## make .venv (the other commands do it by themselves)

.PHONY: demo
demo: $(READY) ## the walk-through and a replay; FILES="run.jsonl …" replays your own runs
	@$(BIN)/zero-mem demo $(FILES) --html $(REPORT)

.PHONY: test
test: $(READY) ## every test but the long ones (at most 10 minutes)
	$(BIN)/pytest -q -n auto --dist loadgroup -m 'not fault' $(ARGS)

.PHONY: test-all
test-all: $(READY) ## only the long fault tests (at most 15 minutes)
	@$(BIN)/pytest -q -m fault $(ARGS) || { code=$$?; \
	  test $$code != 5 || echo 'make test-all: no test is marked `fault`: nothing was shown' >&2; \
	  exit $$code; }

.PHONY: check
check: $(READY) ## format, lint, strict types, import direction, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/make_samples.py --check
	$(BIN)/python tools/generate_aio.py --check
	$(BIN)/python tools/generate_client.py --check
	$(BIN)/python tools/generate_openapi.py --check

.PHONY: fix
fix: $(READY) ## format, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: $(READY) ## every measurement; BENCH=bench/import_time.py for one
	@for script in $(or $(BENCH),$(wildcard bench/[a-z]*.py)); do \
	  echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit $$?; done

.PHONY: samples
samples: $(READY) ## write the packaged sample runs again
	$(BIN)/python tools/make_samples.py

.PHONY: aio
aio: $(READY) ## write the asynchronous and the client's views and docs/openapi.json again
	$(BIN)/python tools/generate_aio.py
	$(BIN)/python tools/generate_client.py
	$(BIN)/python tools/generate_openapi.py

.PHONY: lock
lock: ## resolve the ranges of pyproject.toml into requirements-dev.lock
	tools/lock.sh

.PHONY: clean
clean: ## remove what the commands made, .venv included
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f $(REPORT) prompts.jsonl
	find src tests tools bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
