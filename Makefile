# Commands for developers. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run-stamp
STAMP := $(VENV)/.stamp
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps
SOURCES := bot handlers sandbox tests bench examples
ONLY ?=
PORT ?= 8765
SEEDS ?= 20
# Test processes and the programs that they start all import the same.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test check format lint types generated bench faults simulate load soak screenshots image-test release-check lock clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with the locked dependencies

# The bot and the sandbox need a fifth of what the tests need.
$(RUN_STAMP): requirements.txt requirements-build.txt
	@$(PYTHON) -c 'import sys; sys.exit("Gatehouse needs Python 3.11 or newer; set PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@# Python's own pip can be years old, and takes twice as long.
	$(INSTALL) -r requirements-build.txt
	$(INSTALL) -r requirements.txt
	@$(BIN)/python -m pip uninstall --quiet --disable-pip-version-check --yes setuptools 2>/dev/null
	@touch $@

$(STAMP): $(RUN_STAMP) requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	@touch $@

run: $(RUN_STAMP) ## open the sandbox: the real bot in a browser (PORT=8800 for another port)
	@$(BIN)/python -m sandbox --port $(PORT)

test: setup ## run all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

check: SEEDS = 3
check: setup lint types simulate test ## run the linters, the type checker, three simulated days, and all tests (as CI does)

lint: setup ## check the formatting, the code and the import rules
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/oxfmt --check sandbox/page
	$(BIN)/lint-imports

types: setup ## run mypy --strict
	$(BIN)/mypy

format: setup ## format the code
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix-only $(SOURCES)
	$(BIN)/oxfmt sandbox/page

generated: setup ## write the files that are generated from the code
	$(BIN)/python -m tests.support.generated

bench: setup ## compare Gatehouse with other programs (ONLY=guard for one benchmark)
	$(INSTALL) -r requirements-bench.txt
	$(BIN)/python -m bench $(ONLY)

faults: setup ## run the fault drills and print a table
	$(BIN)/python -m tests.faults

simulate: setup ## simulate days of the bot (SEEDS=100 for more days, SEED=4711 for one)
	$(BIN)/python -m tests.simulation.days $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
	$(BIN)/python -m tests.simulation.pair $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

load: setup ## send 200 commands a second for a minute
	$(BIN)/python -m tests.load

soak: setup ## run mixed work for ten minutes while processes are killed
	$(BIN)/python -m tests.soak

image-test: setup ## build the container image and run it (root, buildah, mmdebstrap)
	$(BIN)/python -m tests.deploy.image

release-check: setup check image-test ## check that a release is complete
	$(BIN)/python -m tests.deploy.release

screenshots: setup ## take the pictures for the README
	$(BIN)/python -m tests.browser.screenshots

LOCK := $(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header
lock: setup ## resolve the dependencies again and lock them with hashes
	$(LOCK) --upgrade -o requirements.txt
	$(LOCK) --upgrade --group dev -c requirements.txt -o requirements-dev.txt
	$(LOCK) --group bench -c requirements-dev.txt -o requirements-bench.txt
	printf 'pip\nsetuptools\n' | $(subst pyproject.toml,-,$(LOCK)) --upgrade -o requirements-build.txt

clean: ## remove everything that setup created
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
