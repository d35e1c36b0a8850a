"""Make the pictures of the README and the docs: `make pictures`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from letitcook import Episode, interleave, make, plan, rollout, task_named

IMAGES = Path(__file__).parent / "images"
ACT, WAIT, WORK, INK = "#4c78a8", "#f2b134", "#59a14f", "#333333"


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


if __name__ == "__main__":
    main()
