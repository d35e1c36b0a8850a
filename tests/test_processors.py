"""Processors with vector registers of different widths train the same networks, to the bit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from numba.core.registry import cpu_target

from letitcook.core.objective import Objective
from letitcook.deep.agent import LDQN
from letitcook.deep.settings import PAPER
from letitcook.tasks.cartpole import TASK

HASWELL = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}
"""The oldest processors with fused multiply-adds; registers half as wide as those of AVX-512."""


def digest() -> str:
    """Train for a while; return what tells its networks from all others."""
    settings = replace(PAPER["cartpole"], hidden=(70, 40))
    learner = LDQN(TASK, TASK.decisions, Objective.named("lexicographic"), settings, seed=0)
    learner.advance(decisions=1_600)
    networks, episodes = learner._learner.networks, learner.greedy_episodes(3, seed=1)
    arrays = (networks.parameters, networks.target, networks.second_moment, episodes)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def test_bits_do_not_depend_on_the_width_of_registers(tmp_path: Path) -> None:
    known = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    if not {"+avx2", "+fma"} <= set(known):
        pytest.skip("this processor, or what the compiler is told of it, has no fused multiply-adds")
    command = [sys.executable, "-c", "import test_processors; print(test_processors.digest())"]
    settings = {**os.environ, **HASWELL, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=settings, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()
