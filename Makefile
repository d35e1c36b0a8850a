# Everything that a fresh machine needs: Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
comma := ,
OUT := results/discrete
PIP_INSTALL := pip install --quiet --disable-pip-version-check
# Each environment is made anew when the requirements change; the stamp says that it is complete.
define environment
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "letitcook needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/$(PIP_INSTALL) $(2)
	touch $(1)/.installed-$(3)
endef

.PHONY: reproduce test lint types unit smoke test-all test-sweeps test-browser test-rliable test-overcooked test-torch docs benchmark benchmark-deep pictures clean

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

test-all: test-sweeps test smoke test-browser test-rliable test-torch test-overcooked docs

# The documentation as a site, in site/; no warnings, and no page may load anything from elsewhere.
docs: .venv-docs/.installed-docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	! grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="(https?:)?//' site --include=*.html

test-overcooked: .venv-overcooked/.installed-overcooked
	.venv-overcooked/bin/pytest integration_tests/overcooked

test-torch: .venv-torch/.installed-torch
	.venv-torch/bin/pytest integration_tests/torch

# The whole way of a sweep, from the first run to the report, on all seven tasks, from scratch and wrapped.
smoke: $(VENV)/.installed-test
	rm -rf results/smoke
	$(VENV)/bin/letitcook reproduce --suite smoke --rows lexicographic --out results/smoke

# Sweeps that are killed, sweeps on a Ray cluster that loses a node, and curves for TensorBoard and W&B.
test-sweeps: .venv-sweeps/.installed-sweeps
	.venv-sweeps/bin/pytest integration_tests/sweeps integration_tests/ray integration_tests/tracking

# Needs Chromium: apt-get install chromium, or the path of one in LETITCOOK_CHROMIUM.
test-browser: .venv-sweeps/.installed-sweeps
	.venv-sweeps/bin/pytest integration_tests/browser

test-rliable: .venv-rliable/.installed-rliable
	.venv-rliable/bin/pytest integration_tests/rliable

benchmark: .venv-torch/.installed-torch
	.venv-torch/bin/python benchmarks/finite.py

benchmark-deep: .venv-torch/.installed-torch
	.venv-torch/bin/python benchmarks/deep.py

pictures: $(VENV)/.installed-default
	$(VENV)/bin/python docs/pictures.py

$(VENV)/.installed-default: pyproject.toml
	$(call environment,$(VENV),-e .,default)

$(VENV)/.installed-test: pyproject.toml
	$(call environment,$(VENV),-e '.[test]',test)

.venv-overcooked/.installed-overcooked: pyproject.toml
	$(call environment,.venv-overcooked,-e '.[test$(comma)overcooked]',overcooked)

.venv-sweeps/.installed-sweeps: pyproject.toml
	$(call environment,.venv-sweeps,-e '.[test$(comma)ray$(comma)tracking$(comma)browser]',sweeps)

.venv-rliable/.installed-rliable: pyproject.toml
	$(call environment,.venv-rliable,-e '.[test$(comma)rliable]',rliable)

.venv-docs/.installed-docs: pyproject.toml
	$(call environment,.venv-docs,-e '.[docs]',docs)

# PyTorch first and by itself: the bound picks a CPU build where one is offered.
.venv-torch/.installed-torch: pyproject.toml
	$(call environment,.venv-torch,-e '.[test$(comma)torch$(comma)peers$(comma)onnx]',torch)
	.venv-torch/bin/$(PIP_INSTALL) --no-deps 'morl-baselines>=1.3'


clean:
	rm -rf .venv .venv-overcooked .venv-torch .venv-sweeps .venv-rliable .venv-docs site .pytest_cache .mypy_cache .ruff_cache
