"""A suite of one's own: a small TOML file, read into runs.

`docs/suites.md` is the format. Everything is checked when the file is read, the settings of every run included, and a
mistake is named by its file and line.
"""

from __future__ import annotations

import difflib
import math
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from letitcook.core.decisions import Timesteps, read_timesteps
from letitcook.deep.settings import PRESETS as DEEP_PRESETS
from letitcook.deep.settings import LDQNSettings
from letitcook.errors import LetItCookError, SuiteError
from letitcook.experiments.suites import Row, Run, Suite, base_of, run_of
from letitcook.experiments.toml_source import Source, Table, Where
from letitcook.finite.settings import PRESETS as FINITE_PRESETS
from letitcook.finite.settings import QSettings
from letitcook.storage import folders
from letitcook.storage.setting_values import converted, said, setting_types
from letitcook.tasks import TASKS
from letitcook.training.spec import METHODS

MAX_RUNS = 100_000
MAX_NAME = 100
"""Characters of a suite's or a variant's name, since file systems end at 255."""
SAFE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._=,-]{{0,{MAX_NAME - 1}}}")
SAFE = f"give at most {MAX_NAME} letters, digits, '-', '_', '.', '=' and ',', a letter or digit first"
LONELY_LAMBDAS = 'lambdas go with the method "scalar", which is not asked for; add it to methods or leave them out'
PRESETS: dict[bool, Collection[str]] = {True: FINITE_PRESETS, False: DEEP_PRESETS}
"""The presets of finite tasks and of the others."""
ALL_PRESETS = list(FINITE_PRESETS | DEEP_PRESETS)
SETTINGS = {True: setting_types(QSettings), False: setting_types(LDQNSettings)}
"""The settings of finite tasks and of the others, with their types."""
ALL_SETTINGS = list(SETTINGS[True] | SETTINGS[False])


def read_suite(path: Path) -> Suite:
    """Read a file of experiments.

    >>> read_suite(Path("no-such-suite.toml"))
    Traceback (most recent call last):
    ...
    letitcook.errors.SuiteError: no-such-suite.toml cannot be read (No such file or directory); give a TOML file
    """
    try:
        data = folders.read_file(path)
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path} cannot be read ({getattr(error, 'strerror', error)}); give a TOML file") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{path}:{line}: this is not UTF-8 text; save the file as UTF-8") from error
    return parse_suite(text, str(path))


def parse_suite(text: str, file: str) -> Suite:
    r"""Return the suite that a text says; `file` stands in messages, and its stem is the suite's default name.

    >>> suite = parse_suite('tasks = ["pong"]\nseeds = 2\nsettings.slack = 1', "study.toml")
    >>> suite.name, [run.id for run in suite.runs]
    ('study', ['pong/lexicographic+slack=1/scratch/seed0', 'pong/lexicographic+slack=1/scratch/seed1'])
    >>> parse_suite('seeds = 2\ntasks = ["pongg"]', "study.toml")
    Traceback (most recent call last):
    ...
    letitcook.errors.SuiteError: study.toml:2: no task named 'pongg'; use cook, ..., job (did you mean 'pong'?)
    """
    source = Source(file, text)
    document = source.document()
    top = _checked(source, (), document, (*CHECKS, "rows"))
    blocks = [_Block(source, (), top, top)]
    if "rows" in document:
        rows = enumerate(_tables(source, document["rows"]))
        blocks = [_Block(source, ("rows", n), top, _checked(source, ("rows", n), row, CHECKS)) for n, row in rows]
    if "lambdas" in top and not any("scalar" in block.get("methods") for block in blocks):
        raise source.error(("lambdas",), LONELY_LAMBDAS)
    name = top.get("name", Path(file).stem)
    if not SAFE_NAME.fullmatch(name):
        raise source.error((), f"the file's own name cannot name a folder of results; add name = ...: {SAFE}")
    count = 0
    for block in blocks:
        block.check()
        count += block.count()
        if count > MAX_RUNS:
            what = f"{count} runs are too many; give fewer seeds, at most {MAX_RUNS} runs in a file"
            raise source.error(block.at("seeds"), what)
    return Suite(name, tuple(_without_clashes(source, blocks)))


