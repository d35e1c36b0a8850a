"""Replay of durative transitions."""

from typing import Any

import numpy as np

from letitcook.core.jit import seeded
from letitcook.deep.replay import (
    FILLED,
    NONE,
    POSITION,
    draw,
    link,
    new_batch,
    new_replay,
    remember_intra_option,
)
from transitions import remember


def vector(*values: Any) -> Any:
    return np.array(values, dtype=np.float32)


def filled(rows: Any, n: int, **how: Any) -> Any:
    replay = new_replay(rows, 2)
    for i in range(n):
        args = {"terminated": False, "truncated": False, **how}
        remember(replay, vector(i, 0), i, -i, -1.0, 0.9, vector(i, 1), args["terminated"], args["truncated"])
    return replay


def test_the_ring_forgets_the_oldest() -> None:
    replay = filled(rows=5, n=7)
    assert replay.decision.tolist() == [5, 6, 2, 3, 4]
    assert (replay.cursor[POSITION], replay.cursor[FILLED]) == (2, 5)


def test_a_draw_returns_whole_rows_uniformly() -> None:
    replay, batch = filled(rows=10, n=4), new_batch(8000, 2)
    draw(replay, batch, 8000, 1, True, seeded(0))
    counts = np.bincount(batch.decision)
    assert len(counts) == 4
    assert np.abs(counts / 8000 - 0.25).max() < 0.03
    np.testing.assert_array_equal(batch.observation[:, 0], batch.decision)
    np.testing.assert_array_equal(batch.next_observation[:, 0], batch.decision)
    np.testing.assert_array_equal(batch.next_observation[:, 1], 1)
    np.testing.assert_array_equal(batch.reward, np.stack([-batch.decision, np.full(8000, -1)], axis=1))
    np.testing.assert_allclose(batch.discount, 0.9)


def test_what_comes_after_the_end_is_worth_nothing() -> None:
    for how, bootstrap, expected in (
        ({"terminated": True}, True, 0.0),
        ({"terminated": True}, False, 0.0),
        ({"truncated": True}, True, 0.9),
        ({"truncated": True}, False, 0.0),
    ):
        replay, batch = filled(4, 4, **how), new_batch(20, 2)
        draw(replay, batch, 20, 1, bootstrap, seeded(0))
        np.testing.assert_allclose(batch.discount, expected)


def two_episodes(rows: Any = 20, explored: Any = ()) -> Any:
    """Two episodes that take turns, of five decisions each: rewards 1, 2, 3, 4, 5 and ten times that."""
    replay, before = new_replay(rows, 1), [NONE, NONE]
    for i in range(5):
        for e in range(2):
            reward, ends = (i + 1) * 10**e, i == 4
            row = remember(replay, vector(i + 10 * e), i, reward, -1.0, 0.5, vector(i + 1 + 10 * e), ends, False)
            link(replay, row, before[e], e / 10, (e, i) in explored)
            before[e] = row
    return replay


def drawn(replay: Any, n_step: Any, n: int = 400) -> Any:
    """Return what is drawn for each first observation: task reward, waiting reward, discount, last observation."""
    batch = new_batch(n, 1)
    draw(replay, batch, n, n_step, True, seeded(0))
    columns = (batch.observation, batch.reward[:, 0], batch.reward[:, 1], batch.discount, batch.next_observation)
    return {first: tuple(rest) for first, *rest in np.column_stack(columns).tolist()}


def test_a_target_looks_ahead_along_its_own_episode_to_its_end() -> None:
    seen = drawn(two_episodes(), n_step=3)
    assert seen[0] == (1 + 0.5 * 2 + 0.25 * 3, -1.75, 0.125, 3)
    assert seen[10] == (10 + 0.5 * 20 + 0.25 * 30, -1.75, 0.125, 13)
    assert seen[3] == (4 + 0.5 * 5, -1.5, 0.0, 5)  # there are but two left
    assert seen[14] == (50, -1.0, 0.0, 15)


