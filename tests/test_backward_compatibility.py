"""Files of older versions keep loading, or say what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from letitcook import evaluate, load, make
from letitcook.cli.evaluate import env_of
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import FileFormatError, SettingError, SuiteError
from letitcook.experiments.suite_file import parse_suite
from letitcook.finite.settings import QSettings
from letitcook.storage.setting_values import with_overrides

ARTIFACTS = Path(__file__).parent / "artifacts"
V01 = ARTIFACTS / "v0.1"
UNCHECKED = ARTIFACTS / "v0.2-without-checksums"


def test_a_table_of_version_0_1() -> None:
    run = load(V01 / "table-wrapper")
    assert run.info.settings == QSettings(alpha=1.0, intra_option=True, backward_replay=True)
    assert (run.info.task, run.info.mode, run.info.seed, run.steps) == ("cook", "wrap", 1, 20_014)
    played = evaluate(make("cook", mode="wrap"), run.policy, episodes=1)
    assert (played.length, played.queries) == (run.length, run.queries)
    assert [point.decision for point in run.curve] == [0, 0], "decisions were not counted"


def test_networks_of_version_0_1() -> None:
    run = load(V01 / "network")
    assert isinstance(run.info.settings, LDQNSettings)
    assert (run.info.settings.intra_option, run.info.settings.hidden, run.info.lam) == (1, (8, 8), 0.5)
    played = evaluate(make("cartpole"), run.policy, episodes=300, seed=1)
    error = played.of("length").std() / np.sqrt(300)
    assert abs(played.length - run.length) < 5 * error + 1e-9


def test_a_family_of_version_0_1() -> None:
    run = load(V01 / "family")
    assert isinstance(run.info.settings, LDQNSettings)
    assert (run.info.settings.fourier_features, run.info.settings.log_lambda_range) == (2, (-2.0, 0.75))
    assert len(run.front) >= 1
    assert all(member.log_lambda is not None for member in run.front)


def test_a_wrapped_environment_of_version_0_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(V01)
    run = load(V01 / "wrapped")
    assert run.info.env_spec is not None
    assert (run.info.env_spec.env, run.info.env_spec.policy) == ("FrozenLake-v1", "ask:right_and_down")
    env = env_of(run, V01 / "wrapped")
    assert evaluate(env, run.policy, episodes=1).length == run.length


def test_a_stopped_run_of_version_0_1_says_what_to_do() -> None:
    with pytest.raises(FileFormatError, match="stopped by letitcook 0.1, .* cannot go on with it; train it anew"):
        load(V01 / "stopped")


@pytest.mark.parametrize("name", ["table", "family", "stopped-table", "stopped-network"])
def test_runs_without_checksums(name: str) -> None:
    run = load(UNCHECKED / name)
    assert run.finished == (not name.startswith("stopped"))
    assert len(run.curve) > 0
    assert len(run.front) > 0 or name != "family"


@pytest.mark.parametrize("kind", [QSettings, LDQNSettings])
def test_old_names_of_settings_name_the_new_one(kind: type[QSettings] | type[LDQNSettings]) -> None:
    for old, new in kind.RENAMED.items():
        with pytest.raises(SettingError, match=f"the setting '{old}' is now called '{new}'"):
            with_overrides(kind(), {old: 1})
        assert hasattr(kind(), new)
    with pytest.raises(SuiteError, match="the setting 'sub_waits' is now called 'intra_option'"):
        parse_suite("tasks = ['cook']\nsettings.sub_waits = true", "my.toml")