def _without_clashes(source: Source, blocks: Iterable[_Block]) -> list[Run]:
    """Return every run once; neither a run nor a base policy that it wraps may share a folder with another."""
    runs: dict[str, Run] = {}
    kept: dict[str, tuple[Run, Where, bool]] = {}
    for block in blocks:
        for run in block.runs():
            for one in (run, base_of(run) or run):
                other, where, is_base = kept.setdefault(one.id, (one, block.where, one is not run))
                if other != one:
                    lines = f"lines {source.line(where)} and {source.line(block.where)}"
                    base = " (the base policy of what is wrapped)" if is_base or one is not run else ""
                    what = f"{lines} say different things of {one.id}{base}: {_differences(other, one)}"
                    raise source.error(block.where, f"{what}; give one of the blocks a name of its own")
            runs[run.id] = run
    return list(runs.values())


def _differences(a: Run, b: Run) -> str:
    """Say in what two runs of one id differ."""
    ours, others = ({"λ": r.row.lam, "length": r.length, "preset": r.preset, **dict(r.changes)} for r in (a, b))
    pairs = {name: (ours.get(name, "unchanged"), others.get(name, "unchanged")) for name in ours | others}
    return ", ".join(f"{name} {one} and {other}" for name, (one, other) in pairs.items() if one != other)


