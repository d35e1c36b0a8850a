"""Make the pictures of the README and the docs: `make pictures`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from letitcook import Episode, WaitingEnv, interleave, make, plan, rollout, task_named
from letitcook.experiments.suites import paper_rows
from letitcook.finite.belief import BeliefPolicy

IMAGES = Path(__file__).parent / "images"
ACT, WAIT, WORK, INK, BEST, GREY = "#4c78a8", "#f2b134", "#59a14f", "#333333", "#d62728", "#999999"
PAPERS = {"lexicographic": ("*", WAIT), "scalar": ("o", GREY), "vanilla": ("s", WORK)}
"""Shape and colour of the paper's methods."""


def frames(times: list[int]) -> list[np.ndarray]:
    """Return the kitchen at some times of the optimal episode."""
    env = make("cook", render_mode="rgb_array")
    env.reset(seed=0)
    best = plan(env)
    pictures = {0: env.render()}
    t = 0
    for u in best.decisions:
        for _ in range(int(env.decisions.durations_of[u])):
            env.act(int(env.decisions.actions_of[u]))
            t += 1
            pictures[t] = env.render()
    return [np.asarray(pictures[time]) for time in times]


def timeline(axis: plt.Axes, y: float, episode: Episode, fills: dict[int, str], label: str) -> None:
    """Draw an episode as a bar: a cell for each decision, a tick for each query."""
    t = 0
    for elapsed in episode.elapsed:
        colour = WORK if t in fills else WAIT if elapsed > 1 else ACT
        axis.add_patch(Rectangle((t, y), elapsed, 0.62, facecolor=colour, edgecolor="white", linewidth=0.8))
        if elapsed > 1:
            text = fills.get(t, f"wait {elapsed}")
            axis.text(t + elapsed / 2, y + 0.31, text, ha="center", va="center", fontsize=8.5, color=INK)
        t += elapsed
    axis.text(-0.6, y + 0.31, label, ha="right", va="center", fontsize=9.5, color=INK)
    axis.text(
        t + 0.6, y + 0.31, f"{t} steps, {episode.queries} queries", ha="left", va="center", fontsize=9.5, color=INK
    )


def main() -> None:
    """Draw all pictures."""
    kitchen()
    limits()
    hidden_clock()


LIMITS = {
    "cartpole": [(14.8, 200.0)],
    "mountain-car": [(89.6, 98.65), (94.7, 97.7)],
    "pong": [(23.1, 94.005), (25.1, 94.0)],
}
"""The best that is known, (queries, length): by beam search, by long training, and by dynamic programming."""
FAITHFUL = {
    ("cartpole", "scratch"): (33.7, 6.7, 199.66, 0.33),
    ("cartpole", "wrap"): (57.3, 21.2, 199.94, 0.10),
    ("mountain-car", "scratch"): (96.6, 8.0, 103.7, 2.3),
    ("mountain-car", "wrap"): (97.2, 3.2, 104.1, 5.3),
    ("pong", "scratch"): (29.3, 1.3, 94.29, 0.39),
    ("pong", "wrap"): (27.5, 4.1, 94.21, 0.17),
}
"""Preset `paper`, a million steps, three seeds: queries and length with their spreads, from fidelity.md."""
SPANS = {
    "cartpole": ((0.0, 205.0), (198.5, 200.3)),
    "mountain-car": ((84.0, 106.0), (97.0, 109.0)),
    "pong": ((15.0, 97.0), (93.8, 97.0)),
}
"""What is shown: the range of queries, and of lengths."""


def limits() -> None:
    """Draw length against queries for every method on each task with networks, with the best that is known."""
    with (Path(__file__).parent / "limit.csv").open() as file:
        seeds = list(csv.DictReader(file))
    figure, panels = plt.subplots(2, 3, figsize=(10.4, 6.4), facecolor="white", layout="constrained")
    for line, mode in zip(panels, ("scratch", "wrap"), strict=True):
        for axis, (name, known) in zip(line, LIMITS.items(), strict=True):
            for paper in paper_rows().values():
                if (paper.row.task, paper.row.mode) == (name, mode):
                    shape, ink = PAPERS[paper.row.method]
                    axis.plot(paper.queries, paper.length, shape, mfc="none", mec=ink, ms=10 if shape == "*" else 5)
            x, x_sd, y, y_sd = FAITHFUL[name, mode]
            axis.errorbar(x, y, y_sd, x_sd, fmt="D", color=ACT, ms=5, lw=1)
            of = [row for row in seeds if (row["task"], row["mode"]) == (name, mode)]
            x_all, y_all = [float(row["queries"]) for row in of], [float(row["length"]) for row in of]
            axis.plot(x_all, y_all, ".", color=BEST, ms=6, alpha=0.6)
            axis.plot(np.mean(x_all), np.mean(y_all), "*", color=BEST, ms=14, mec="white", mew=0.8)
            axis.plot(*zip(*known, strict=True), "+-", color=INK, ms=11, mew=1.8, lw=0.8)
            axis.set_xlim(*SPANS[name][0])
            axis.set_ylim(*SPANS[name][1])
            axis.set_title(f"{name}, {'from scratch' if mode == 'scratch' else 'around a vanilla policy'}", fontsize=10)
            axis.set_xlabel("queries")
            axis.grid(alpha=0.25)
            axis.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("length (steps)")
    keys = [
        Line2D([], [], ls="", marker="+", color=INK, ms=10, mew=1.8, label="best known from scratch"),
        Line2D([], [], ls="", marker="*", color=BEST, ms=12, label="preset best, 120k to 170k steps (a dot: a seed)"),
        Line2D([], [], ls="", marker="D", color=ACT, ms=5, label="preset paper, 1M steps"),
        Line2D([], [], ls="", marker="*", mfc="none", color=WAIT, ms=10, label="the paper's LDQN"),
        Line2D([], [], ls="", marker="o", mfc="none", color=GREY, ms=5, label="the paper's scalarised DQN, each λ"),
        Line2D([], [], ls="", marker="s", mfc="none", color=WORK, ms=6, label="the paper's vanilla DQN"),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(IMAGES / "limits.png", dpi=130)
    print(f"wrote {IMAGES / 'limits.png'}")


def kitchen() -> None:
    """Draw the kitchen over timelines of Cook and Coffee."""
    times = [0, 14, 20, 25, 31]
    captions = ["start", "third onion in: it cooks", "dish fetched", "standing still", "soup taken"]
    figure = plt.figure(figsize=(10.4, 5.6), facecolor="white")
    for i, (picture, caption) in enumerate(zip(frames(times), captions, strict=True)):
        axis = figure.add_axes((0.015 + 0.197 * i, 0.56, 0.182, 0.36))
        axis.imshow(picture)
        axis.set_title(f"step {times[i]}: {caption}", fontsize=9, color=INK)
        axis.axis("off")
    axis = figure.add_axes((0.0, 0.0, 1.0, 0.53))
    cook, coffee = make("cook"), make("coffee", mode="wrap")
    asked = rollout(cook, plan(make("cook"), objective="task").policy)
    timeline(axis, 3.3, asked, {}, "Cook, asked at every step")
    timeline(axis, 2.4, rollout(cook, plan(cook).policy), {}, "Cook, knows when to wait")
    policy = plan(coffee).policy
    timeline(axis, 1.3, rollout(coffee, policy), {}, "Coffee, around a policy")
    auxiliary = task_named("coffee").auxiliary
    assert auxiliary is not None
    episode = interleave(coffee, policy, auxiliary())
    fills = {fill.time: fill.task for fill in episode.fills}
    timeline(axis, 0.4, episode, fills, "... other work in its waits")
    axis.set_xlim(-15.5, 70)
    axis.set_ylim(0, 4.3)
    axis.axis("off")
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / "waiting.png", dpi=130)
    print(f"wrote {IMAGES / 'waiting.png'}")


