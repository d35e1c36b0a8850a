"""Runs: from an environment to a policy."""
