"""The report page: one HTML file that needs nothing else, with all numbers, all figures and episodes to play."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import letitcook
from letitcook.experiments.jobs import exact_front
from letitcook.experiments.results import Results
from letitcook.report import markup
from letitcook.report.compare import Comparison
from letitcook.report.traces import NamedTrace, episodes_of, scene
from letitcook.storage import folders
from letitcook.tasks import task_named

SCRIPTS = ("scenes.js", "player.js", "plane.js", "theme.js", "page.js")
STYLES = ("page.css", "scenes.css")
TITLES = {
    "exact": "exact optimum",
    "lexicographic": "learned, lexicographic",
    "vanilla": "learned, vanilla",
    "exact wrapped": "exact, around the base",
    "wrapped": "learned, around the base",
    "interleaved": "exact, interleaved",
    "base": "base policy, handwritten",
}
"""What the player calls an episode."""
SECTIONS = {
    "summary": "Summary",
    "episodes": "Episodes",
    "plane": "Plane",
    "tables": "Tables",
    "figures": "Figures",
    "method": "Method",
    "made": "Settings",
}
"""Sections of the page, and what the links to them say."""


def write_page(
    results: Results,
    comparisons: Sequence[Comparison],
    figures: Mapping[str, str],
    out: Path,
    episodes: Sequence[NamedTrace] | None = None,
) -> Path:
    """Write `report.html` into the folder `out`, and return its path.

    `figures` are SVG texts by name; `episodes` are what the player shows, those of the results if not given. The page
    opens from disk and loads nothing from anywhere.
    """
    path, shown = out / "report.html", episodes_of(results) if episodes is None else episodes
    folders.write_file(path, page(results, comparisons, figures, shown).encode())
    return path


def page(
    results: Results, comparisons: Sequence[Comparison], figures: Mapping[str, str], episodes: Sequence[NamedTrace]
) -> str:
    """Return the page's text."""
    style = "".join(markup.asset(name) for name in STYLES) + markup.widths(comparisons)
    script = "".join(markup.asset(name) for name in SCRIPTS)
    sections = {name: said for name, said in SECTIONS.items() if figures or name != "figures"}
    tasks = [task_named(task).title for task in dict.fromkeys(c.row.task for c in comparisons)]
    return Template(markup.asset("page.html")).substitute(
        policy=security(style, script),
        version=escape(letitcook.__version__),
        title=f"letitcook: {escape(results.suite)}",
        style=style,
        links="".join(f'<a href="#{name}">{said}</a>' for name, said in sections.items()),
        kicker=f"{len(comparisons)} rows from {len(results.runs):,} runs: {escape(', '.join(tasks))}",
        summary=markup.summary(comparisons),
        player=markup.asset("player.html"),
        plane=markup.asset("plane.html"),
        tables=markup.tables(comparisons),
        figures=markup.figures(figures),
        method=markup.method(comparisons),
        made=markup.made(results.made),
        suite=escape(results.suite),
        data=_json(
            {
                "tasks": _tasks(episodes, comparisons),
                "plane": [_point(c) for c in comparisons],
                "fronts": _fronts(comparisons),
            }
        ),
        script=script,
    )


def security(style: str, script: str) -> str:
    """Return a policy under which a browser runs this page's own script and style and loads nothing at all."""
    hashes = {
        name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for name, text in (("style-src", style), ("script-src", script))
    }
    allowed = "; ".join(f"{name} &#39;sha256-{value}&#39;" for name, value in hashes.items())
    return f"default-src &#39;none&#39;; img-src data:; {allowed}; base-uri &#39;none&#39;; form-action &#39;none&#39;"


def _json(data: Any) -> str:
    """Return data as JSON that can stand in a script element whatever it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _tasks(episodes: Sequence[NamedTrace], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return what the player and the plane need of each task."""
    names = dict.fromkeys([*(e.trace.task for e in episodes), *(c.row.task for c in comparisons)])
    return {
        name: {
            "title": task_named(name).title,
            "longer": task_named(name).return_per_step > 0.0,
            "scene": scene(name),
            "episodes": [_episode(named) for named in episodes if named.trace.task == name],
        }
        for name in names
    }


def _episode(named: NamedTrace) -> dict[str, Any]:
    """Return an episode with its states as rows of numbers under one list of fields."""
    trace = named.trace
    fields = list(trace.states[0])
    return {
        "name": named.name,
        "title": TITLES[named.name],
        "source": named.source,
        "terminated": trace.terminated,
        "fields": fields,
        "rows": [[state[field] for field in fields] for state in trace.states],
        "queries": [[q.time, q.steps, int(q.wait), q.label, q.work] for q in trace.queries],
    }


def _fronts(comparisons: Sequence[Comparison]) -> dict[str, list[tuple[int, int]]]:
    """Return the exact Pareto front of every finite task and mode: pairs of length and queries."""
    worlds = dict.fromkeys((c.row.task, c.row.mode) for c in comparisons if task_named(c.row.task).finite)
    return {f"{task}/{mode}": [(p.length, p.queries) for p in exact_front(task, mode)] for task, mode in worlds}


def _point(c: Comparison) -> dict[str, Any]:
    """Return a row of the plane: length, its spread, queries, their spread; ours and the paper's."""
    paper = c.paper
    return {
        "id": c.row.id,
        "task": c.row.task,
        "mode": c.row.mode,
        "method": c.row.method,
        "lambda": c.row.lam,
        "label": markup.label_of(c),
        "ours": [c.length, c.length_sd, c.queries, c.queries_sd],
        "paper": None if paper is None else [paper.length, paper.length_sd, paper.queries, paper.queries_sd],
        "exact": None if c.exact is None else [c.exact.length, c.exact.queries],
    }
