"""Environments that take long to be seeded: the first seed counts, and later episodes go on from there."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class SeedOnce(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Pass on the first seed only, for an environment in which seeding is slow, such as Atari's, which loads its ROM.

    letitcook seeds every episode of an evaluation, so that a wrapper and its base policy begin alike. Inside this one,
    episodes go on from the random numbers of those before: they no longer begin alike, and comparisons are those of
    independent episodes. They hold as before, and certificates too, but where the beginning of an episode decides much
    they take more episodes. A run that is resumed does not come to the same bits.

    >>> from letitcook import WaitingEnv
    >>> env = WaitingEnv(SeedOnce(gym.make("MountainCar-v0")), wait=1, durations=(2, 4))
    >>> first, second = env.reset(seed=0)[0], env.reset(seed=0)[0]
    >>> bool((first == second).all())
    False
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with the seed if it is the first one that is given."""
        given = None if self._seeded else seed
        self._seeded = self._seeded or seed is not None
        return self.env.reset(seed=given, options=options)
