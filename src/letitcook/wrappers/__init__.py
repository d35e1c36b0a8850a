"""Environments around environments: waiting, base policies, several at once."""
