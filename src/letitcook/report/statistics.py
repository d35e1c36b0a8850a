"""What several seeds say: means, intervals, the best λ, and how ours stands to the paper's.

A seed is the unit: everything here is computed from one number a seed (itself a mean over that run's evaluation
episodes), never from episodes pooled over seeds. The same data give the same numbers to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from letitcook.core.objective import lex_argmax
from letitcook.errors import SettingError
from letitcook.experiments.results import ROW
from letitcook.experiments.suites import PaperRow
from letitcook.tasks import task_named

RESAMPLES = 9_999
SWEEP = (0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0)
"""The λ among which the paper chooses the best one; its further ones are in its appendix only."""
PRECISION = 0.001
"""Returns and queries that are nearer count as equal: the last digit of the paper's tables, and its slack σ."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, with its spread and its uncertainty."""

    mean: float
    sd: float
    """Standard deviation over seeds (n - 1); 0 for a single one."""
    low: float
    high: float
    """95% interval of the mean."""
    n: int
    """Seeds."""


def estimate(values: ArrayLike, confidence: float = 0.95, resamples: int = RESAMPLES) -> Estimate:
    """Return mean, standard deviation and percentile bootstrap interval of one number a seed.

    Seeds are drawn with replacement, as in rliable's `get_interval_estimates` with a single task. Of one seed, or of
    seeds that all agree, the interval is the value itself.

    >>> estimate([33.0, 33.0, 33.0])
    Estimate(mean=33.0, sd=0.0, low=33.0, high=33.0, n=3)
    >>> e = estimate([25.0, 25.0, 29.0, 25.0])
    >>> e.mean, e.sd, e.low, e.high
    (26.0, 2.0, 25.0, 28.0)
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or len(data) == 0:
        raise SettingError(f"statistics need one number a seed and at least one seed, got shape {data.shape}")
    mean = float(data.mean())
    if len(data) == 1 or np.ptp(data) == 0.0:
        return Estimate(float(data[0]), 0.0, float(data[0]), float(data[0]), len(data))
    low, high = bootstrap_interval(data[:, None], confidence, resamples)[:, 0]
    return Estimate(mean, float(data.std(ddof=1)), float(low), float(high), len(data))


def bootstrap_interval(
    values: NDArray[np.float64], confidence: float = 0.95, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Return the low and the high end `(2, m)` of the mean over seeds of each column of `values`, `(seeds, m)`.

    >>> bootstrap_interval(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[1.0, 5.0], [3.0, 5.0]]
    """
    from scipy import stats  # it takes long to load, and most commands do without

    if len(values) == 1:
        return np.concatenate([values, values])
    found = stats.bootstrap(
        (values,),
        np.mean,
        axis=0,
        method="percentile",
        confidence_level=confidence,
        n_resamples=resamples,
        batch=max(1, 4_000_000 // values.size),  # at most this many numbers at once
        rng=np.random.default_rng(0),
    ).confidence_interval
    return np.stack([found.low, found.high])


def summaries(runs: pl.DataFrame) -> pl.DataFrame:
    """Return one line a row of results: its columns, `seeds`, and of each measure mean, sd and the 95% interval.

    Measures are length, queries and task_return; their columns are `length_mean`, `length_sd`, `length_low`,
    `length_high`, and so on. Rows come in the order in which they first appear.

    >>> runs = pl.DataFrame({
    ...     "task": ["cook"] * 2, "mode": ["scratch"] * 2, "method": ["vanilla"] * 2, "lambda": [None] * 2,
    ...     "variant": [""] * 2, "length": [33.0, 35.0], "queries": [33.0, 35.0], "task_return": [-33.0, -35.0]})
    >>> summaries(runs).select("task", "seeds", "length_mean", "length_low", "task_return_high").row(0)
    ('cook', 2, 34.0, 33.0, -33.0)
    """
    lines = []
    for key, group in runs.group_by(ROW, maintain_order=True):
        line = dict(zip(ROW, key, strict=True)) | {"seeds": group.height}
        for measure in ("length", "queries", "task_return"):
            e = estimate(group[measure].to_numpy())
            line |= {f"{measure}_{name}": getattr(e, name) for name in ("mean", "sd", "low", "high")}
        lines.append(line)
    return pl.DataFrame(lines, schema_overrides={"lambda": pl.Float64}, infer_schema_length=None)


def best_lambda(
    returns: Mapping[float, tuple[float, float]], among: Sequence[float] | None = SWEEP, slack: float = 0.0
) -> float | None:
    """Return the λ that the paper would report as the best scalarised one; None where there is none.

    The paper reports "the result of the best λ value with respect to" its objective, which compares the pair
    `(J0, J1)` lexicographically: the λ whose mean task return over seeds is the highest, and of several that have the
    same, the one with the fewest queries. It is a strict order of the means, so a return that is better by a hair
    wins whatever it costs in queries, and λ = 0 wins where every wait costs a little. The λ are those of the sweep in
    the paper's experiments section (`SWEEP`), not the further ones of its appendix; `among=None` takes all.

    `returns` holds the means `(J0, J1)` of each λ. Equal pairs go to the smallest λ. A `slack` above 0, in return,
    takes the fewest queries among all that are within it of the best return; the paper has none.

    >>> best_lambda({0.0: (-94.0, -83.9), 1.0: (-94.2, -26.5), 100.0: (-90.0, -8.2)})
    0.0
    >>> best_lambda({0.0: (-94.0, -83.9), 1.0: (-94.2, -26.5)}, slack=0.5)
    1.0
    """
    candidates = sorted(lam for lam in returns if among is None or lam in among)
    if not candidates:
        return None
    return candidates[lex_argmax(np.array([returns[lam] for lam in candidates]).T, slack)]


def probability_as_good(
    lengths: ArrayLike, queries: ArrayLike, paper: PaperRow, resamples: int = RESAMPLES, precision: float = PRECISION
) -> float:
    """Return the probability that ours is at least as good as the paper's: task return first, then queries.

    Both are means over endlessly many seeds, of which some were seen. Of the paper's only mean, standard deviation and
    number are known, so this rests on a model of them:

    - ours: means of length and queries drawn together by the bootstrap over seeds, as in `estimate`, which is too sure
      of itself where seeds are few; a single seed is taken at its word;
    - the paper's: `mean + sd / √n · t`, with `t` of Student's distribution with `n - 1` degrees of freedom (the usual
      posterior of a normal mean); just the mean where its sd is 0. Length and queries are drawn independently, since
      their correlation is not known;
    - ours is at least as good if its return is better, or equal with no more queries. Nearer than `precision` is
      equal: the paper prints three decimals, and its own slack σ is as large.

    The paper's part is integrated exactly, ours by resampling.

    >>> from letitcook.experiments.suites import Row, paper_rows
    >>> paper = paper_rows()[Row("cook-longer", "scratch", "lexicographic")]
    >>> paper.length, paper.queries
    (51.0, 33.8)
    >>> probability_as_good([51.0] * 10, [29.0] * 10, paper) > 0.99, probability_as_good([52.0], [24.0], paper)
    (True, 0.0)
    """
    ours = np.stack([np.asarray(lengths, dtype=np.float64), np.asarray(queries, dtype=np.float64)])
    if ours.ndim != 2 or ours.shape[1] == 0:
        raise SettingError(f"statistics need one number a seed and at least one seed, got shape {ours.shape[1:]}")
    drawn = np.random.default_rng(0).integers(ours.shape[1], size=(resamples, ours.shape[1]))
    length, asked = ours[:, drawn].mean(axis=2)
    towards = task_named(paper.row.task).return_per_step
    shorter, longer = length - precision, length + precision
    paper_shorter = _below(shorter, paper.length, paper.length_sd, paper.seeds)
    paper_longer = 1.0 - _below(longer, paper.length, paper.length_sd, paper.seeds, or_equal=True)
    equal = 1.0 - paper_shorter - paper_longer
    no_more = 1.0 - _below(asked - precision, paper.queries, paper.queries_sd, paper.seeds)
    better = paper_longer if towards < 0.0 else paper_shorter
    return float((better + equal * no_more).mean())


def _below(x: NDArray[np.float64], mean: float, sd: float, n: int, or_equal: bool = False) -> NDArray[np.float64]:
    """Return the probability that the paper's mean is below `x`."""
    from scipy import stats

    if sd == 0.0 or n < 2:
        return np.asarray(mean <= x if or_equal else mean < x, dtype=np.float64)
    return np.asarray(stats.t.cdf((x - mean) / (sd / np.sqrt(n)), n - 1), dtype=np.float64)
