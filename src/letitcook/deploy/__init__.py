"""Policies at work: a control loop, exports."""
