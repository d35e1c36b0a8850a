"""The page of one run around a base policy: certified or not, margin, bound, episodes, candidates, what was spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import letitcook
from letitcook.errors import FileFormatError, SettingError
from letitcook.evaluation.savings import duration
from letitcook.experiments.results import software_of
from letitcook.report import markup
from letitcook.report.page import STYLES, security
from letitcook.storage import folders
from letitcook.training.certificate_data import read_candidates
from letitcook.training.run import Learned, load

SCRIPTS = ("theme.js", "run.js")
SECTIONS = {
    "certificate": "Certificate",
    "candidates": "Candidates",
    "spent": "Spent",
    "method": "Method",
    "made": "Settings",
}
"""Sections of the page, and what the links to them say."""
PAIRED = (
    "Each played the same episodes as the policy alone; these served the choosing only.",
    "Wrapper and policy played the same episodes.",
)
UNPAIRED = (
    "They were chosen around a student, which answers nearly as the policy does and costs nothing.",
    "Wrapper and policy played different episodes, for the policy's are those that were recorded: "
    "the budget was too small for pairs.",
)
"""How the candidates were chosen, and what the certificate rests on."""
EDGE = 12.0
"""Share of the drawing's width that stays free on each side, in percent."""


def write_run_page(folder: Path) -> Path:
    """Write `report.html` into the folder of a run that holds a certificate, and return its path."""
    run = load(folder)
    if run.certificate is None:
        raise SettingError(
            f"{folder} is a run without a certificate, so there is nothing to report; certificates are made by "
            f"letitcook wrap. What the policy does, letitcook evaluate {folder} says"
        )
    try:
        software = software_of(folders.read_manifest(folder, "run")["provenance"])
        text = run_page(run, folder.name, software)
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{folder} is damaged or incomplete ({error!r}); wrap it anew") from error
    path = folder / "report.html"
    folders.write_file(path, text.encode())
    return path


def run_page(run: Learned, name: str, software: str = "") -> str:
    """Return the page of a run with a certificate as text; it opens from disk and loads nothing from anywhere."""
    facts = run.certificate
    assert facts is not None
    rows = read_candidates(run.choice)
    test = facts if facts["certified"] else _nearest_test(facts, rows)
    choosing, paired = PAIRED if facts.get("paired", True) else UNPAIRED
    style = "".join(map(markup.asset, STYLES))
    script = "".join(map(markup.asset, SCRIPTS))
    return Template(markup.asset("run.html")).substitute(
        policy=security(style, script),
        version=escape(letitcook.__version__),
        title=f"letitcook: {escape(name)}",
        style=style,
        links="".join(f'<a href="#{name}">{said}</a>' for name, said in SECTIONS.items()),
        kicker=_kicker(run),
        heading="Certified" if facts["certified"] else "Not certified",
        lead=_lead(run),
        certificate=_tiles(run) + _line(facts, test) + _facts(facts, test),
        candidates=_candidates(rows, str((run.choice or {}).get("name", ""))),
        spent=_spent(run),
        choosing=choosing,
        paired=paired,
        made=_made(run, software),
        script=script,
    )


def _kicker(run: Learned) -> str:
    spec, waits = run.info.env_spec, ", ".join(map(str, run.info.decisions.durations))
    where = escape(str(run.info.task or "an environment of yours"))
    if spec is not None:
        where = f"{escape(spec.env)}, around {escape(str(spec.policy))}"
    held = "holding the last action" if run.info.decisions.hold else "with a fixed action"
    return f"{where} · waits of {waits} steps, {held}"


def _lead(run: Learned) -> str:
    """Return the result in two sentences."""
    facts = run.certificate
    assert facts is not None
    margin = _plain(facts["margin"])
    if facts["certified"]:
        chosen = escape(str((run.choice or {}).get("name", "the wrapper")))
        return (
            f"{facts['queries_saved']:.1%} of the policy's queries are saved, and the mean task return falls by less "
            f"than {margin}. The wrapper: {chosen}."
        )
    nearest = facts.get("nearest")
    text = f"No wrapper could be certified to lose less than {margin}, so the policy is queried at every step."
    if nearest is None:
        return text
    return (
        f"{text} Nearest came “{escape(nearest['name'])}”, which loses less than {_plain(-nearest['bound'])} by "
        f"{nearest['episodes']:,} episodes; it takes a larger margin or a larger budget."
    )


