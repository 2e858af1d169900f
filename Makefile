# make run    the default workflow on the papers' 80,000 points; POINTS=my.csv for yours, SET="threshold=0.7 seed=1"
# make test   everything: lint, types, tests, documentation, the default run in a fresh clone
# make bench  speed, memory and quality, side by side with others; make soak   thousands of kills
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
RESULTS ?= results/clustering-aggregation
SOURCES := $(wildcard steps/qonduit_steps/kernels/*.py)

# Bytecode is written as modules are first imported: a step must start fast, and nothing that is never imported takes space.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint unit docs bench soak lock clean
.DELETE_ON_ERROR:

run: $(VENV)/kernels.stamp
	@$(BIN)/qonduit run --outdir $(RESULTS) $(if $(POINTS),--points "$(POINTS)") $(addprefix --set ,$(SET))

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Qonduit needs Python 3.11 or newer as $(PYTHON)." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y python3-venv; } || { echo "Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements-build.lock requirements-run.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing what the default run needs ..."
	@$(PIP) install -q --no-compile --require-hashes -r requirements-build.lock
	@$(PIP) install -q --no-compile --require-hashes --no-build-isolation --use-pep517 -r requirements-run.lock
	@$(PIP) install -q --no-compile --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/kernels.stamp: $(VENV)/run.stamp $(SOURCES)
	@echo "Compiling the kernels ..."
	@rm -f steps/qonduit_steps/kernels/__pycache__/*.nb?  # numba does not see that a callee's file has changed
	@$(BIN)/python -m qonduit_steps.kernels
	@touch $@

$(VENV)/test.stamp: requirements.lock $(VENV)/kernels.stamp
	@echo "Installing what the tests need ..."
	@$(PIP) install -q --no-compile --require-hashes --no-build-isolation --use-pep517 -r requirements.lock
	@touch $@

test: lint docs unit

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(VENV)/test.stamp
	$(BIN)/pytest -n 2 --dist worksteal

docs: $(VENV)/test.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/devices.py

# Every vendor's clients are killed 2,000 times, at random moments; `make test` does it 100 times.
soak: $(VENV)/test.stamp
	QONDUIT_KILLS=2000 $(BIN)/pytest -q -s -n 0 tests/faults/test_kill.py

LOCK := $(BIN)/uv pip compile --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 -q
lock: $(VENV)/test.stamp
	printf 'setuptools>=77\n' | $(LOCK) pyproject.toml - --extra dev -o requirements.lock
	printf 'setuptools>=77\n' | $(LOCK) pyproject.toml - -c requirements.lock -o requirements-run.lock
	printf 'setuptools>=77\n' | $(LOCK) - -c requirements.lock -o requirements-build.lock

clean:
	rm -rf $(VENV) build dist site results .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
