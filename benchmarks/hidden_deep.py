"""Networks that remember: CartPole without velocities; around the handwritten cook, its clock hidden, as vectors.

    python benchmarks/hidden_deep.py cartpole seen|hidden|window|frames|recurrent [--seeds 5] [--steps N]
    python benchmarks/hidden_deep.py cook seen|hidden|timers|recurrent [--seeds 5] [--steps N]

`seen` is with nothing hidden, `hidden` without a memory, `window` and `timers` with one, `frames` stacks
the last observations without saying what was done or how long it lasted, and `recurrent` is RecurrentPPO of sb3-contrib
(`pip install sb3-contrib`) on the scalarised view. Lines are JSON, one for each run; `--out FILE` appends them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from letitcook import Memory, ScalarisedEnv, Timer, WaitingEnv, evaluate, learn, make, wrap
from letitcook.tasks.cook import CookEnv, CookPolicy

FIRST_SEED = 100
EPISODES = 200
LAMBDA = 0.1
"""λ of the scalarised view: below what a step is worth, so that the task comes first."""


class Shown(gym.ObservationWrapper):
    """Shows some of the numbers of an observation; with all of them, the same loop in Python with nothing hidden."""

    def __init__(self, env: gym.Env[Any, Any], places: list[int]) -> None:
        super().__init__(env)
        self._places = places
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(places),), np.float32)

    def observation(self, observation: Any) -> Any:
        """Return the numbers that are shown."""
        return np.asarray(observation, dtype=np.float32)[self._places]


POSITIONS, EVERYTHING = [0, 2], [0, 1, 2, 3]
"""Of a cart and its pole."""


class VectorCook(gym.Env[Any, Any]):
    """The kitchen as an environment that cannot be enumerated, shown as a vector: one-hot, the clock as a number."""

    action_names = CookEnv.action_names
    HOT = (5, 5, 4, 4, 3, 4)

    def __init__(self, hidden: bool) -> None:
        self._env = CookEnv(hidden=hidden)
        self.action_space = self._env.action_space
        self.observation_space = spaces.Box(0.0, 2.0, (sum(self.HOT) + (not hidden),), np.float32)

    def _vector(self, seen: Any) -> Any:
        parts = [np.eye(n, dtype=np.float32)[value] for n, value in zip(self.HOT, seen[:6], strict=True)]
        return np.concatenate([*parts, np.array(seen[6:], dtype=np.float32) / 15])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        observation, info = self._env.reset(seed=seed)
        return self._vector(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do one action."""
        observation, reward, terminated, truncated, info = self._env.step(int(action))
        return self._vector(observation), reward, terminated, truncated, info


class Frames(gym.Wrapper[Any, Any, Any, Any]):
    """The last observations at decisions, side by side, as frame stacking has them."""

    def __init__(self, env: gym.Env[Any, Any], n: int) -> None:
        super().__init__(env)
        self._frames: deque[Any] = deque(maxlen=n)
        size = n * int(np.prod(env.observation_space.shape or (1,)))
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._frames.extend([observation] * (self._frames.maxlen or 1))
        return np.concatenate(self._frames), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out one decision."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._frames.append(observation)
        return np.concatenate(self._frames), reward, terminated, truncated, info


def handwritten(observation: Any) -> int:
    """Return the handwritten cook's action, of a kitchen as a vector."""
    ends = np.cumsum([0, *VectorCook.HOT])
    seen = [int(np.argmax(observation[a:b])) for a, b in pairwise(ends.tolist())]
    return CookPolicy().predict(seen)[0]


def pot(observation: Any) -> int:
    """Return what the pot does, of a kitchen as a vector."""
    return int(np.argmax(observation[18:21]))


def waiting(task: str, hidden: bool) -> WaitingEnv:
    """Return the waiting environment that is compared."""
    about = make(task)
    if task == "cartpole":
        cart = Shown(gym.make("letitcook/CartPole-v0"), POSITIONS if hidden else EVERYTHING)
        return WaitingEnv(cart, about.decisions.wait, about.decisions.durations)
    kitchen = gym.wrappers.TimeLimit(VectorCook(hidden), 200)
    return wrap(kitchen, handwritten, about.decisions.wait, about.decisions.durations, cost="decisions")


MEMORY = {
    "window": Memory(window=2),
    "window1": Memory(window=1),
    "timers": Memory(timers=(Timer(0, values=(1,)),), parts=pot),
}


def run(task: str, what: str, seed: int, steps: int) -> dict[str, Any]:
    """Return what one run reached on fresh episodes."""
    began = time.process_time()
    if what == "recurrent":
        numbers = recurrent(task, seed, steps)
    else:
        env: Any = waiting(task, what != "seen")
        if what == "frames":
            env = WaitingEnv(Frames(env.env, 3), env.decisions.wait, env.decisions.durations)
        result = learn(env, steps=steps, seed=seed, preset="best", memory=MEMORY.get(what), progress=False)
        if not result.finished:
            raise SystemExit("stopped before its end: nothing is written")
        played = evaluate(env, result.policy, episodes=EPISODES, seed=seed)
        numbers = {"return": played.task_return, "length": played.length, "queries": played.queries}
    return {"task": task, "what": what, "seed": seed, "steps": steps, **numbers, "cpu_s": time.process_time() - began}


def recurrent(task: str, seed: int, steps: int) -> dict[str, float]:
    """Train RecurrentPPO on the scalarised view for as many primitive steps, and play it."""
    from sb3_contrib import RecurrentPPO

    env = waiting(task, hidden=True)
    model = RecurrentPPO("MlpLstmPolicy", ScalarisedEnv(env, LAMBDA), seed=seed, verbose=0, device="cpu")
    counted, real = 0, env.step

    def step(action: Any) -> Any:
        nonlocal counted
        result = real(action)
        counted += result[4]["elapsed"]
        return result

    env.step = step  # type: ignore[method-assign]
    model.learn(10**9, callback=lambda *_: counted < steps)
    env.step = real  # type: ignore[method-assign]
    played = evaluate(env, model, episodes=EPISODES, seed=seed)
    return {"return": played.task_return, "length": played.length, "queries": played.queries}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["cartpole", "cook"])
    parser.add_argument("what", choices=["seen", "hidden", "window", "frames", "timers", "recurrent"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        line = json.dumps(run(given.task, given.what, seed, given.steps))
        print(line, flush=True)
        if given.out is not None:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