def test_a_row_has_the_trade_off_of_its_episode() -> None:
    replay, batch = two_episodes(), new_batch(200, 1)
    draw(replay, batch, 200, 3, True, seeded(0))
    assert set(batch.z[batch.observation[:, 0] < 10]) == {np.float32(0.0)}
    assert set(batch.z[batch.observation[:, 0] >= 10]) == {np.float32(0.1)}
    remember(replay, vector(99), 0, 0.0, -1.0, 0.5, vector(0), False, False)
    draw(replay, batch, 200, 1, True, seeded(0))
    assert np.isnan(batch.z[batch.observation[:, 0] == 99]).all()


def test_a_target_does_not_look_ahead_through_what_was_random() -> None:
    seen = drawn(two_episodes(explored={(0, 2), (1, 0)}), n_step=4)
    assert seen[0] == (1 + 0.5 * 2, -1.5, 0.25, 2)
    assert seen[2] == (3 + 0.5 * 4 + 0.25 * 5, -1.75, 0.0, 5)  # the first decision itself may be random
    assert seen[10][3] == 14


def test_rows_that_were_overwritten_are_not_looked_at() -> None:
    seen = drawn(two_episodes(rows=4), n_step=5)
    assert sorted(seen) == [3, 4, 13, 14]
    assert seen[3] == (4 + 0.5 * 5, -1.5, 0.0, 5)


def intra_option(elapsed: Any, planned: Any, terminated: Any, truncated: Any, n: int = 3000) -> Any:
    """Sub-waits of a wait through the states 0, 1, 2, ...; the reward of the step from i is i + 1."""
    replay, rng = new_replay(n, 1), seeded(1)
    path = np.arange(20, dtype=np.float32)[:, None]
    rewards = np.arange(1.0, 20.0)
    waits, durations = np.array([1, 3, 4]), np.array([1, 1, 1, 2, 4])
    for _ in range(n):
        remember_intra_option(
            replay, path, rewards, elapsed, planned, terminated, truncated, 0.5, waits, durations, rng
        )
    return [
        (int(replay.observation[i, 0]), int(replay.decision[i]), int(replay.next_observation[i, 0]), i)
        for i in range(replay.cursor[FILLED])
    ], replay


def test_intra_option_waits_are_all_the_shorter_waits_that_were_run() -> None:
    rows, replay = intra_option(elapsed=4, planned=4, terminated=False, truncated=False)
    lived = {(a, u, b) for a, u, b, _ in rows}
    ones = {(a, 1, a + 1) for a in range(4)}
    assert lived == ones | {(a, 3, a + 2) for a in range(3)} | {(0, 4, 4)}
    for a, _, b, i in rows:
        assert replay.discount[i] == np.float32(0.5 ** (b - a))
        assert np.isclose(replay.reward[i, 0], sum(0.5 ** (t - a) * (t + 1) for t in range(a, b)))
        assert replay.reward[i, 1] == -1.0
    assert not replay.terminated.any()
    assert not replay.truncated.any()


def test_an_end_shortens_intra_option_waits_and_does_not_change_which_are_drawn() -> None:
    rows, replay = intra_option(elapsed=3, planned=4, terminated=True, truncated=False)
    lived = {(a, u, b) for a, u, b, _ in rows}
    ones = {(a, 1, a + 1) for a in range(3)}
    assert lived == ones | {(0, 3, 2), (1, 3, 3), (2, 3, 3), (0, 4, 3)}
    for _, _, b, i in rows:
        assert replay.terminated[i] == (b == 3)
        assert not replay.truncated[i]
    rows, replay = intra_option(elapsed=3, planned=3, terminated=False, truncated=True)
    assert {(a, u, b) for a, u, b, _ in rows} == ones | {(0, 3, 2), (1, 3, 3)}
    for _, _, b, i in rows:
        assert replay.truncated[i] == (b == 3)
        assert not replay.terminated[i]
