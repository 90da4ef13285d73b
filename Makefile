# A fresh machine needs Python 3.11 or newer, git and make: `make test` sets up .venv and runs the fast tests.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
AOT := .venv-aot/bin
TORCH := .venv-torch/bin
PINS = requirements/$$($(1)/python -c 'import sys; print("py311" if sys.version_info < (3, 12) else "py312")').txt
PIP = pip install --quiet --disable-pip-version-check
# Every package must have a hash of its pin. Puente itself is built by a setuptools that has one, too.
INSTALL = $(1)/$(PIP) --require-hashes -r $(call PINS,$(1)) && \
	$(1)/$(PIP) --no-deps --no-build-isolation --editable . || { echo "error: not installed (above); $(NEEDED)"; exit 1; }
NEEDED := the packages need Python 3.11 to 3.14 (make PYTHON=python3.12 chooses one) on Linux with glibc (x86-64, arm64) or macOS (arm64); on Windows use WSL

.PHONY: help install install-aot install-torch quickstart test test-all test-mutations test-nightly test-faults test-aot test-torch pins licences lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## set up .venv from the pinned versions (PYTHON=python3.12 chooses an interpreter)

# The pins follow the Python of .venv: jax 0.10 on 3.11, jax 0.11 from 3.12 on.
$(INSTALLED): pyproject.toml requirements/py311.txt requirements/py312.txt
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 15) and sys.platform != "win32" else "error: $(NEEDED)")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@echo "installing the pinned packages into .venv (a few minutes, once)"
	@$(call INSTALL,$(BIN))
	@touch $@

quickstart: install  ## train on the embedded corpus, evaluate, translate, draw attention, report: a few minutes on a CPU
	$(BIN)/python train.py configs/quickstart.yaml
	$(BIN)/python eval.py runs/quickstart
	$(BIN)/python eval.py runs/quickstart data.test=phrasebook:phrases
	$(BIN)/python scripts/plot_attention.py runs/quickstart "My sister is going to buy the white shoes."
	$(BIN)/python scripts/report.py runs/quickstart
	@cat scripts/quickstart.txt

# Compiling takes most of the time, so XLA's older emitters, where jaxlib has them, write plainer code here, and LLVM
# optimizes none of it. make test-nightly compiles as users do.
EMITTERS := $$(ls -d .venv/lib/*/site-packages/jaxlib-0.10.* >/dev/null 2>&1 && echo --xla_cpu_use_fusion_emitters=false)
UNOPTIMIZED := XLA_FLAGS="$$XLA_FLAGS --xla_backend_optimization_level=0 $(EMITTERS)"
PYTEST := $(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder

test: install  ## run the fast tests
	$(UNOPTIMIZED) $(PYTEST)

test-all: test  ## run the fast and the slow tests: whole runs, full disks, exactness over many steps
	$(UNOPTIMIZED) $(PYTEST) -m "slow and not nightly and not aot and not torch"

test-mutations: install  ## break the code in six places that the commit's hash chooses: their tests must fail
	$(UNOPTIMIZED) $(BIN)/python -m tests.mutations --draw 6 --jobs 2

test-nightly: install install-aot  ## hours: everything as users compile it, the largest programs, every mutation
	$(PYTEST) -m "not aot and not torch"
	JAX_PLATFORMS=cpu $(AOT)/pytest -q -n 2 -m aot
	$(BIN)/python -m tests.mutations --jobs 2

test-faults: install  ## hours: 1,000 faults that the date chooses, in programs that then go on
	$(BIN)/python -m tests.faults.prove --seed $$(date +%Y%m%d) --faults 1000

# An environment of its own: where a machine has no such device, libtpu and CUDA would only delay every other program.
install-aot: .venv-aot/.installed  ## set up .venv-aot with the compilers for GPUs and TPUs (3 GB)

.venv-aot/.installed: pyproject.toml requirements/py311.txt requirements/py312.txt requirements/aot.txt
	@test -x $(AOT)/pip || $(PYTHON) -m venv .venv-aot
	@echo "installing the pinned packages and the compilers for GPUs and TPUs into .venv-aot (a few minutes, once)"
	@$(call INSTALL,$(AOT))
	@$(AOT)/$(PIP) --require-hashes --no-deps -r requirements/aot.txt
	@touch $@

test-aot: install-aot  ## compile for GPUs and TPUs, which need not be there
	JAX_PLATFORMS=cpu $(AOT)/pytest -q -n 2 -m "aot and not slow and not nightly"

# PyTorch is as large as everything else together, and on Linux brings CUDA if it comes from the usual index.
install-torch: .venv-torch/.installed  ## set up .venv-torch with PyTorch and transformers (1 to 6 GB)

.venv-torch/.installed: pyproject.toml requirements/py311.txt requirements/py312.txt requirements/torch.txt
	@test -x $(TORCH)/pip || $(PYTHON) -m venv .venv-torch
	@echo "installing the pinned packages, PyTorch and transformers into .venv-torch (a few minutes, once)"
	@$(call INSTALL,$(TORCH))
	@$(TORCH)/$(PIP) -r requirements/torch.txt
	@touch $@

test-torch: install-torch  ## compare with PyTorch and transformers
	$(TORCH)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m torch

# Versions stay as they are; UPGRADE=--upgrade takes the newest that pyproject.toml allows.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make pins' .venv-tools/bin/uv pip compile --quiet $(UPGRADE) \
	--generate-hashes --no-annotate --python-version

pins: .venv-tools/.installed  ## write requirements/ anew from pyproject.toml and aot.in, with the hashes for every platform
	@$(COMPILE) 3.11 --extra dev pyproject.toml -o requirements/py311.txt
	@$(COMPILE) 3.12 --extra dev pyproject.toml -o requirements/py312.txt
	@$(COMPILE) 3.11 --universal --no-deps requirements/aot.in -o requirements/aot.txt

licences: install .venv-tools/.installed  ## list the licence of every package in .venv
	@.venv-tools/bin/pip-licenses --python $(BIN)/python --order license

.venv-tools/.installed:
	@$(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/$(PIP) uv==0.13.9 pip-licenses==5.5.5
	@touch $@

lint: install  ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install  ## format every file
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove .venv, .venv-aot, .venv-torch, .venv-tools and caches, but not runs/
	rm -rf .venv .venv-aot .venv-torch .venv-tools .jax_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
	find . -name __pycache__ -not -path './runs/*' -prune -exec rm -rf {} +