@dataclass(frozen=True)
class _Block:
    """A table that makes runs: the top of the file, or one of its `[[rows]]`."""

    source: Source
    where: Where
    top: Table
    own: Table

    def get(self, key: str) -> Any:
        """Return what the block says, else what the top says, else the default."""
        return self.own.get(key, self.top.get(key, DEFAULTS.get(key)))

    def at(self, key: str) -> Where:
        """Return where that is written."""
        return (*self.where, key) if key in self.own else (key,) if key in self.top else self.where

    def lacking(self, known: dict[bool, Any], name: str) -> list[str]:
        """Return the tasks that do not know a preset or a setting."""
        return [task for task in self.get("tasks") if name not in known[TASKS[task].finite]]

    def check(self) -> None:
        """Raise if what is written does not go together."""
        methods, preset = self.get("methods"), self.get("preset")
        if self.get("tasks") is None:
            what = f'there are no tasks; add tasks = ["pong"] or others of {", ".join(TASKS)}'
            raise self.source.error(self.where, what)
        for table, where in ((self.own, self.where), (self.top, ())):
            if "steps" in table and "decisions" in table:
                what = "steps and decisions both say how long to train; leave one of them out"
                raise self.source.error((*where, "decisions"), what)
        if "scalar" in methods and not self.get("lambdas"):
            where = (*self.at("methods"), methods.index("scalar"))
            raise self.source.error(where, "the method 'scalar' needs λs; add lambdas = [0.1, 1]")
        if "lambdas" in self.own and "scalar" not in methods:
            raise self.source.error(self.at("lambdas"), LONELY_LAMBDAS)
        if not self.combinations():
            what = "vanilla has no waits, so around a base policy it is the base policy itself"
            where = self.at("methods" if "methods" in self.own else "modes")
            raise self.source.error(where, f'{what}; add the mode "scratch" or another method')
        if lacking := self.lacking(PRESETS, preset):
            known = [name for name in ALL_PRESETS if not self.lacking(PRESETS, name)]
            raise self.source.error(self.at("preset"), _unknown("preset", preset, known, lacking))
        for name in self.told():
            if lacking := self.lacking(SETTINGS, name):
                raise self.source.error(self.at_setting(name), self._no_such_setting(name, lacking))

    def _no_such_setting(self, name: str, lacking: list[str]) -> str:
        renamed = QSettings.RENAMED | LDQNSettings.RENAMED
        if name in renamed:
            return f"the setting {name!r} is now called {renamed[name]!r}"
        known = [name for name in ALL_SETTINGS if not self.lacking(SETTINGS, name)]
        what = _unknown("setting", name, known, lacking)
        if name in CHECKS:
            return f"{what}; {name!r} goes above [settings]"
        apart = len(lacking) < len(self.get("tasks"))
        return f"{what}; or give these tasks a [[rows]] block of their own" if apart else what

    def combinations(self) -> list[tuple[str, str, float | None]]:
        """Return modes with methods and λs; vanilla around a base policy is left out."""
        return [
            (mode, method, lam)
            for mode in self.get("modes")
            for method in self.get("methods")
            for lam in (self.get("lambdas") if method == "scalar" else (None,))
            if (mode, method) != ("wrap", "vanilla")
        ]

    def count(self) -> int:
        """Return how many runs there are, equal ones included."""
        return len(self.get("tasks")) * len(self.combinations()) * len(self.get("seeds"))

    def runs(self) -> Iterator[Run]:
        """Yield the runs; the settings of each row are made once, to see that they can be."""
        for task in self.get("tasks"):
            changes = self.changes(task)
            variant = self.own["name"] if self.where and "name" in self.own else _variant(changes)
            if len(variant) > MAX_NAME:
                raise self.source.error(self.where, f"{variant} is too long; use a [[rows]] block with a name")
            for mode, method, lam in self.combinations():
                row = Row(task, mode, method, lam, variant)
                runs = [run_of(row, seed, self.get("preset"), self.length(), changes) for seed in self.get("seeds")]
                self._try(runs[0], self.where)
                yield from runs

    def length(self) -> Timesteps | None:
        """Return how long runs are: what the block says, else what the top says; None for the preset's own."""
        for table in (self.own, self.top):
            if found := read_timesteps(table.get("steps"), table.get("decisions")):
                return found
        return None

    def told(self) -> Table:
        """Return the settings as they are written: the block's own over those on top."""
        return {**self.top.get("settings", {}), **self.own.get("settings", {})}

    def at_setting(self, name: str) -> Where:
        """Return where a setting is written."""
        return (*(self.where if name in self.own.get("settings", {}) else ()), "settings", name)

    def changes(self, task: str) -> tuple[tuple[str, Any], ...]:
        """Return the settings as a task's learner takes them, each tried by itself, in the order of their names."""
        changes = []
        for name, value in sorted(self.told().items()):
            wanted = SETTINGS[TASKS[task].finite][name]
            try:
                changes.append((name, converted(value, wanted)))
            except TypeError:
                what = f"{name} = {_shown(value)} is not allowed for {task}; give {said(wanted)}"
                raise self.source.error(self.at_setting(name), what) from None
            mode, method, lam = self.combinations()[0]
            row = Row(task, mode, method, lam)
            self._try(Run(row, 0, 1, self.get("preset"), (changes[-1],)), self.at_setting(name))
        return tuple(changes)

    def _try(self, run: Run, where: Where) -> None:
        try:
            run.settings()
        except LetItCookError as error:
            raise self.source.error(where, str(error)) from error


