# What a developer, a reader of the README and CI run. Needs Python >= 3.11 with pip, and make; the rest goes into .venv.

.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
LOCK := $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-header
# pyright brings its own node from the package registry; without this it also asks whether a newer one exists.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test nightly check lint types imports leaks format bench lock build clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup:  ## .venv as requirements/ pins it; does nothing when it already is
	@$(PYTHON) tools/setup.py

demo: setup  ## a failing fleet, a real local model, and what the router makes of it
	$(BIN)/smr local install
	$(BIN)/smr demo

# `coverage run` and not `pytest --cov`: our own pytest plugin is loaded before pytest-cov could start to measure.
# What measures real time (sockets, processes, the local model) runs alone; the rest shares the cores.
test: setup  ## every test; core is covered by every branch
	$(BIN)/coverage run -m pytest tests/unit/core tests/property
	$(BIN)/coverage report
	$(BIN)/pytest -n auto tests/unit tests/meta tests/simulation --ignore tests/unit/core
	$(BIN)/pytest tests/conformance tests/e2e

check: setup lint types imports leaks  ## style, types, import contracts, nothing private

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy
	$(BIN)/pyright --warnings

imports:
	$(BIN)/lint-imports --no-logo

leaks:
	$(BIN)/python tools/leaks.py

format: setup  ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## every benchmark, as ratios to a baseline measured in the same minutes
	@for file in benchmarks/[!_]*.py; do echo "== $$file"; \
		$(BIN)/python -m benchmarks.$$(basename $$file .py) || failed=1; done; exit $${failed:-0}

lock: setup  ## requirements/*.txt from pyproject.toml; UPGRADE=1 takes the newest releases
	$(LOCK) $(if $(UPGRADE),--upgrade) --all-extras pyproject.toml -o requirements/dev.txt
	$(LOCK) --constraints requirements/dev.txt pyproject.toml -o requirements/base.txt
	$(LOCK) --constraints requirements/dev.txt --extra all pyproject.toml -o requirements/all.txt
	$(LOCK) --constraints requirements/dev.txt requirements/pip.in -o requirements/pip.txt

build: setup  ## the sdist and the wheel, in dist/
	$(BIN)/hatchling build

clean:  ## everything that setup, the tests and the tools made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
