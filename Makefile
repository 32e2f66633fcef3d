# What a developer, a reader of the README and CI run. Needs Python >= 3.11 with pip, and make; the rest goes into .venv.

.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Engines and their stores in virtual time, which the run under coverage takes from the conformance suites.
ENGINES := $(addprefix tests/conformance/test_,engines.py two_engines.py langgraph_facts.py broken_engines.py \
	run_stores.py run_saver.py broken_run_savers.py)
# What of an engine and its store needs a server, which that run has not: test-sockets has.
ON_SERVERS := */dbos_*.py,*/postgres_*.py,*/server_database.py
# What the run under coverage has already tested beside core and research: all of tests/unit/scoring but retrieval.
PURE_SCORING = $(addprefix --ignore ,$(filter-out %/retrieval,$(wildcard tests/unit/scoring/*)))
LOCK := $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --no-header
# pyright brings its own node from the package registry; without this it also asks whether a newer one exists.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup demo test test-pure test-units test-sockets test-alone nightly check lint mypy pyright imports leaks format mutants bench bench-peers bench-machine-peers bench-gateways peers chaos docs browser agents compat langgraph servers comply examples litellm-examples error-words screenshots bench-fusion-peers bench-search research-live failoverbench lock build release deploy-check image clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup:  ## .venv as requirements/ pins it; does nothing when it already is
	@$(PYTHON) tools/setup.py

demo: setup  ## a failing fleet, a real local model, and what the router makes of it
	$(BIN)/smr local install
	$(BIN)/smr demo

LANES := test-pure test-units test-sockets test-alone
# Empty is "not set": hundreds of processes that tests start would compile our source each time.
$(LANES): export PYTHONDONTWRITEBYTECODE =
# What tests flush to a disk for the sake of a power failure would be waited for.
PYTEST := $(BIN)/python tools/in_memory.py $(BIN)/pytest

test: setup  ## every test, in four lanes; core, workflows, the mathematics of scoring and the checker of claims are covered by every branch
	@failed=; for lane in $(LANES); do echo "== $$lane"; \
		$(MAKE) --no-print-directory $$lane || failed="$$failed $$lane"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# `coverage run` and not `pytest --cov`: our own pytest plugin is loaded before pytest-cov could start to measure.
test-pure:
	$(BIN)/coverage erase
	$(BIN)/python tools/in_memory.py $(BIN)/coverage run -m pytest -n auto --dist worksteal \
		tests/unit/core tests/unit/research tests/unit/scoring tests/property $(ENGINES) \
		--ignore tests/unit/scoring/retrieval
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage report --include "*/smart_model_router_research/engine/*" --omit "$(ON_SERVERS)" --fail-under 95
	@for engine in kahn langgraph; do \
		$(BIN)/coverage report --include "*/smart_model_router_research/engine/$$engine.py" --fail-under 95 || exit 1; done

test-units:
	$(PYTEST) -n auto --dist worksteal tests/unit tests/meta tests/simulation --ignore tests/unit/core \
		--ignore tests/unit/research $(PURE_SCORING)

# Sockets and processes are mostly waited for: more of them than cores, a file's tests in one process, which share its
# servers. What measures real time, or needs the whole machine, is marked `alone`, and is.
test-sockets:
	$(PYTEST) -n 5 --dist loadfile -m "not alone" tests/conformance tests/e2e $(addprefix --ignore ,$(ENGINES))

test-alone:
	$(PYTEST) -m alone tests/e2e

# mypy and pyright take a minute each, on one core.
check: setup  ## style, wording, types, import contracts, nothing private
	@$(MAKE) --no-print-directory --jobs 2 lint mypy pyright imports leaks

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/words.py

mypy:
	$(BIN)/mypy

pyright:
	$(BIN)/pyright --warnings

imports:
	$(BIN)/lint-imports --no-logo

leaks:
	$(BIN)/python tools/leaks.py

format: setup  ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

nightly: setup  ## ten times the examples of every property, a thousand seeds through the simulation, the whole grid, reviews due; hours
	SMR_HYPOTHESIS_PROFILE=nightly $(BIN)/pytest -n auto --dist worksteal --timeout 1800 -m hypothesis tests/unit tests/property tests/conformance tests/e2e
	SMR_KILL_POINTS=100 $(BIN)/pytest --timeout 1800 tests/e2e/test_run_processes.py tests/e2e/test_saver_processes.py tests/e2e/test_research_processes.py -k kill_9
	SMR_FLEET_RUNS=50 $(BIN)/pytest --timeout 1800 tests/e2e/test_run_workers.py
	SMR_MACHINES_SECONDS=600 $(BIN)/pytest -n 2 --timeout 1800 tests/e2e/test_four_machines.py
	SMR_ALL_DBOS=1 $(BIN)/pytest --timeout 1800 tests/conformance/test_dbos_engine.py
	SMR_FUZZ_CASES=200000 $(BIN)/pytest --timeout 7200 tests/unit/gateway/test_seeded_fuzz.py
	SMR_EVERY_BYTE=1 $(BIN)/pytest --timeout 7200 tests/unit/research/deep/test_verifying.py -k every_byte
	SMR_ALL_STORMS=1 $(BIN)/pytest -n auto tests/simulation/test_after_the_storm.py tests/simulation/test_scenarios.py
	$(BIN)/python -m benchmarks.research_questions
	$(BIN)/python -m tools.nightly
	$(BIN)/python tools/adr.py --due

mutants: setup  ## breaks the pure code in thousands of ways; its tests must notice (about an hour)
	$(BIN)/python tools/mutants.py

bench: setup  ## every benchmark, as ratios to a baseline measured in the same minutes
	@for file in benchmarks/[!_]*.py; do echo "== $$file"; \
		$(BIN)/python -m benchmarks.$$(basename $$file .py) || failed=1; done; exit $${failed:-0}

bench-peers: setup  ## side by side with LiteLLM, pydantic-ai and LangChain; about ten minutes the first time
	$(BIN)/python -m benchmarks.peers

bench-machine-peers: setup  ## state shared over Valkey, beside LiteLLM's Router with Redis; four minutes once that is installed
	$(BIN)/python -m benchmarks.machine_peers

bench-gateways: setup  ## CPU a request beside LiteLLM's proxy and Portkey's gateway (needs npm); five minutes once both are installed
	$(BIN)/python -m benchmarks.gateway_peers

bench-fusion-peers: setup  ## fusion beside LlamaIndex, Haystack, LangChain and mem0; about five minutes the first time
	$(BIN)/python -m benchmarks.fusion_peers

bench-search: setup  ## rankings and answers on judged collections, and that the shipped evidence is what the fit gives; five minutes
	$(BIN)/python -m benchmarks.search
	$(BIN)/python -m benchmarks.search.fit --check

research-live: setup  ## thirty questions with a model of your configuration, and without; it costs money (MODEL=name, SET=file, CORPUS=path)
	$(BIN)/smr research eval $(if $(SET),--set $(SET)) $(if $(CORPUS),--corpus $(CORPUS))
	$(BIN)/smr research eval --model $(MODEL) $(if $(SET),--set $(SET)) $(if $(CORPUS),--corpus $(CORPUS))

failoverbench: setup  ## sixteen failures against `smr serve` and a plain loop; 80 s (ROWS=S01,S05, RUNS=2, GATEWAY=tuned, litellm, portkey)
	$(BIN)/python -m tests.failover $(if $(ROWS),--rows $(ROWS)) $(if $(RUNS),--runs $(RUNS)) $(if $(GATEWAY),--gateway $(GATEWAY))

error-words: setup  ## asks failing providers by way of this router, OpenAI's SDK and LiteLLM, and writes docs/error-words.md
	$(BIN)/python -m tools.error_words

litellm-examples: setup  ## imports the example configurations of LiteLLM's own wheel; every value is accounted for
	$(BIN)/python -m tools.litellm_examples

peers: bench-peers bench-machine-peers bench-fusion-peers  ## the comparisons with other libraries

# The keys only say which providers the defaults are for: fault servers stand in their place, and see other ones.
chaos: setup  ## every failure of the catalogue, rehearsed against what three keys and no configuration give
	@OPENAI_API_KEY=rehearsal ANTHROPIC_API_KEY=rehearsal GEMINI_API_KEY=rehearsal $(BIN)/smr chaos

docs: setup  ## the documentation as a site, in build/site, with every link checked; then runs every snippet of the documents
	$(BIN)/python -m tools.docs_site
	$(BIN)/pytest tests/meta

browser: setup  ## the dashboard and the documentation's search in a real browser; brings chromium (Debian, as root) and playwright itself
	$(BIN)/python tools/browser.py

agents: setup  ## coding agents, SDKs and frameworks against `smr serve` and a failing provider, brought by itself; ONLY=codex
	nice -n 5 $(BIN)/python -m tests.agents $(ONLY)

compat: setup  ## the tests of the clients and of SDK providers with older SDKs, each pair in an environment of its own
	$(BIN)/python -m tools.compat

langgraph: setup  ## the tests of RunSaver and of the engines with the oldest and the newest LangGraph that pyproject.toml admits
	$(BIN)/python -m tools.langgraph_releases

servers: setup  ## shared state, statistics and runs on Debian's Redis and PostgreSQL, with TLS and PgBouncer, which it brings (as root)
	$(BIN)/python -m tools.servers

comply: setup  ## llm-comply asks `smr serve` in Chat, Messages and Responses, served by providers of each dialect
	$(BIN)/python -m tools.comply

examples: setup  ## those that need a framework, which it brings itself; ONLY=langchain for some; `make test` runs the others
	$(BIN)/python -m tools.examples $(ONLY)

screenshots: setup  ## the pictures of docs/images, taken from a real incident
	$(BIN)/python tools/browser.py --screenshots

lock: setup  ## requirements/*.txt from pyproject.toml; UPGRADE=1 takes the newest releases
	$(LOCK) $(if $(UPGRADE),--upgrade) --all-extras --group dev pyproject.toml -o requirements/dev.txt
	$(LOCK) --constraints requirements/dev.txt pyproject.toml -o requirements/base.txt
	$(LOCK) --constraints requirements/dev.txt --extra all pyproject.toml -o requirements/all.txt
	$(LOCK) --constraints requirements/dev.txt --extra cli --extra gateway --extra log pyproject.toml -o requirements/image.txt
	$(LOCK) --constraints requirements/dev.txt requirements/pip.in -o requirements/pip.txt

build: setup  ## the sdist and the wheel, in dist/
	$(BIN)/hatchling build

release: setup  ## sdist, wheel and release notes in dist/, and the wheel as a user meets it; PYTHONS="3.12 3.13" for those that are installed
	$(BIN)/python -m tools.release $(PYTHONS)

deploy-check: setup  ## the files of deploy/, each by its own tool; nginx passes a stream, Prometheus reads a gateway (brings the tools; Debian, as root)
	$(BIN)/python -m tools.deploy_check

image: setup  ## the image of deploy/Dockerfile, built and run read-only without a daemon (buildah, mmdebstrap; Debian, as root)
	$(BIN)/python -m tools.image

clean:  ## everything that setup, the tests and the tools made
	rm -rf .venv .browser .agents .lanes .peers .mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* htmlcov build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
