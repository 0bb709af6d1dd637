# Everything is run from here; `make help` lists it. Needs only git, make and Python >= 3.11 with venv: the rest is
# fetched, pinned, into .venv. Paths are relative, so a clone may live in a folder with spaces.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
BOOTSTRAP := "$(or $(shell command -v python3),$(shell command -v python3.13),$(shell command -v python3.12),$(shell command -v python3.11),python3)" scripts/bootstrap.py
SOURCES := src tests bench fuzz scripts hatch_build.py
# Without bytecode every process that a test starts compiles hundreds of files again, before it does anything.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test fast lint fmt docs screenshots simulate simulate-contest fuzz test-cgroup2 lock build clean ready ready-dev test-servers

help: ## List the targets
	@grep -hE '^[a-z0-9%-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z0-9%-]+):.*## (.*)/  make \1\t\2/' | sed 's/%/NAME/' | expand -t 22
	@for bench in $(wildcard bench/*.py); do name=$$(basename "$$bench" .py); \
		if grep -q "bench = Bench(\"$$name\")" "$$bench"; then echo "  make bench-$$name"; fi; done

up: ready ## Run Adjudge on SQLite under ./var (PORT=8080)
	@$(PYTHON) -m adjudge up $(if $(PORT),--port $(PORT))

test: ready-dev lint test-servers ## Lint and run all tests; as root, installs the required servers
	@$(PYTHON) -m pytest -n auto --no-loadscope-reorder $(ARGS)

fast: ready-dev ## Run the fast tests (under three minutes)
	@$(PYTHON) -m pytest -n auto --no-loadscope-reorder -m "not slow" $(ARGS)

lint: ready-dev ## Check style, types and generated pages
	@$(PYTHON) -m ruff check $(wildcard $(SOURCES))
	@$(PYTHON) -m ruff format --check $(wildcard $(SOURCES))
	@$(PYTHON) -m mypy
	@$(PYTHON) scripts/generate_docs.py --check

fmt: ready-dev ## Format the code
	@$(PYTHON) -m ruff check --fix --quiet $(wildcard $(SOURCES)) || true
	@$(PYTHON) -m ruff format $(wildcard $(SOURCES))

docs: ready-dev ## Generate the reference pages and diagrams
	@$(PYTHON) scripts/generate_docs.py

screenshots: ready-dev ## Update the screenshots in docs/images/
	@$(PYTHON) scripts/screenshots.py

bench-%: ready-dev ## Run one benchmark (JSON=FILE writes its rows, QUICK=1 takes a minute, PEERS=none skips other projects)
	@JSON='$(JSON)' QUICK='$(QUICK)' PEERS='$(PEERS)' $(PYTHON) -m bench $*

simulate: ready-dev ## Run the simulator (SEEDS=1-200; SEEDS=chains:17 replays one seed)
	@$(PYTHON) -m tests.simulation $(or $(SEEDS),1-200)

simulate-contest: ready-dev test-servers ## Run a contest of 1,000 teams twice, once with a killed worker (ARGS="--teams 100 --submissions 500")
	@$(PYTHON) -m tests.rehearsal $(ARGS)

fuzz: ready-dev ## Fuzz the launcher, the report parser and the package readers (ARGS="--seconds 30")
	@$(PYTHON) -m fuzz.run $(ARGS)

test-cgroup2: ready-dev ## Run the sandbox tests on cgroup v2 in a virtual machine
	@$(PYTHON) -m tests.cgroup_v2 $(ARGS)

lock: ready-dev ## Lock the requirements (UPGRADE=1 upgrades them)
	@$(PYTHON) scripts/lock_requirements.py $(if $(UPGRADE),--upgrade)

build: ready-dev ## Build the wheel and the source archive into dist/
	@ADJUDGE_BUILD_COMPLETE=1 $(PYTHON) -m hatchling build

clean: ## Remove build output and caches (keeps .venv and var)
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache

ready:
	@$(BOOTSTRAP) run

ready-dev:
	@$(BOOTSTRAP) dev

test-servers: ready-dev
	@$(PYTHON) -m tests.support.servers
