# Everything a checkout needs: `make serve` runs the service, `make test` the tests. The first call makes .venv and
# installs into it what constraints.txt pins; stamp files there keep the next call fast. Needs python3 (3.10 or
# newer, with venv) and make, nothing else.

.DEFAULT_GOAL := help
# Two targets may both want to install into .venv: one after the other, also under `make -j`.
.NOTPARALLEL:

# The Python that makes .venv: make test PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# More arguments for pip, such as an index that has CPU builds of torch; PyPI's for Linux carry CUDA, several GB.
PIP_ARGS ?=

# The service. Plain `=`, so that a HOST or PORT in the environment (some shells export one) cannot put it on a
# public address: say it on the command line, make serve HOST=0.0.0.0 PORT=9000
HOST = 127.0.0.1
PORT = 8000
# Which agent answers, `best` of the service's own choosing where empty: make serve AGENT=greedy
AGENT =

# make train PRESET=NAME TRAIN_ARGS='...'
PRESET ?= smoke
TRAIN_ARGS ?=

# Tests go to the workers by file, so that a kernel which only one file uses is compiled in one process.
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=

# make test-compat COMPAT='rllib pettingzoo-1.24'
COMPAT_PAIRS := pettingzoo-1.24 pettingzoo-1.26 pettingzoo-newest
COMPAT_LIBRARIES := rllib agilerl
COMPAT_VENV_NAMES := $(COMPAT_PAIRS) $(COMPAT_LIBRARIES)
COMPAT ?= training $(COMPAT_VENV_NAMES)
COMPAT_VENVS ?= .venv-compat

# make coverage-kernels: files of kernels that the tests of the engine reach, and those tests.
KERNELS := skipbo_env/engine/deal.py,skipbo_env/engine/hidden.py,skipbo_env/engine/moves.py,skipbo_env/engine/observe.py,$\
  skipbo_env/engine/rewards.py,skipbo_env/engine/rng.py,skipbo_env/agents/heuristics.py
KERNEL_TESTS := tests/test_engine.py tests/test_playthroughs.py tests/skipbo_env/test_kernels.py -k 'not forty_games'

# make load LOAD_ARGS='--server gunicorn --checks rates'
LOAD_ARGS ?=

# make verify-long VERIFY_ARGS='--decisions 10000000'
VERIFY_ARGS ?=

# One thread a process, on purpose: the matrices here are small, and the work is spread over processes (test workers,
# arena shards, service workers). More threads than cores make OpenMP barriers wait for a descheduled thread, and a
# call of half a millisecond then takes tens. Must be set before numpy, numba or torch is imported, hence here.
# A value that stands in the environment is kept.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1

PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL = $(PIP) install $(PIP_ARGS) -c constraints.txt
BUILD_FILES := pyproject.toml setup.py constraints.txt

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: serve
serve: $(VENV)/.installed-serve ## run the service and its page on HOST:PORT (127.0.0.1:8000), AGENT=NAME to choose
	$(BIN)/skipbo serve --host '$(HOST)' --port '$(PORT)' $(if $(AGENT),--agent '$(AGENT)')

.PHONY: test
test: $(VENV)/.installed-all ## run the tests, but for the slow ones; PYTEST_ARGS='-k name' to choose
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m 'not slow' $(PYTEST_ARGS)

.PHONY: test-compat
test-compat: $(COMPAT:%=test-compat-%) ## train by other libraries, test other versions, RLlib and AgileRL; COMPAT=NAME to choose

# What libraries in .venv take a minute or so to learn; the rest of their tests is in `make test`.
.PHONY: test-compat-training
test-compat-training: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m slow $(PYTEST_ARGS) tests/adapters

# The environments under every pair of versions; the libraries by their own tests. No tests is an error here (5).
.PHONY: $(COMPAT_VENV_NAMES:%=test-compat-%)
$(COMPAT_VENV_NAMES:%=test-compat-%): test-compat-%: $(COMPAT_VENVS)/%/.installed
	$(COMPAT_VENVS)/$*/bin/python -m pytest -p no:cacheprovider $(PYTEST_ARGS) $(if $(filter $*,$(COMPAT_PAIRS)), \
	  tests/skipbo_env/test_aec.py tests/skipbo_env/test_gym.py tests/skipbo_env/test_vector.py, \
	  tests/adapters/test_$*.py)

