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

.PHONY: reproduce test lint types unit test-all test-overcooked test-torch benchmark benchmark-deep pictures clean

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

test-all: test test-overcooked test-torch

test-overcooked: .venv-overcooked/.installed-overcooked
	.venv-overcooked/bin/pytest extra_tests/overcooked

test-torch: .venv-torch/.installed-torch
	.venv-torch/bin/pytest extra_tests/torch

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

# PyTorch first and by itself: the bound picks a CPU build where one is offered.
.venv-torch/.installed-torch: pyproject.toml
	$(call environment,.venv-torch,-e '.[test$(comma)torch$(comma)peers]',torch)


clean:
	rm -rf .venv .venv-overcooked .venv-torch .pytest_cache .mypy_cache .ruff_cache