def _variant(changes: Iterable[tuple[str, Any]]) -> str:
    """Name changed settings: `hidden=128x128,slack=1`."""
    return ",".join(f"{name}={_written(value)}" for name, value in changes)


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ("_" if value and isinstance(value[0], tuple) else "x").join(map(_written, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}".replace("+", "") if isinstance(value, float) else str(value)


def _unknown(kind: str, name: Any, known: Collection[str], tasks: Collection[str] = ()) -> str:
    """Say that there is no such name, which ones there are, and which one is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5) if isinstance(name, str) else []
    of = f" for {', '.join(dict.fromkeys(tasks))}" if tasks else ""
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"no {kind} named {_shown(name)}{of}; use {', '.join(known)}{hint}"


def _shown(value: Any) -> str:
    """Write a value for a message, shortened."""
    return str(value).lower() if isinstance(value, bool) else _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def _checked(source: Source, where: Where, table: Table, keys: Collection[str]) -> Table:
    """Return the values of a table, each checked by itself."""
    for key in table:
        if key not in keys:
            under = "[rows.settings]" if where else "[settings]"
            hint = f"; {key!r} is a setting, write it under {under}" if key in ALL_SETTINGS else ""
            raise source.error((*where, key), _unknown("key", key, keys) + hint)
    return {key: CHECKS[key](source, (*where, key), value) for key, value in table.items() if key in CHECKS}


def _list(source: Source, where: Where, value: Any, example: str) -> list[Any]:
    if not isinstance(value, list):
        raise source.error(where, f"{where[-1]} = {_shown(value)} is not a list; write {where[-1]} = {example}")
    if not value:
        raise source.error(where, f"{where[-1]} is an empty list; give at least one, such as {example}")
    return value


def _names(source: Source, where: Where, value: Any, known: Collection[str]) -> list[str]:
    kind = str(where[-1]).removesuffix("s")
    for n, name in enumerate(_list(source, where, value, f'["{next(iter(known))}"]')):
        if not isinstance(name, str) or name not in known:
            raise source.error((*where, n), _unknown(kind, name, known))
    return list(value)


def _lambdas(source: Source, where: Where, value: Any) -> list[float]:
    in_ids: dict[str, float] = {}
    for n, lam in enumerate(_list(source, where, value, "[0.1, 1]")):
        if type(lam) not in (int, float) or not 0 <= lam < math.inf:
            what = f"λ = {_shown(lam)} is not allowed; give finite numbers of at least 0, such as 0.1"
            raise source.error((*where, n), what)
        if in_ids.setdefault(f"{lam:g}", lam) != lam:
            what = f"λ = {lam} and {in_ids[f'{lam:g}']} are the same in their first six digits, which name the runs"
            raise source.error((*where, n), f"{what}; leave one out")
    return [lam + 0.0 for lam in value]  # a float, and never -0.0


def _seeds(source: Source, where: Where, value: Any) -> Collection[int]:
    if type(value) is int and value >= 1:
        return range(value)
    if not isinstance(value, list):
        raise source.error(where, f"seeds = {_shown(value)} is not allowed; give how many, or a list such as [0, 1]")
    for n, seed in enumerate(_list(source, where, value, "[0, 1]")):
        if type(seed) is not int or seed < 0:
            raise source.error((*where, n), f"seed {_shown(seed)} is not allowed; give whole numbers of at least 0")
    return value


def _steps(source: Source, where: Where, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise source.error(where, f"{where[-1]} = {_shown(value)} is not allowed; give a whole number such as 200_000")
    return value


def _name(source: Source, where: Where, value: Any) -> str:
    if not isinstance(value, str) or not SAFE_NAME.fullmatch(value):
        raise source.error(where, f"name = {_shown(value)} cannot name a folder; {SAFE}")
    return value


def _preset(source: Source, where: Where, value: Any) -> str:
    if not isinstance(value, str) or value not in ALL_PRESETS:
        raise source.error(where, _unknown("preset", value, ALL_PRESETS))
    return value


def _table(source: Source, where: Where, value: Any) -> Table:
    if not isinstance(value, dict):
        raise source.error(where, f"settings = {_shown(value)} is not a table; write [settings], then slack = 1")
    return value


def _tables(source: Source, value: Any) -> list[Table]:
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise source.error(("rows",), "rows are blocks; begin each with a line [[rows]]")
    return value


CHECKS: dict[str, Callable[[Source, Where, Any], Any]] = {
    "name": _name,
    "tasks": partial(_names, known=TASKS),
    "modes": partial(_names, known=("scratch", "wrap")),
    "methods": partial(_names, known=METHODS),
    "lambdas": _lambdas,
    "seeds": _seeds,
    "steps": _steps,
    "decisions": _steps,
    "preset": _preset,
    "settings": _table,
}
"""The keys of the file and of its blocks, and what checks each by itself."""
DEFAULTS: Table = {"modes": ["scratch"], "methods": ["lexicographic"], "seeds": range(3), "preset": "paper"}
