"""Policies of other people's making: models, agents, networks, functions and files, as `Policy`."""

from letitcook.foreign.adapt import CallablePolicy, as_policy
from letitcook.foreign.fit import check_spaces
from letitcook.foreign.named import named_policy

__all__ = ["CallablePolicy", "as_policy", "check_spaces", "named_policy"]
