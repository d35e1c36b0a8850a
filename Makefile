# Everything that a fresh machine needs: Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
comma := ,
OUT := results/discrete
PIP_INSTALL := pip install --quiet --disable-pip-version-check
# Versions for the tests' environments; `make CONSTRAINTS= test` takes the newest ones.
CONSTRAINTS ?= constraints.txt
CONSTRAINED := $(addprefix -c ,$(CONSTRAINTS))
# Each environment is made anew when the requirements change; the stamp says that it is complete.
define environment
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "letitcook needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/$(PIP_INSTALL) $(2)
	touch $(1)/.installed-$(3)
endef

.PHONY: reproduce test test-peers lint types unit smoke test-all test-sweeps test-browser test-rliable test-overcooked test-torch test-package test-generic docs coverage fuzz kills mutants audit house constraints dist benchmark benchmark-deep pictures clean

reproduce: $(VENV)/.installed-default
	$(VENV)/bin/letitcook reproduce --suite discrete --out $(OUT)

test: lint types unit

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .

types: $(VENV)/.installed-test
	$(VENV)/bin/mypy

unit: $(VENV)/.installed-test
	$(VENV)/bin/pytest -n auto

test-all: test-sweeps test test-generic smoke test-browser test-rliable test-torch test-overcooked test-package docs

# Tests that train, on the instructions that every x86-64 processor has: bits differ there, and no test may depend on them.
GENERIC := NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Nehalem NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL"
test-generic: $(VENV)/.installed-test
	$(GENERIC) $(VENV)/bin/pytest $(addprefix tests/test_,export.py figures.py agent.py selection.py products.py network.py)

# Lines and branches of src/ that the unit tests run, compiled kernels aside (see CONTRIBUTING.md).
coverage: $(VENV)/.installed-test
	rm -f .coverage*
	$(VENV)/bin/coverage run -m pytest -n auto
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report

# Mutated files for every loader, for minutes; COUNT=100000 for an hour. Exit code 1 if anything but a declared error comes of one.
COUNT := 5000
fuzz: $(VENV)/.installed-test
	$(VENV)/bin/python tests/fuzzing.py --count $(COUNT)

# Runs killed at random moments, 40 of each of six kinds; takes an hour.
KILLS := 40
kills: $(VENV)/.installed-test
	$(VENV)/bin/python integration_tests/kills/campaign.py --kills $(KILLS)

# Mutation testing of five modules: 30 mutants of each, drawn at random; SAMPLE= tries all of them, for hours.
SAMPLE := --sample 30
mutants: $(VENV)/.installed-test
	$(VENV)/bin/python tests/mutants.py $(SAMPLE)

# Known weaknesses of the versions in constraints.txt, by the database of PyPI; needs the network, and fails without it.
audit: .venv-release/.installed-release
	.venv-release/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

