from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from letitcook.core.decisions import Decisions
from letitcook.errors import SettingError
from letitcook.finite.settings import QSettings
from letitcook.training.callbacks import _needed, scalars, tensorboard, track, wandb
from letitcook.training.run import Point, RunInfo

POINT = Point(20_000, 15_000, -40.0, 41.0, 30.0, 7.0)
BEST = Point(10_000, 8_000, -33.0, 33.0, 25.0, 2.0)


@dataclass
class Sums:
    """Sums over four training episodes."""

    episodes: float = 4
    length: float = 200
    queries: float = 120
    task_return: float = -180
    waited: float = 50


SCRATCH, WRAPPED = (
    RunInfo("table", "lexicographic", None, 0, "paper", QSettings(), Decisions(actions, 1, (5,)), "cook")
    for actions in (("go", "stay"), ("base", "wait"))
)


@dataclass
class Run:
    """A run as a callback sees it."""

    info: RunInfo = SCRATCH
    best: Point | None = BEST
    seconds: float = 4.0
    rollout: Sums | None = field(default_factory=Sums)
    rates: dict[str, float] = field(default_factory=lambda: {"rollout/exploration_rate": 0.05, "train/loss": 1.5})


def test_every_number_has_its_name() -> None:
    assert scalars(POINT, Run()) == {
        "rollout/ep_len_mean": 50.0,
        "rollout/ep_rew_mean": -45.0,
        "rollout/ep_queries_mean": 30.0,
        "rollout/wait_fraction": 0.25,
        "rollout/exploration_rate": 0.05,
        "eval/mean_reward": -40.0,
        "eval/mean_ep_length": 41.0,
        "eval/mean_queries": 30.0,
        "eval/best_mean_reward": -33.0,
        "eval/best_mean_ep_length": 33.0,
        "eval/best_mean_queries": 25.0,
        "time/total_timesteps": 20_000.0,
        "time/time_elapsed": 4.0,
        "time/fps": 5_000.0,
        "train/loss": 1.5,
    }


def test_wrappers_add_the_queries_of_their_base() -> None:
    added = set(scalars(POINT, Run(info=WRAPPED)).items()) - set(scalars(POINT, Run()).items())
    assert added == {("eval/mean_base_queries", 7.0), ("eval/best_mean_base_queries", 2.0)}


@pytest.mark.parametrize("rollout", [None, Sums(0, 0, 0, 0, 0)])
def test_means_over_no_episodes_are_left_out(rollout: Sums | None) -> None:
    left_out = set(scalars(POINT, Run())) - set(scalars(POINT, Run(rollout=rollout)))
    assert left_out == {
        f"rollout/{name}" for name in ("ep_len_mean", "ep_rew_mean", "ep_queries_mean", "wait_fraction")
    }


@pytest.mark.parametrize(("package", "place"), [("tensorboard", tensorboard), ("wandb", wandb)])
def test_a_missing_package_is_named_with_its_extra(package: str, place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"{package} is not installed.*letitcook\[tracking\]"), place("somewhere"):
        pytest.fail("it began all the same")


def test_a_folder_is_not_taken_for_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "not_a_package").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingError, match="not_a_package is not installed"):
        _needed("not_a_package")


def test_a_package_that_is_broken_says_so_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_tracker.py").write_text("import something_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_that_is_missing"):
        _needed("broken_tracker")


class FakeRun:
    """Keeps what a run of Weights & Biases is told."""

    def __init__(self, begun: dict[str, Any]) -> None:
        self.begun, self.exit = begun, "running"
        self.config: dict[str, Any] = {}
        self.logged: list[Any] = []

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.logged.append((step, numbers))

    def __enter__(self) -> FakeRun:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.exit = "finished" if kind is None else "failed"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FakeRun]:
    """Stand in for the package, which would begin processes of its own."""
    begun: list[FakeRun] = []

    def init(project: str, name: str | None, settings: dict[str, Any]) -> FakeRun:
        if project == "forbidden":
            raise RuntimeError("no API key")
        begun.append(FakeRun({"project": project, "name": name, "settings": settings}))
        return begun[-1]

    package = ModuleType("wandb")
    package.__file__ = "wandb.py"
    package.init, package.Settings, package.Error = init, dict, RuntimeError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", package)
    return begun


def test_weights_and_biases_gets_the_settings_once_and_every_number(runs: list[FakeRun]) -> None:
    with wandb("waiting", "cook seed 0") as callback:
        callback(POINT, Run())
        callback(POINT._replace(step=30_000), Run(seconds=6.0))
    (run,) = runs
    assert run.begun == {"project": "waiting", "name": "cook seed 0", "settings": {"console": "off"}}
    assert run.config == SCRATCH.data()
    assert [step for step, _ in run.logged] == [20_000, 30_000]
    assert run.logged[1][1] == scalars(POINT._replace(step=30_000), Run(seconds=6.0))
    assert run.exit == "finished"


def test_a_run_that_breaks_is_marked_as_failed(runs: list[FakeRun]) -> None:
    with pytest.raises(ZeroDivisionError), wandb("waiting"):
        raise ZeroDivisionError
    assert runs[0].exit == "failed"


def test_not_logged_in(runs: list[FakeRun]) -> None:
    with pytest.raises(SettingError, match=r"did not start \(no API key\).*WANDB_MODE=offline"), wandb("forbidden"):
        pytest.fail("it began all the same")


def test_one_callback_serves_what_was_asked_for(runs: list[FakeRun]) -> None:
    with track("cook/lexicographic/scratch/seed0", wandb_project="waiting") as callback:
        assert callback is not None
        callback(POINT, Run())
    (run,) = runs
    assert run.begun["name"] == "cook/lexicographic/scratch/seed0"
    assert run.logged == [(20_000, scalars(POINT, Run()))]
    with track("cook/lexicographic/scratch/seed0") as callback:
        assert callback is None