TIMES = (14, 16, 18, 20, 22)
"""Cook times of which one is drawn, in the picture of a hidden clock."""


def left_of(policy: BeliefPolicy, state: Any) -> list[tuple[int, float]]:
    """Return the steps that may be left, and how likely they are."""
    believed: list[tuple[float, Any]] = policy.belief(state)
    return [(kitchen.left, p) for p, kitchen in believed]


def length_of(env: WaitingEnv, policy: BeliefPolicy, seed: int) -> int:
    """Return the steps of an episode."""
    return rollout(env, policy, seed).length


def hidden_clock(cook_time: int = 20) -> None:
    """Draw an episode of the best cook that cannot see the clock, and what it believes at each decision."""
    env = make("cook", hidden=True, cook_time=TIMES)
    policy = plan(env).policy
    assert isinstance(policy, BeliefPolicy)
    seed = next(seed for seed in range(100) if length_of(env, policy, seed) == cook_time + 15)
    observation, _ = env.reset(seed=seed)
    state, time, over = None, 0, False
    decisions, beliefs, truth = [], [], []
    while not over:
        decision, state = policy.predict(observation, state)
        beliefs.append((time, {left: p for left, p in left_of(policy, state) if left}))
        inside: Any = env.unwrapped
        truth.append((time, inside.state.left))
        observation, _, terminated, truncated, info = env.step(decision)
        decisions.append((time, info["elapsed"], env.decisions.label(decision)))
        time, over = time + info["elapsed"], terminated or truncated
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(10.4, 4.6), facecolor="white", sharex=True, height_ratios=(1, 3), layout="constrained"
    )
    for t, elapsed, label in decisions:
        colour = WAIT if elapsed > 1 else ACT
        above.add_patch(Rectangle((t, 0), elapsed, 1, facecolor=colour, edgecolor="white", linewidth=0.8))
        above.text(
            t + elapsed / 2,
            0.5,
            label,
            ha="center",
            va="center",
            fontsize=7,
            color="white" if elapsed == 1 else INK,
            rotation=0 if elapsed > 1 else 90,
        )
    above.set_ylim(0, 1)
    above.set_yticks([])
    above.set_title(
        f"Cook, clock hidden, cook time one of {', '.join(map(str, TIMES))}: {time} steps, {len(decisions)} queries",
        fontsize=10,
        color=INK,
    )
    for t, believed in beliefs:
        for left, p in believed.items():
            below.add_patch(
                Rectangle((t + 0.08, left - 0.42), 0.84, 0.84, facecolor=WAIT, alpha=0.15 + 0.85 * p, linewidth=0)
            )
    cooking = [(t, left) for t, left in truth if left]
    below.plot([t + 0.5 for t, _ in cooking], [left for _, left in cooking], ".", color=BEST, ms=4)
    below.set_ylim(0, max(TIMES))
    below.set_xlim(0, time)
    below.set_yticks(range(0, max(TIMES), 5))
    below.set_ylabel("steps until the soup is done")
    below.set_xlabel("primitive step")
    for axis in (above, below):
        axis.spines[["top", "right"]].set_visible(False)
    keys = [
        Rectangle((0, 0), 1, 1, facecolor=WAIT, label="believed when a decision is due; the darker, the likelier"),
        Line2D([], [], ls="", marker=".", color=BEST, ms=7, label="true, unseen"),
    ]
    below.legend(handles=keys, frameon=False, fontsize=9, loc="upper right")
    figure.savefig(IMAGES / "hidden.png", dpi=130)
    print(f"wrote {IMAGES / 'hidden.png'}")


if __name__ == "__main__":
    main()
