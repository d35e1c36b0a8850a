"""Curves of a run under way, in TensorBoard and in Weights & Biases, by the same callback.

A callback is called after each evaluation with the evaluation and the run; if it returns False, the training ends
there, and the result is chosen among what was learned. The names are Stable-Baselines3's, so that curves of both stand
in one plot; what waiting adds has names in their manner::

    rollout/ep_len_mean, ep_rew_mean, ep_queries_mean    means over the training episodes that ended since the last call
    rollout/wait_fraction                                share of their primitive steps that was spent waiting
    rollout/exploration_rate                             ε
    eval/mean_ep_length, mean_reward, mean_queries       the evaluation; wrappers add eval/mean_base_queries
    eval/best_mean_ep_length, ...                        the best evaluation so far, by the method's own objective
    time/total_timesteps, time_elapsed, fps              primitive steps, seconds, steps per second
    train/learning_rate, n_updates, loss                 what the learner says of itself (the last two: networks)

Rewards are the task's, undiscounted. Both packages come with `pip install 'letitcook[tracking]'`, and are imported only
when they are used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from letitcook.errors import OutputError, SettingError
from letitcook.storage.folders import free_folder
from letitcook.training.run import Point, RunInfo


class Rollout(Protocol):
    """Sums over training episodes that have ended."""

    @property
    def episodes(self) -> float:
        """How many there were."""
        ...

    @property
    def length(self) -> float:
        """Primitive steps."""
        ...

    @property
    def queries(self) -> float:
        """Queries of the policy."""
        ...

    @property
    def task_return(self) -> float:
        """Task return, undiscounted."""
        ...

    @property
    def waited(self) -> float:
        """Primitive steps in waits, of one step or of more."""
        ...


class Tracked(Protocol):
    """What a callback sees of a run under way."""

    @property
    def info(self) -> RunInfo:
        """What the run is."""
        ...

    @property
    def best(self) -> Point | None:
        """The best evaluation so far."""
        ...

    @property
    def seconds(self) -> float:
        """Seconds of training and evaluation so far."""
        ...

    @property
    def rollout(self) -> Rollout | None:
        """The training episodes that ended since the evaluation before."""
        ...

    @property
    def rates(self) -> dict[str, float]:
        """What the learner says of itself, by Stable-Baselines3's names."""
        ...


class Callback(Protocol):
    """What is called after each evaluation of a run."""

    def __call__(self, point: Point, training: Tracked, /) -> bool | None:
        """Take note of an evaluation; False ends the training there, as in Stable-Baselines3."""
        ...


def scalars(point: Point, training: Tracked) -> dict[str, float]:
    """Return the numbers of one evaluation by their names.

    >>> from types import SimpleNamespace
    >>> info = SimpleNamespace(decisions=SimpleNamespace(has_base=False))
    >>> run = SimpleNamespace(info=info, best=None, seconds=2.0, rollout=None, rates={"train/learning_rate": 0.1})
    >>> numbers = scalars(Point(10_000, 8_000, -33.0, 33.0, 25.0, 0.0), run)
    >>> numbers["eval/mean_queries"], numbers["time/fps"]
    (25.0, 5000.0)
    """
    numbers = {
        **_rollout(training.rollout),
        **_evaluation("eval/mean", point, training.info),
        **_evaluation("eval/best_mean", training.best or point, training.info),
        "time/total_timesteps": float(point.step),
        "time/time_elapsed": training.seconds,
        **training.rates,
    }
    if training.seconds > 0.0:
        numbers["time/fps"] = point.step / training.seconds
    return numbers


def _rollout(ended: Rollout | None) -> dict[str, float]:
    if ended is None or ended.episodes == 0:
        return {}
    return {
        "rollout/ep_len_mean": ended.length / ended.episodes,
        "rollout/ep_rew_mean": ended.task_return / ended.episodes,
        "rollout/ep_queries_mean": ended.queries / ended.episodes,
        "rollout/wait_fraction": ended.waited / ended.length,
    }


def _evaluation(prefix: str, point: Point, info: RunInfo) -> dict[str, float]:
    numbers = {
        f"{prefix}_reward": point.task_return,
        f"{prefix}_ep_length": point.length,
        f"{prefix}_queries": point.queries,
    }
    if info.decisions.has_base:
        numbers[f"{prefix}_base_queries"] = point.base_queries
    return numbers


