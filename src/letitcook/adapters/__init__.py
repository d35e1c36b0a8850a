"""Policies of other people's making: models, agents, networks, functions and files, as `Policy`."""

from letitcook.adapters.by_name import named_policy
from letitcook.adapters.policies import CallablePolicy, as_policy
from letitcook.adapters.space_checks import check_spaces

__all__ = ["CallablePolicy", "as_policy", "check_spaces", "named_policy"]
