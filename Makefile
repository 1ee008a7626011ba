# What a contributor runs. Everything happens inside .venv; nothing else on the machine is touched.
# Another interpreter: make setup PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-peers torture lint format lock bench bench-quick bench-full clean

help:
	@echo "make demo     set up, then watch an agent work (no key, no network needed for the run itself)"
	@echo "make test     set up, then style, types, import borders and all tests"
	@echo "make test-peers  run against servers of other people, installed once into .peers (npm, cmake, package indexes)"
	@echo "make torture  crashes, kills, power cuts and bad disks by the thousand; about a quarter of an hour"
	@echo "make setup    create $(VENV) and install what requirements.lock names, checked by hash"
	@echo "make lint     style, types and import borders only"
	@echo "make format   put the code into its style"
	@echo "make lock     resolve pyproject.toml anew into requirements.lock (asks the package index)"
	@echo "make bench    measure against a floor and peers, in environments of their own (bench-quick, bench-full)"
	@echo "make clean    remove $(VENV) and all caches"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "make: '$(PYTHON)' was not found. Install Python 3.11 or newer, or name one: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: Glassloop needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1). Name a newer one: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "make: '$(PYTHON)' comes without venv. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "Creating $(VENV)"; "$(PYTHON)" -m venv --clear $(VENV); }
	@echo "Installing what requirements.lock names, once: about 40 MB from the package index, a minute or two"
	@{ $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements.lock \
		&& echo finished; } | { count=0; finished=1; while read -r word rest; do case "$$word" in \
			Collecting) count=$$((count + 1)); printf '\r  %d packages fetched' $$count;; \
			Installing) printf '\n  unpacking them\n';; \
			finished) finished=0;; \
		esac; done; exit $$finished; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup
	@$(BIN)/glassloop demo

# In the files' own order: by size, the few long tests would come last, and one core would wait for the other. One
# worker more than there are cores, since many tests wait for a process, a terminal or a clock.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)))

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Servers of other people, built once; what came of it is committed as docs/results/peers.md.
test-peers: setup
	$(BIN)/python tests/peers/build.py
	$(BIN)/python -m pytest tests/peers -m peers --junitxml .peers/outcome.xml; failed=$$?; \
		$(BIN)/python tests/peers/report.py .peers/outcome.xml && exit $$failed

# What may befall a run, by the thousand; what came of it is committed as docs/results/torture.md.
torture: setup
	$(BIN)/python -m pytest tests/torture tests/simulator tests/sessions -m torture -n auto --dist worksteal \
		--junitxml .pytest_cache/torture.xml; failed=$$?; \
		$(BIN)/python tests/torture/report.py .pytest_cache/torture.xml && exit $$failed

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# uv resolves for every platform and Python at once, which pip cannot; it is needed here and nowhere else.
lock: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --custom-compile-command "make lock" --quiet --output-file requirements.lock

# Peers are installed into bench/.envs; results go to bench/results, plots to docs/performance.
bench: setup
	$(BIN)/python bench/tables.py usual; held=$$?; $(BIN)/python bench/envs.py plots && bench/.envs/plots/bin/python bench/plots.py; exit $$held

bench-quick: setup
	@$(BIN)/python bench/tables.py quick

bench-full: setup
	$(BIN)/python bench/tables.py full; held=$$?; $(BIN)/python bench/envs.py plots && bench/.envs/plots/bin/python bench/plots.py; exit $$held

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