@contextmanager
def track(
    name: str, tensorboard_dir: Path | None = None, wandb_project: str | None = None, resumed: bool = False
) -> Iterator[Callback | None]:
    """Track a run of that name in TensorBoard, in Weights & Biases, in both, or not at all (then it gives None).

    TensorBoard's files go to the folder `tensorboard_dir/name`; if it is taken, and the run is not `resumed`, to
    `name-2` and so on.

    >>> with track("cook/lexicographic/scratch/seed0") as callback:
    ...     print(callback)
    None
    """
    callbacks: list[Callback] = []
    with ExitStack() as stack:
        if tensorboard_dir is not None:
            folder = tensorboard_dir / name
            callbacks.append(stack.enter_context(tensorboard(folder if resumed else free_folder(folder))))
        if wandb_project is not None:
            callbacks.append(stack.enter_context(wandb(wandb_project, name)))

        yield together(*callbacks)


def together(*callbacks: Callback | None) -> Callback | None:
    """Return one callback that calls all of them, and returns False if one of them does; None if there are none.

    >>> both = together(lambda point, training: None, None, lambda point, training: False)
    >>> both(None, None), together(None)
    (False, None)
    """
    given = [callback for callback in callbacks if callback is not None]

    def call(point: Point, training: Tracked) -> bool:
        answers = [callback(point, training) for callback in given]  # all are called
        return all(answer is not False for answer in answers)

    return call if given else None


@contextmanager
def tensorboard(folder: str | Path) -> Iterator[Callback]:
    """Write curves as TensorBoard's event files into a folder: `tensorboard --logdir FOLDER` shows them.

    Example: `with tensorboard("curves/cook") as callback: learn(env, callback=callback)`.
    """
    protos = _needed("tensorboard.compat.proto.event_pb2"), _needed("tensorboard.compat.proto.summary_pb2")
    try:
        writer = _needed("tensorboard.summary.writer.event_file_writer").EventFileWriter(str(folder), flush_secs=10)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}; choose another folder") from error
    begun = False

    def call(point: Point, training: Tracked) -> None:
        nonlocal begun
        values = [{"tag": tag, "simple_value": value} for tag, value in scalars(point, training).items()]
        if not begun:
            values.append(_text("run", training.info.data()))
            begun = True
        writer.add_event(_event(protos, values, point.step))

    try:
        yield call
    finally:
        writer.close()


def _event(protos: tuple[Any, Any], values: list[dict[str, Any]], step: int) -> Any:
    events, summaries = protos
    summary = summaries.Summary(value=[summaries.Summary.Value(**value) for value in values])
    return events.Event(wall_time=time.time(), step=step, summary=summary)


def _text(tag: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return a summary value that TensorBoard shows as text: Markdown, indented as code."""
    shown = "".join(f"    {line}\n" for line in json.dumps(about, indent=2, ensure_ascii=False).splitlines())
    return {
        "tag": f"{tag}/text_summary",
        "metadata": {"plugin_data": {"plugin_name": "text"}},
        "tensor": {"dtype": "DT_STRING", "string_val": [shown.encode()], "tensor_shape": {"dim": [{"size": 1}]}},
    }


@contextmanager
def wandb(project: str, name: str | None = None) -> Iterator[Callback]:
    """Send curves to a project of Weights & Biases; with `WANDB_MODE=offline` they stay in the folder `wandb`.

    Example: `with wandb("waiting", "cook seed 0") as callback: learn(env, callback=callback)`.
    """
    package = _needed("wandb")
    try:
        # The console is left alone: a progress line would fill the log.
        run = package.init(project=project, name=name, settings=package.Settings(console="off"))
    except package.Error as error:
        raise SettingError(
            f"Weights & Biases did not start ({error}); to keep the curves on this machine, set WANDB_MODE=offline"
        ) from error
    begun = False

    def call(point: Point, training: Tracked) -> None:
        nonlocal begun
        if not begun:
            run.config.update(training.info.data())
            begun = True
        run.log(scalars(point, training), step=point.step)

    with run:  # ends the run, as a failed one after an error
        yield call


def _needed(module: str) -> Any:
    """Import a part of the extra, or say how to install it."""
    package = module.partition(".")[0]
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        found = None
    # A folder of that name, such as the one wandb leaves behind, can be imported as an empty package.
    if found is None or found.__file__ is None:
        raise SettingError(f"{package} is not installed; it comes with: pip install 'letitcook[tracking]'")
    return found
