# `make demo` and `make test` work in a fresh clone: whatever they need, they set up first.
# Other commands: make help. Without make (Windows), CONTRIBUTING.md has the same commands for pip and pytest.

PYTHON  ?= python3
WORKERS ?= 2
SEED    ?= 0
JOBS    ?= 1
MINUTES ?= 10
VENV    := .venv
BIN     := $(VENV)/bin
heading  = @printf '\n== %s\n' "$(1)"

export MPLBACKEND ?= Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

.NOTPARALLEL:
.PHONY: help setup aleph demo test certainty matrix fuzz coverage check format lint types contracts examples notebooks docs wheel bench lock clean

help:                     ## these lines
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## */\t/' | expand -t 12

# ------------------------------------------------------------------------------------------------- setting up

# Everything installed has the version requirements.lock gives it.
setup: $(VENV)/.stamp     ## make .venv and install the project in it, pinned; does nothing the second time
$(VENV)/.stamp: pyproject.toml requirements.lock
	$(call heading,setup: $(VENV))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq -c requirements.lock -e '.[plots,dev]'
	$(BIN)/lbm warm
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp
	$(call heading,setup: the peers that benchmarks compare with)
	$(BIN)/python -m pip install -qq -c requirements.lock -e '.[bench]'
	@touch $@

aleph: setup              ## Aleph, to compare bottom clauses with; it also needs SWI-Prolog (swi-prolog-nox)
	$(BIN)/python -m pip install -qq --no-deps python-rdm==0.3.7

# ------------------------------------------------------------------------------------------------- main jobs

demo: setup               ## the tour: from formulae to machines, learning, relations, and a small report of all trials
	$(call heading,demo)
	$(BIN)/python examples/demo.py
	$(call heading,the paper reproduced: small trials)
	$(BIN)/lbm reproduce --quick
	@printf '\nsee it and ask it in the browser: %s studio examples/nixon.lbm\n' $(BIN)/lbm

# The same examples on every machine and day; SEED=7 draws others, ORDER=7 runs the tests in another order.
test: setup               ## all tests and the examples in docstrings, README and docs
	$(call heading,tests)
	OMP_NUM_THREADS=1 PYTHONHASHSEED=$(SEED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --hypothesis-seed=$(SEED) $(if $(ORDER),--shuffle=$(ORDER))

certainty: setup          ## 2,000 questions whose answers are known, asked of chains: 45 minutes; SEED=1 asks others
	$(call heading,certainty)
	$(BIN)/python tools/certainty.py --seed $(SEED) --jobs $(JOBS)

matrix: setup             ## every question, by every method, of theories of 10 to 10,000 atoms: an hour or more
	$(call heading,matrix of sizes)
	$(BIN)/python tools/matrix.py $(if $(SIZES),--sizes $(SIZES))

fuzz: setup               ## new random questions and examples for MINUTES=10; failures are stored in tests/found
	$(call heading,fuzz)
	$(BIN)/python tools/fuzz_rounds.py --minutes $(MINUTES)

coverage: setup           ## the same, twice as slow, and how much of the source they reach
	$(call heading,coverage)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --cov

check: setup format lint types contracts test examples notebooks docs wheel ## all that must hold before a change is merged
	$(call heading,all checks passed)

# ------------------------------------------------------------------------------------------------- parts of check

format: setup             ## is every file formatted? (ruff format mends it)
	$(call heading,format)
	$(BIN)/ruff format --check .

lint: setup               ## ruff's rules
	$(call heading,lint)
	$(BIN)/ruff check .

types: setup              ## strict types of src/
	$(call heading,types)
	$(BIN)/mypy --strict src

contracts: setup          ## rooms import only the rooms above them
	$(call heading,import contracts)
	$(BIN)/lint-imports --no-cache --no-logo

examples: setup           ## run every script in examples/
	@set -e; for script in examples/*.py; do \
		printf '\n== example: %s\n' "$$script"; $(BIN)/python "$$script"; done

notebooks: setup          ## do the notebooks of docs/ still print what is stored? (tools/notebooks.py stores it anew)
	$(call heading,notebooks)
	$(BIN)/python tools/notebooks.py --check

docs: setup               ## the site, in site/
	$(call heading,docs)
	$(BIN)/mkdocs build --strict --quiet

wheel: setup              ## build sdist and wheel in dist/, and run the tests against that wheel
	$(call heading,build)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python tools/test_wheel.py dist

# ------------------------------------------------------------------------------------------------- now and then

bench: setup $(VENV)/.stamp-bench ## run every benchmark; figures depend on the machine, ratios less so
	@set -e; for script in benchmarks/*.py; do \
		printf '\n== benchmark: %s\n' "$$script"; $(BIN)/python "$$script"; done

lock:                     ## choose new versions for requirements.lock
	$(PYTHON) tools/lock.py

clean:                    ## remove all that make can make again, .venv included
	rm -rf $(VENV) build dist site .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find benchmarks examples src tests tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
