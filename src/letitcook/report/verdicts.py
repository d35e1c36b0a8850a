"""How a row of ours stands beside the paper's, in one word.

Two numbers are *near* if they differ by at most one step (query) or 2 % of the paper's, whichever is more. A row is

- `same` if length and queries are both near the paper's;
- `overlap` if they are not, but mean ± one standard deviation of both overlaps with the paper's in both numbers;
- `better` or `worse` by what the row itself optimises: task return and then queries (lexicographic), task return - λ
  queries (scalar), task return (vanilla);
- `other` if by that it is as good: another trade-off of the same value, as everything is in queries at λ = 0.

Nothing in this depends on how many seeds were run: fewer seeds never make it easier to be the same.
"""

from __future__ import annotations

from letitcook.envs import task_named
from letitcook.report.compare import Comparison

VERDICTS = {
    "same": ("=", "as in the paper", "length and queries are both within one step or 2 % of the paper's"),
    "overlap": ("≈", "spreads overlap", "means differ, but mean ± one standard deviation overlaps in both numbers"),
    "better": ("▲", "ours is better", "by what the row itself optimises"),
    "other": ("◆", "other trade-off", "length or queries differ, and by what the row optimises neither is better"),
    "worse": ("▼", "ours is worse", "by what the row itself optimises"),
    "new": ("+", "not in the paper", "the paper reports no such row"),
}
"""Sign, words and explanation of each verdict; the sign carries what the colour does."""


def near(ours: float, paper: float) -> bool:
    """Say whether a number is within one step or 2 % of the paper's.

    >>> near(33.0, 33.9), near(33.0, 34.5), near(197.0, 200.0)
    (True, False, True)
    """
    return abs(ours - paper) <= max(1.0, 0.02 * abs(paper))


def verdict(c: Comparison) -> str:
    """Return the verdict on a row, a key of `VERDICTS`."""
    paper = c.paper
    if paper is None:
        return "new"
    if near(c.length, paper.length) and near(c.queries, paper.queries):
        return "same"
    if _overlap(c.length, c.length_sd, paper.length, paper.length_sd) and _overlap(
        c.queries, c.queries_sd, paper.queries, paper.queries_sd
    ):
        return "overlap"
    ours = values(c.row.method, c.row.lam, c.row.task, c.length, c.queries)
    theirs = values(c.row.method, c.row.lam, c.row.task, paper.length, paper.queries)
    for mine, other in zip(ours, theirs, strict=True):
        if not near(mine, other):
            return "better" if mine > other else "worse"
    return "other"


def values(method: str, lam: float | None, task: str, length: float, queries: float) -> tuple[float, ...]:
    """Return what a row optimises, the most important first; more is better.

    >>> values("lexicographic", None, "cook", 33.0, 25.0), values("scalar", 0.5, "cook", 33.0, 25.0)
    ((-33.0, -25.0), (-45.5,))
    """
    task_return = task_named(task).return_per_step * length
    if method == "scalar":
        return (task_return - (lam or 0.0) * queries,)
    return (task_return, -queries) if method == "lexicographic" else (task_return,)


def at_optimum(c: Comparison) -> bool:
    """Say whether every seed of a row reached the exact optimum."""
    if c.exact is None or c.length != c.exact.length or c.length_sd != 0.0:
        return False
    return c.exact.queries is None or (c.queries == c.exact.queries and c.queries_sd == 0.0)


def _overlap(a: float, a_sd: float, b: float, b_sd: float) -> bool:
    """Say whether mean ± one standard deviation of two numbers overlap, or the numbers are near anyway."""
    return near(a, b) or abs(a - b) <= a_sd + b_sd