# The sdist and the wheel, in dist/.
dist: .venv-release/.installed-release
	rm -rf dist
	.venv-release/bin/python -m build --outdir dist .
	.venv-release/bin/twine check --strict dist/*

# The package as users get it: the tests of the unpacked sdist, with the wheel in a new environment.
test-package: dist
	rm -rf .venv-wheel dist/unpacked && mkdir dist/unpacked
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/$(PIP_INSTALL) $(CONSTRAINED) dist/*.whl pytest hypothesis
	tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components=1
	cd dist/unpacked && ../../.venv-wheel/bin/pytest integration_tests/package tests/test_backward_compatibility.py

# The drawing of the rooms in CONTRIBUTING.md.
house: $(VENV)/.installed-test
	$(VENV)/bin/python docs/house.py --write

# constraints.txt, for Python 3.11 and newer. PyTorch and what it brings stay free: its builds differ by index and processor.
constraints: .venv-release/.installed-release
	.venv-release/bin/uv pip compile pyproject.toml --upgrade --universal --python-version 3.11 --quiet --no-header --no-annotate \
	  --no-emit-package torch --extra test --extra ray --extra tracking --extra browser --extra rliable --extra onnx --extra minari --extra peers \
	  --extra docs --extra release | grep -vE '^(nvidia|cuda|triton)' > constraints.txt

# The documentation as a site, in site/; no warnings, and no page may load anything from elsewhere.
docs: .venv-docs/.installed-docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	! grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//' site --include=*.html

test-overcooked: .venv-overcooked/.installed-overcooked
	.venv-overcooked/bin/pytest integration_tests/overcooked

test-torch: .venv-torch/.installed-torch
	.venv-torch/bin/pytest integration_tests/torch

# The contenders of the deep benchmark: one CartPole, one loss, one schedule.
test-peers: .venv-peers/.installed-peers
	.venv-peers/bin/pytest integration_tests/peers

# The whole way of a sweep, from the first run to the report, on all seven tasks, from scratch and wrapped.
smoke: $(VENV)/.installed-test
	rm -rf results/smoke
	$(VENV)/bin/letitcook reproduce --suite smoke --rows lexicographic --out results/smoke

# Sweeps that are killed, sweeps on a Ray cluster that loses a node, and curves for TensorBoard and W&B.
test-sweeps: .venv-sweeps/.installed-sweeps
	.venv-sweeps/bin/pytest integration_tests/sweeps integration_tests/kills integration_tests/ray integration_tests/tracking

# Needs Chromium: apt-get install chromium, or the path of one in LETITCOOK_CHROMIUM.
test-browser: .venv-sweeps/.installed-sweeps
	.venv-sweeps/bin/pytest integration_tests/browser

test-rliable: .venv-rliable/.installed-rliable
	.venv-rliable/bin/pytest integration_tests/rliable

benchmark: .venv-torch/.installed-torch
	.venv-torch/bin/python benchmarks/finite.py

# Half an hour of one core; ONLY="--only warm" makes one table (warm, cold, return or limit).
ONLY :=
benchmark-deep: .venv-peers/.installed-peers
	.venv-peers/bin/python benchmarks/deep.py $(ONLY)

pictures: $(VENV)/.installed-default
	$(VENV)/bin/python docs/pictures.py

$(VENV)/.installed-default: pyproject.toml
	$(call environment,$(VENV),-e .,default)

$(VENV)/.installed-test: pyproject.toml $(CONSTRAINTS)
	$(call environment,$(VENV),$(CONSTRAINED) -e '.[test]',test)

.venv-overcooked/.installed-overcooked: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-overcooked,$(CONSTRAINED) -e '.[test$(comma)overcooked]',overcooked)

.venv-sweeps/.installed-sweeps: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-sweeps,$(CONSTRAINED) -e '.[test$(comma)ray$(comma)tracking$(comma)browser]',sweeps)

.venv-rliable/.installed-rliable: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-rliable,$(CONSTRAINED) -e '.[test$(comma)rliable]',rliable)

.venv-release/.installed-release: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-release,$(CONSTRAINED) -e '.[release]',release)

.venv-docs/.installed-docs: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-docs,$(CONSTRAINED) -e '.[docs]',docs)

# PyTorch first and by itself: the bound picks a CPU build where one is offered.
.venv-torch/.installed-torch: pyproject.toml $(CONSTRAINTS)
	$(call environment,.venv-torch,$(CONSTRAINED) -e '.[test$(comma)torch$(comma)peers$(comma)onnx$(comma)minari]',torch)
	.venv-torch/bin/$(PIP_INSTALL) --no-deps 'morl-baselines>=1.3'

# The peers in JAX, and tianshou, which asks for an older filelock than the other environments have.
.venv-peers/.installed-peers: pyproject.toml $(CONSTRAINTS)
	mkdir -p .venv-peers
	grep -hv '^filelock==' $(or $(CONSTRAINTS),/dev/null) > .venv-peers/constraints.txt || true
	$(call environment,.venv-peers,-c .venv-peers/constraints.txt -e '.[test$(comma)torch$(comma)peers$(comma)peers-jax]',peers)

clean:
	rm -rf .venv .venv-* site dist .pytest_cache .mypy_cache .ruff_cache
