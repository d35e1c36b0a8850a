"""The exact Pareto front of a finite waiting MDP: every trade of length for queries that no other one beats.

In a deterministic world with one start, in which every primitive step costs 1, an episode is a path, and its return is
`(-length, -queries)`. With `L_q(s)` the fewest primitive steps from state `s` to the end with at most `q` queries::

    L_0(s) = ∞,   L_q(s) = min over decisions u of  elapsed(s, u) + L_{q-1}(s'),   L(end) = 0

where a wait that meets the end is over there. The points are the `(L_q(start), q)` with `L_q < L_{q-1}` and `L_q < H`.

Beside them there are the episodes that last until the horizon. They are all `H` steps long, and none of them has fewer
than `⌈H / longest wait⌉` queries. Waiting and nothing else has exactly as many, unless it meets the end before `H`, and
then it beats them all. So `(H, ⌈H / longest wait⌉)` is the only further point there can be.

With a discount the return depends on when queries are made as well. With `E_k(s)` the best discounted waiting return
from state `s` if the episode ends after exactly `k` more steps::

    E_0(end) = 0,   E_k(s) = max over decisions u of  -1 + γ^elapsed E_{k - elapsed}(s')

and the same for episodes that are truncated at the horizon, every length gives one candidate point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from letitcook.core.decisions import Decisions
from letitcook.errors import FinitenessError, SettingError
from letitcook.finite.tables import STATE_LIMIT, Tables, enumerate_env
from letitcook.wrappers import waiting
from letitcook.wrappers.waiting import check_gamma, horizon_of, waiting_env_of

NEVER = np.iinfo(np.int64).max // 2
"""Steps to the end from where it cannot be reached; adding a wait to it does not overflow."""


class FrontPoint(NamedTuple):
    """A pair that no episode beats in one number without losing in the other.

    >>> from letitcook import make
    >>> pareto_front(make("cook"))[0]
    FrontPoint(length=33, queries=25)
    """

    length: int
    """Primitive steps."""
    queries: int
    """Queries of the policy, `-J1`."""


def pareto_front(
    waiting_env: gym.Env[Any, Any], horizon: int | None = None, limit: int = STATE_LIMIT
) -> list[FrontPoint]:
    """Return the non-dominated pairs of length and queries of a deterministic waiting environment, shortest first.

    The first point is the lexicographic optimum, and the optimum for a λ is the point with the least
    `length + λ queries`. `horizon` counts primitive steps and defaults to the environment's own time limit.

    >>> from letitcook import make
    >>> [tuple(point) for point in pareto_front(make("cook"))]
    [(33, 25), (37, 23), (200, 14)]
    """
    env = waiting_env_of(waiting_env)
    steps = horizon_of(env) if horizon is None else horizon
    if steps is None:
        raise SettingError("this environment has no time limit of its own; give a horizon in primitive steps")
    return front_tables(enumerate_env(env, limit), env.decisions, steps)


def return_front(waiting_env: gym.Env[Any, Any], gamma: float = 1.0) -> list[NDArray[np.float64]]:
    """Return the non-dominated returns `(J0, J1)`, discounted by `γ` a primitive step, the best task return first.

    This is `pareto_front` in MO-Gymnasium's form, and what `env.pareto_front(gamma)` gives.

    >>> from letitcook import make
    >>> [point.tolist() for point in make("cook").pareto_front(gamma=1.0)]
    [[-33.0, -25.0], [-37.0, -23.0], [-200.0, -14.0]]
    """
    env = waiting_env_of(waiting_env)
    check_gamma(gamma)
    if gamma == 1.0:
        return [np.array([-float(length), -float(queries)]) for length, queries in pareto_front(env)]
    horizon = horizon_of(env)
    if horizon is None:
        raise SettingError("this environment has no time limit of its own; make it with max_episode_steps=...")
    return discounted_front_tables(enumerate_env(env), env.decisions, horizon, gamma)


def discounted_front_tables(
    tables: Tables, decisions: Decisions, horizon: int, gamma: float
) -> list[NDArray[np.float64]]:
    """Return the non-dominated discounted returns `(J0, J1)` of transition tables, the best task return first."""
    _check(tables, horizon)
    following, elapsed = _carried_out(tables, decisions)
    start, states = int(tables.start_state[0]), np.arange(tables.n_states)
    kept = max((1, *decisions.durations)) + 1
    ended, going = (np.full((kept, tables.n_states + 1), -np.inf) for _ in range(2))
    ended[0, tables.end] = 0.0
    going[0, states] = 0.0
    found = []
    for k in range(1, horizon + 1):
        before, inside = (k - elapsed) % kept, elapsed <= k
        worth = gamma**elapsed
        ended[k % kept, states] = np.where(inside, -1.0 + worth * ended[before, following], -np.inf).max(axis=1)
        on = np.where(inside, -1.0 + worth * going[before, following], -1.0)
        going[k % kept, states] = on.max(axis=1)
        ended[k % kept, tables.end] = going[k % kept, tables.end] = -np.inf
        found.append((-(1.0 - gamma**k) / (1.0 - gamma), float(ended[k % kept, start])))
    found.append((found[-1][0], float(going[horizon % kept, start])))
    front: list[NDArray[np.float64]] = []
    for task, queries in sorted(found, reverse=True):
        if queries > -np.inf and (not front or queries > front[-1][1] + 1e-12):
            front.append(np.array([task, queries]))
    return front


def front_tables(tables: Tables, decisions: Decisions, horizon: int) -> list[FrontPoint]:
    """Return the non-dominated pairs of length and queries of transition tables, shortest first.

    >>> from letitcook import make
    >>> env = make("cook-longer", mode="wrap")
    >>> front_tables(enumerate_env(env), env.decisions, horizon=200)
    [FrontPoint(length=71, queries=39), FrontPoint(length=200, queries=14)]
    """
    _check(tables, horizon)
    following, elapsed = _carried_out(tables, decisions)
    start = int(tables.start_state[0])
    points: list[FrontPoint] = []
    steps = np.full(tables.n_states + 1, NEVER)
    steps[tables.end] = 0
    for queries in range(1, horizon + 1):  # a query takes a step at least
        fewer = np.append((elapsed + steps[following]).min(axis=1), 0)
        np.minimum(fewer, NEVER, out=fewer)
        if np.array_equal(fewer, steps):
            break
        if fewer[start] < min(steps[start], horizon):
            points.append(FrontPoint(int(fewer[start]), queries))
        steps = fewer
    longest = max(decisions.durations, default=1)
    cut = FrontPoint(horizon, -(-horizon // longest))
    if not points or cut.queries < points[0].queries:
        points.insert(0, cut)
    return points[::-1]


def _check(tables: Tables, horizon: int) -> None:
    if horizon < 1:
        raise SettingError(f"horizon = {horizon} is not allowed; give at least 1 primitive step")
    if not tables.fully_observed:
        raise FinitenessError(
            "different states of this environment look the same to a policy, so it could not follow the paths of the "
            "front; take the environment with nothing hidden"
        )
    if not tables.deterministic or len(tables.start_state) > 1:
        what = "starts" if tables.deterministic else "outcomes"
        raise FinitenessError(
            f"the {what} of this environment are random, and the front is that of single episodes; "
            "plan() gives the optimum in expectation for each λ"
        )
    if not (tables.reward == -1.0).all():
        other = float(tables.reward[tables.reward != -1.0][0])
        raise FinitenessError(
            f"a primitive step of this environment is rewarded with {other:g}, and the front is that of length and "
            "queries, where every step costs 1; plan() gives the optimum for each λ"
        )


def _carried_out(tables: Tables, decisions: Decisions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the state after each decision and the steps that pass until then, both `(S, decisions)`."""
    primitive = tables.next_state.reshape(tables.n_states, tables.n_actions)
    following = np.empty((tables.n_states, decisions.n), dtype=np.int64)
    elapsed = np.ones_like(following)
    following[:, : tables.n_actions] = primitive
    waited = np.append(primitive[:, decisions.wait], tables.end)  # the end stays the end
    place, passed = np.arange(tables.n_states), np.zeros(tables.n_states, dtype=np.int64)
    for step in range(1, max(decisions.durations, default=0) + 1):
        passed += place != tables.end
        place = waited[place]
        if step in decisions.durations:
            u = len(decisions.actions) + decisions.durations.index(step)
            following[:, u], elapsed[:, u] = place, passed
    return following, elapsed


waiting.solve_front = return_front