.PHONY: verify-long
verify-long: $(VENV)/.installed-all ## compare engine and reference at length, VERIFY_ARGS='--decisions N'; then the slow tests
	$(BIN)/python -m tests.verify_long $(VERIFY_ARGS)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m slow $(PYTEST_ARGS) || [ $$? -eq 5 ] # 5: there are none

.PHONY: lint
lint: $(VENV)/.installed-all ## check style (ruff), types (mypy), Dockerfile and compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	if [ -x $(BIN)/hadolint ]; then $(BIN)/hadolint Dockerfile; else echo 'no hadolint here: Dockerfile not checked'; fi
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/compose-lint compose.yaml

.PHONY: format
format: $(VENV)/.installed-all ## rewrite the source in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: load
load: $(VENV)/.installed-serve ## measure the service on loopback, LOAD_ARGS='--server gunicorn'
	$(BIN)/python -m serve.load $(LOAD_ARGS)

.PHONY: train
train: $(VENV)/.installed-train ## train an agent, PRESET=smoke unless given
	$(BIN)/skipbo train --preset '$(PRESET)' $(TRAIN_ARGS)

# Not --quiet, which would leave --strict no warnings to count.
.PHONY: docs
docs: $(VENV)/.installed-docs ## build the documentation site into site/; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean

.PHONY: coverage
coverage: $(VENV)/.installed-all ## run the tests, report branch coverage of the pure-Python parts
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m 'not slow' $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Numba's kernels leave no trace for coverage, so here they run as the Python that they are written in.
.PHONY: coverage-kernels
coverage-kernels: $(VENV)/.installed-all ## run tests of the engine uncompiled, report branch coverage of its kernels
	$(BIN)/coverage erase
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest $(PYTEST_ARGS) $(KERNEL_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --omit=none --include='$(KERNELS)'

# build/ goes first: setuptools would put modules deleted since the last build into the wheel.
.PHONY: dist
dist: $(VENV)/.build-tools ## build dist/*.whl and dist/*.tar.gz
	rm -rf build dist
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")'
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz

.PHONY: test-dist
test-dist: $(VENV)/.installed-all ## build wheel and sdist, install each into an empty environment, use it there
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m slow tests/test_dist.py

.PHONY: install
install: $(VENV)/.installed-all ## make .venv with everything in it

.PHONY: clean
clean: ## remove build output and caches
	rm -rf build dist site *.egg-info .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find skipbo_env training serve tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## remove .venv and .venv-compat too
	rm -rf $(VENV) $(COMPAT_VENVS)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo 'skipbo-env needs Python 3.10 or newer as "$(PYTHON)". Name another: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '"$(PYTHON)" cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv' >&2; \
	  echo 'Or name another Python: make PYTHON=python3.12' >&2; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || { set -x; $(PYTHON) -m venv --clear $(VENV); }
	@touch $@

# The build backend, pinned like the rest; hence no build isolation below, which would fetch the newest.
$(VENV)/.build-tools: $(VENV)/.created constraints.txt
	$(INSTALL) setuptools
	@touch $@

# $(VENV)/.installed-EXTRA: the package, editable, with that extra. `serve` installs no torch.
$(VENV)/.installed-%: $(VENV)/.build-tools $(BUILD_FILES)
	$(INSTALL) --no-build-isolation -e '.[$*]'
	@touch $@

# An environment of tests/compat/NAME.txt: the package with what that file lists. A version given there takes the place
# of the one in constraints.txt, which holds for everything else.
$(COMPAT_VENVS)/%/.installed: tests/compat/%.txt $(BUILD_FILES)
	$(PYTHON) -m venv --clear $(@D)
	sed -n 's/^\([A-Za-z0-9-]*\)[=<>].*/^\1==/p' $< >$(@D)/replaced
	grep -v -i -f $(@D)/replaced constraints.txt >$(@D)/constraints.txt
	$(@D)/bin/python -m pip --disable-pip-version-check install $(PIP_ARGS) -c $(@D)/constraints.txt setuptools pytest hypothesis
	$(@D)/bin/python -m pip --disable-pip-version-check install $(PIP_ARGS) -c $(@D)/constraints.txt --no-build-isolation \
	  -r $< -e '.[$(if $(filter $*,$(COMPAT_LIBRARIES)),train,render)]'
	@touch $@