def _tiles(run: Learned) -> str:
    facts, fresh = run.certificate, run.fresh
    assert facts is not None
    alone = fresh.base_queries / (1.0 - facts["queries_saved"]) if facts["queries_saved"] < 1.0 else 0.0
    tiles = [
        markup.tile(f"{facts['queries_saved']:.1%}", "of the policy's queries saved"),
        markup.tile(
            f"{markup.number(fresh.base_queries)} <small>of {markup.number(alone)}</small>", "queries an episode"
        ),
        markup.tile(_plain(fresh.task_return), "mean task return"),
    ]
    if facts["certified"]:
        words = "failed, of the certificate's episodes"
        tiles.append(markup.tile(f"{facts['failed']:,} <small>of {facts['episodes']:,}</small>", words))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _nearest_test(facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the test of the wrapper that came nearest; None if none was tested."""
    nearest = facts.get("nearest")
    found = [row["certificate"] for row in rows if nearest is not None and row["name"] == nearest["name"]]
    return found[0] if found else None


def _line(facts: Mapping[str, Any], test: Mapping[str, Any] | None) -> str:
    """Draw margin, bound and difference on a line; labels have a row each, so that they never overlap."""
    if test is None:
        return ""
    marks = [
        ("margin", -facts["margin"], "minus the margin"),
        ("zero", 0.0, "as the policy alone"),
        ("bound", test["bound"], "lower bound"),
        ("found", test["difference"], "measured difference"),
    ]
    values = [value for _, value, _ in marks]
    low, span = min(values), (max(values) - min(values)) or 1.0
    at = {name: EDGE + (100.0 - 2.0 * EDGE) * (value - low) / span for name, value, _ in marks}
    parts = [
        '<line class="axis" x1="0" x2="100%" y1="62" y2="62"/>',
        f'<line class="known" x1="{at["bound"]:.2f}%" x2="{at["found"]:.2f}%" y1="62" y2="62"/>',
    ]
    for (name, value, words), y in zip(marks, (16, 36, 94, 114), strict=True):
        x, anchor = f"{at[name]:.2f}%", "start" if at[name] < 34.0 else "end" if at[name] > 66.0 else "middle"
        top, bottom = (y + 5, 68) if y < 62 else (56, y - 13)
        parts.append(f'<line class="m-{name}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
        label = f"{words} <tspan>{_plain(value, span)}</tspan>"
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{label}</text>')
    said = ", ".join(f"{words} {_plain(value, span)}" for _, value, words in marks)
    whose = "" if facts["certified"] else f" Of the wrapper that came nearest, {escape(facts['nearest']['name'])}."
    return (
        f'<figure class="figure"><svg class="bound" role="img" aria-label="{said}">{"".join(parts)}</svg>'
        f"<figcaption>Mean task return beside that of the policy alone.{whose}</figcaption></figure>"
    )


def _facts(facts: Mapping[str, Any], test: Mapping[str, Any] | None) -> str:
    """Return all that the certificate says, in full as `data-value`; else what the nearest wrapper's test says."""
    rows: list[tuple[str, str, Any, str]] = [
        ("certified", "certified", facts["certified"], "yes" if facts["certified"] else "no"),
        ("margin", "margin: loss of mean task return that is accepted", facts["margin"], _plain(facts["margin"])),
    ]
    if test is not None:
        failed = f"episodes that lost more than {_plain(test['failure_loss'])}"
        worst = max(test["failure_bound"], 0.0)
        rows += [
            ("bound", "lower 95% bound of the difference", test["bound"], _plain(test["bound"])),
            ("difference", "measured difference", test["difference"], _plain(test["difference"], test["bound"])),
            ("episodes", "episodes", test["episodes"], f"{test['episodes']:,}"),
            ("looks", "looks at the data", test["looks"], f"{test['looks']:,}"),
            ("failed", failed, test["failed"], f"{test['failed']:,}"),
            ("rescued", "episodes that gained as much", test["rescued"], f"{test['rescued']:,}"),
            ("failure_bound", "failures less rescues, upper 95% bound", test["failure_bound"], f"{worst:.2%}"),
        ]
    if test is not None and not facts["certified"]:
        rows.append(("reason", "why not", test["reason"], escape(test["reason"])))
    rows.append(("at_stake", "at stake in an episode", facts["at_stake"], _plain(facts["at_stake"])))
    caption = "What was certified"
    if not facts["certified"]:
        caption = "Nothing was tested" if test is None else f"The nearest: {escape(facts['nearest']['name'])}"
    return _facts_table(caption, rows)


def _facts_table(caption: str, rows: Sequence[tuple[str, str, Any, str]]) -> str:
    body = "".join(
        f'<tr><th scope="row">{words}</th><td data-col="{name}" data-value="{escape(str(value))}">{read}</td></tr>'
        for name, words, value, read in rows
    )
    return f'<div class="scroll facts-table"><table><caption>{caption}</caption><tbody>{body}</tbody></table></div>'


def _candidates(rows: Sequence[Mapping[str, Any]], chosen: str) -> str:
    if not rows:
        return '<p class="prose">No candidates were kept with this run.</p>'
    names = ("wrapper", "kind", "saved", "return", "episodes", "tested: bound", "episodes")
    heads = "".join(
        f'<th scope="col" class="{"words" if name in ("wrapper", "kind") else ""}">{name}</th>' for name in names
    )
    body = "".join(_candidate(row, row["name"] == chosen) for row in rows)
    return (
        '<div class="scroll" role="region" tabindex="0" aria-label="Candidates"><table class="names"><caption>'
        'Candidates<small> · saved and return beside the policy alone, 95% intervals · <span class="star">★</span> '
        f"the result</small></caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _candidate(row: Mapping[str, Any], chosen: bool) -> str:
    star = ' <span class="star" title="the result">★</span>' if chosen else ""
    error = "" if row["difference_se"] is None else f' <span class="dim">± {_plain(1.96 * row["difference_se"])}</span>'
    test = row["certificate"]
    tested = '<td class="dim">–</td><td class="dim">–</td>'
    if test is not None:
        tested = f'<td title="{escape(test["reason"])}">{_plain(test["bound"])}</td><td>{test["episodes"]:,}</td>'
    return (
        f'<tr data-candidate="{escape(row["name"])}"><th scope="row">{escape(row["name"])}{star}</th>'
        f'<td class="words">{escape(row["kind"])}</td><td>{row["saved"]:.1%}</td>'
        f"<td>{_plain(row['difference'])}{error}</td><td>{row['episodes']:,}</td>{tested}</tr>"
    )


def _spent(run: Learned) -> str:
    assert run.certificate is not None
    spent = run.certificate["spent"]
    trained = f"{run.steps:,} steps" if run.steps else "nothing"
    around = spent.get("student_episodes", 0)
    student = [("student_episodes", "episodes of them around a student", around, f"{around:,}")] if around else []
    rows: list[tuple[str, str, Any, str]] = [
        ("base_queries", "queries of the policy", spent["base_queries"], f"{spent['base_queries']:,}"),
        ("spent_episodes", "episodes", spent["episodes"], f"{spent['episodes']:,}"),
        *student,
        ("seconds", "time", spent["seconds"], duration(spent["seconds"])),
        ("steps", "trained", run.steps, trained),
    ]
    return _facts_table("Training, choosing and certifying together", rows)


def _made(run: Learned, software: str) -> str:
    """Return the software; and the learner's settings, where anything was trained."""
    info, line = run.info, f"<li>{escape(software)}</li>" if software else ""
    about = f'<div class="method"><ul>{line}<li>preset {escape(info.preset)}, seed {info.seed}</li></ul></div>'
    return about + (markup.settings_line(info.data()["settings"]) if run.steps else "")


def _plain(value: float, beside: float = 0.0) -> str:
    """Return a number for people, with a proper minus; 0 where it is nothing beside another one.

    >>> _plain(-0.6101), _plain(89.3), _plain(-2e-14), _plain(12_345.6), _plain(0.0004, 300.0)
    ('−0.61', '89.3', '0', '12,346', '0')
    """
    if abs(value) < max(1e-9, 1e-4 * abs(beside)):
        return "0"
    text = f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
    return text.replace("-", "−")
