"""The `wrap` command around files of Stable-Baselines3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3 import DQN

QUICK = ("--durations", "2,4", "--steps", "200", "--episodes", "2", "--env-arg", "max_episode_steps=30")


def saved(env: str, path: Path) -> None:
    DQN("MlpPolicy", gym.make(env), policy_kwargs={"net_arch": [16]}, seed=0).save(path)


def test_a_model_is_wrapped_and_played_again(call: Any, tmp_path: Path) -> None:
    saved("MountainCar-v0", tmp_path / "car.zip")
    car = ("--env", "MountainCar-v0", "--policy", "sb3:dqn:car.zip", "--wait", "1")
    code, out, err = call("wrap", *car, *QUICK, "--out", "run", "--json")
    assert code == 0, err
    savings = json.loads(out)["savings"]
    assert (savings["base_queries_alone"], savings["return_difference"]["value"]) == (30, 0.0)
    code, out, err = call("evaluate", "run", "--episodes", "2", "--json")
    assert (code, json.loads(out)["savings"]["base_queries"]) == (0, savings["base_queries"]), err
    code, out, err = call("evaluate", "run", "--episodes", "2", "--trust-pickle", "--json")
    assert (code, json.loads(out)["savings"]["base_queries"]) == (0, savings["base_queries"]), err
    saved("CartPole-v1", tmp_path / "car.zip")
    code, _, err = call("evaluate", "run")
    assert (code, "is not the one that was wrapped" in err) == (2, True)


def test_a_wait_is_added_for_a_model_that_does_not_know_it(call: Any, tmp_path: Path) -> None:
    saved("CartPole-v1", tmp_path / "pole.zip")
    (tmp_path / "idle_pole.py").write_text(
        "def idle(pole):\n    force, pole.force_mag = pole.force_mag, 0.0\n"
        "    try:\n        return pole.step(0)\n    finally:\n        pole.force_mag = force\n"
    )
    pole = ("--env", "CartPole-v1", "--policy", "sb3:dqn:pole.zip", "--passive", "idle_pole:idle")
    code, out, err = call("wrap", *pole, *QUICK, "--out", "run", "--json")
    assert code == 0, err
    assert json.loads(out)["savings"]["base_queries_alone"] > 0


def test_models_that_do_not_fit(call: Any, tmp_path: Path) -> None:
    saved("CartPole-v1", tmp_path / "pole.zip")
    whole = (tmp_path / "pole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    for policy, message in (
        ("sb3:ppo:pole.zip", "is a model of dqn, not of ppo"),
        ("sb3:dqn:cut.zip", "is damaged"),
        ("sb3:dqn:pole.zip", "another action space"),
    ):
        code, out, err = call(
            "wrap", "--env", "MountainCar-v0", "--policy", policy, "--wait", "1", *QUICK, "--out", "run"
        )
        assert (code, out, message in err) == (2, "", True), err
        assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
