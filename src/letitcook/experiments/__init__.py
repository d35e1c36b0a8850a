"""Runs as data: suites, sweeps and their results."""
