# Everything a fresh clone needs is Python 3.11 or newer, and make. The system's own interpreter comes first: distributions build
# theirs with optimisation, and one built by hand or by pyenv takes half as long again for the same work. It counts only with
# what makes a virtual environment (Debian: python3-venv).
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in /usr/bin/python3 python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c '$(USABLE)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test quick live fuzz check fmt docs learn llm lock bench build clean
help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

$(READY): requirements.txt pyproject.toml hatch_build.py probes/trace/reading/scanner.c probes/fold.c
	@test -n "$(PYTHON)" || { echo "gpudiag needs Python 3.11 or newer: none was found; name one with make PYTHON=/path/to/python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q assistant knowledge probes rules tui
	$(BIN)/python -m assistant.precompiled
	@touch $(READY)

demo: $(READY)  ## replay a recorded incident on this machine; no GPU is needed
	@$(BIN)/gpudiag demo $(NAME)

test: $(READY)  ## run the tests on all cores
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

quick: $(READY)  ## only the tests that start no process and no server, and take no while
	$(BIN)/python -m pytest -n auto --dist worksteal -m "unit and not slow" $(ARGS)

live: $(READY)  ## capture the planted faults anew from real jobs, in place of the recordings that the tests read
	GPUDIAG_LIVE=$${GPUDIAG_LIVE:-check} $(BIN)/python -m pytest tests/assistant/capture/test_planted_faults.py $(ARGS)

# What it finds is kept: as an @example at the law that failed.
fuzz: $(READY)  ## search at random for what breaks the laws of the tests: no end of examples, make fuzz ARGS=tests/probes/parse
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n auto --dist worksteal -m unit --timeout 3000 $(ARGS)

check: $(READY)  ## formatting, lint, types, layers, docs, rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m assistant.reference --check
	$(BIN)/python -m assistant.intent.weights --check
	$(BIN)/gpudiag rules lint
	$(BIN)/gpudiag rules test
	$(BIN)/gpudiag runbook lint

fmt: $(READY)  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)  ## write docs/reference and the pictures of the terminal app again
	$(BIN)/python -m assistant.reference --write
	$(BIN)/python -m tests.tui.pictures

learn: $(READY)  ## fit what the understanding of sentences learns from its examples
	$(BIN)/python -m assistant.intent.weights --write

llm: .llm/.ready  ## litellm in a virtual environment of its own (.llm), for narration

.llm/.ready: requirements-llm.txt
	@test -n "$(PYTHON)" || { echo "gpudiag needs Python 3.11 or newer: none was found; name one with make PYTHON=/path/to/python3"; exit 1; }
	test -x .llm/bin/python || $(PYTHON) -m venv .llm
	.llm/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-llm.txt
	@touch .llm/.ready

bench: $(READY)  ## start-up cost, as ratios to an empty Python
	$(BIN)/python bench/startup.py

build: $(READY)  ## the wheel, in dist/
	$(BIN)/hatchling build -t wheel

# The lock holds versions and hashes for every platform and Python, and no registry's address:
# pip takes the packages from whatever registry it is set up for.
LOCK := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --generate-hashes \
	--no-emit-index-url --python-version 3.11
# What narration needs is locked apart: it belongs in an environment of its own (docs/narration.md).
LLM := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["llm"], sep="\n")
lock: $(READY)  ## write requirements.txt (development), requirements-run.txt (a deployment) and requirements-llm.txt again
	$(LOCK) pyproject.toml --group dev -o requirements.txt
	$(LOCK) pyproject.toml -o requirements-run.txt
	$(BIN)/python -c '$(LLM)' | $(LOCK) --no-annotate - -o requirements-llm.txt

clean:  ## remove what was built; the virtual environment stays
	rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
