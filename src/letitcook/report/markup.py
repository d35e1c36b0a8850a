"""The static parts of the report page: summary, tables, figures. All of them are functions of data to HTML."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape, unescape
from importlib import resources
from string import Template
from typing import Any

from letitcook.experiments.results import Made
from letitcook.report.compare import Comparison, comparison_frame
from letitcook.report.verdicts import VERDICTS
from letitcook.tasks import task_named

MODES = {"scratch": "from scratch", "wrap": "around the base policy"}
MEASURES = ("length", "queries")
PIXELS = 1.6
"""Pixels for a point, the unit of the figures: their letters come out as large as the page's."""


def asset(name: str) -> str:
    """Return a file of the page."""
    return resources.files("letitcook.report").joinpath("assets", name).read_text(encoding="utf-8")


def label_of(c: Comparison) -> str:
    """Return a row's method for people, such as `scalar, λ 0.1`."""
    parts = [c.row.method]
    if c.row.lam is not None:
        parts.append(f"λ {c.row.lam:g}")
    return ", ".join([*parts, c.row.variant] if c.row.variant else parts)


def number(value: float, spread: float = 1.0) -> str:
    """Return a number for people: whole ones whole, others with one place, or two where its spread is small.

    >>> number(33.0), number(25.4444), number(94.0123, spread=0.03)
    ('33', '25.4', '94.01')
    """
    return f"{value:.{1 if spread >= 0.1 else 2}f}".removesuffix(".00").removesuffix(".0")


def summary(comparisons: Sequence[Comparison]) -> str:
    """Return the tiles, the bar of verdicts and the list of rows that differ."""
    counts = Counter(c.verdict for c in comparisons)
    known = len(comparisons) - counts["new"]
    finite = [c for c in comparisons if c.exact is not None]
    best = sum(c.at_optimum for c in finite)
    tiles = [
        tile(
            f"{counts['same']} <small>of {known}</small>",
            "rows as in the paper: Welch's t-test tells neither length nor queries apart, at a level of 5 %",
        ),
        tile(
            f"{best} <small>of {len(finite)}</small>",
            "rows of finite tasks with every seed at the exact optimum of what the row optimises",
        ),
        *_gap_tile(finite),
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>{_bar(counts)}{_differing(comparisons)}'


def tile(big: str, small: str) -> str:
    """Return a large number with what it says."""
    return f'<div class="tile"><b>{big}</b><span>{small}</span></div>'


def _gap_tile(finite: Sequence[Comparison]) -> list[str]:
    """Tell how far the lexicographic rows are from the exact optimum, in the mean."""
    gaps = [
        (abs(c.length - c.exact.length), c.queries - c.exact.queries)
        for c in finite
        if c.row.method == "lexicographic" and not c.row.variant and c.exact and c.exact.queries is not None
    ]
    if not gaps:
        return []
    steps, queries = (sum(gap[i] for gap in gaps) / len(gaps) for i in range(2))
    words = f"steps and queries above the exact optimum, mean of the {len(gaps)} lexicographic rows of finite tasks"
    return [tile(f"{_signed(steps)} <small>/</small> {_signed(queries)}", words)]


def _bar(counts: Mapping[str, int]) -> str:
    present = [name for name in VERDICTS if counts.get(name)]
    parts = "".join(f'<i class="fill-{name} grow-{counts[name]}">{counts[name]}</i>' for name in present)
    keys = "".join(
        f'<li title="{escape(VERDICTS[name][2])}"><i class="t-{name}">{VERDICTS[name][0]}</i> '
        f"<b>{counts[name]}</b> {VERDICTS[name][1]}</li>"
        for name in present
    )
    return f'<div class="bar" aria-hidden="true">{parts}</div><ul class="key" aria-label="Verdicts">{keys}</ul>'


def widths(comparisons: Sequence[Comparison]) -> str:
    """Return the widths of the bar's parts as a style sheet: the page's policy allows no styles on elements."""
    counts = Counter(c.verdict for c in comparisons)
    return "".join(f".grow-{n}{{flex:{n} 1 0}}" for n in sorted(set(counts.values())))


def _differing(comparisons: Sequence[Comparison]) -> str:
    rows = [c for c in comparisons if c.verdict not in ("same", "new")]
    if not rows:
        return '<p class="prose">No row differs from the paper.</p>'
    order = list(VERDICTS)
    items = "".join(
        f'<li><a href="#{escape(c.row.id)}">{escape(c.row.id)}</a>{_sign(c.verdict)}<span>{_why(c)}</span></li>'
        for c in sorted(rows, key=lambda c: -order.index(c.verdict))
    )
    return (
        f"<details><summary>The {len(rows)} rows that differ <small>ours, the paper's, and why</small></summary>"
        f'<ul class="differing">{items}</ul></details>'
    )


def _why(c: Comparison) -> str:
    """Say in numbers how a row differs, and what is known about it."""
    assert c.paper is not None
    text = (
        f"{number(c.length)} / {number(c.queries)}, paper {number(c.paper.length)} / {number(c.paper.queries)} "
        "steps / queries"
    )
    if c.exact is not None and c.exact.queries is not None:
        text += f", exact {number(c.exact.length)} / {number(c.exact.queries)}"
    return f"{text}: {escape(c.reason)}"


def _sign(name: str) -> str:
    sign, words, why = VERDICTS[name]
    mark = f'<span class="v-sign" aria-hidden="true">{sign}</span>'
    return f'<span class="t-{name}" title="{escape(why)}">{mark} {words}</span>'


def tables(comparisons: Sequence[Comparison]) -> str:
    """Return a table for each task and mode; every number is there in full as a `data-value`."""
    records = comparison_frame(comparisons).to_dicts()
    parts = [asset("tables.html")]
    for task in dict.fromkeys(c.row.task for c in comparisons):
        parts.append(f"<h3>{escape(task_named(task).title)}</h3>")
        for mode, words in MODES.items():
            pairs = [
                (c, r) for c, r in zip(comparisons, records, strict=True) if (c.row.task, c.row.mode) == (task, mode)
            ]
            if pairs:
                parts.append(_table(f"{task_named(task).title}, {words}", pairs))
    return "".join(parts)


def _table(caption: str, pairs: Iterable[tuple[Comparison, dict[str, Any]]]) -> str:
    groups = "".join(f'<th scope="colgroup" colspan="4" class="span edge">{m.capitalize()}</th>' for m in MEASURES)
    kinds = (("ours", "edge has-sd"), ("paper", "has-sd"), ("Δ", ""), ("exact", ""))
    columns = "".join(_heading(name, kind) for name, kind in kinds)
    body = "".join(_row(c, record) for c, record in pairs)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table>'
        f"<caption>{caption}</caption><thead>"
        f'<tr><td></td><td></td>{groups}<td class="edge" colspan="2"></td></tr>'
        f"<tr>{_heading('method')}{_heading('seeds')}{columns * 2}"
        f"{_heading('P', 'edge')}{_heading('verdict', 'words')}</tr>"
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _heading(name: str, kind: str = "") -> str:
    return f'<th scope="col" class="{kind}">{name}</th>'


def _row(c: Comparison, record: Mapping[str, Any]) -> str:
    name = c.verdict
    star = ' <span class="star" title="every seed at the exact optimum">★</span>' if c.at_optimum else ""
    cells = "".join(_measured(c, record, measure) for measure in MEASURES)
    seeds = _value(record, "seeds") + _held(record, "paper_seeds")
    return (
        f'<tr id="{escape(c.row.id)}" data-row="{escape(c.row.id)}" data-verdict="{name}">'
        f'<th scope="row">{escape(label_of(c))}{star}</th><td>{seeds}</td>{cells}'
        f'<td class="edge">{_probability(record["as_good_as_paper"])}</td>'
        f'<td class="words">{_sign(name)}</td></tr>'
    )


def _measured(c: Comparison, record: Mapping[str, Any], measure: str) -> str:
    """Return four cells: ours with its spread, the paper's, the difference, the exact optimum."""
    ours = _mean(record, measure) + _interval(record, measure)
    exact = _value(record, f"exact_{measure}", none="any" if c.exact else "–")
    paper = _mean(record, f"paper_{measure}")
    beside = "".join(_held(record, f"{measure}_{name}") for name in ("difference_low", "difference_high", "p"))
    change = _difference(c, measure) + beside
    return f'<td class="ours edge">{ours}</td><td>{paper}</td><td>{change}</td><td>{exact}</td>'


def _interval(record: Mapping[str, Any], measure: str) -> str:
    """Return the interval of a mean, which is not read where it is a point or there is none."""
    low, high, sd = (record[f"{measure}_{name}"] for name in ("low", "high", "sd"))
    hidden = " hidden" if low == high else ""
    ends = (_value(record, f"{measure}_{end}", spread=sd or 1.0) for end in ("low", "high"))
    return f'<span class="ci"{hidden}>[{", ".join(ends)}]</span>'


def _mean(record: Mapping[str, Any], name: str) -> str:
    """Return a mean and its standard deviation, which is not read where it is 0."""
    sd = record[f"{name}_sd"]
    read = f" ± {number(sd, sd)}" if sd else ""
    spread = f'<span class="sd" data-col="{name}_sd" data-value="{_full(sd)}">{read}</span>'
    return _value(record, f"{name}_mean", spread=sd or 1.0) + spread


def _value(record: Mapping[str, Any], column: str, none: str = "–", spread: float = 1.0) -> str:
    """Return a number as it is read, with the whole of it beside."""
    value = record[column]
    read = none if value is None else number(value, spread)
    return f'<span data-col="{column}" data-value="{_full(value)}">{read}</span>'


def _held(record: Mapping[str, Any], column: str) -> str:
    """Return a number that is not read, but there in full."""
    return f'<span data-col="{column}" data-value="{_full(record[column])}"></span>'


def _probability(value: float | None) -> str:
    read = "–" if value is None else f"{value:.2f}"
    return f'<span data-col="as_good_as_paper" data-value="{_full(value)}">{read}</span>'


def _full(value: Any) -> str:
    return "" if value is None else repr(value)


def _difference(c: Comparison, measure: str) -> str:
    """Return ours minus the paper's, with a sign that says which is better where the two are told apart."""
    found = c.length_difference if measure == "length" else c.queries_difference
    if found is None:
        return '<span class="dim">–</span>'
    interval = f'title="95% interval {_signed(found.low)} to {_signed(found.high)}, p = {found.p:.2g}"'
    if not found.told_apart:
        return f'<span class="d-zero" {interval}>{_signed(found.mean)}</span>'
    wanted = task_named(c.row.task).return_per_step if measure == "length" else -1.0
    sign, name = ("▲", "better") if found.mean * wanted > 0.0 else ("▼", "worse")
    return f'<span class="d-{name}" {interval}>{sign}<span class="sr">{name}</span> {_signed(found.mean)}</span>'


def _signed(value: float) -> str:
    text = number(abs(value))
    return "0" if text == "0" else f"{'+' if value > 0 else '−'}{text}"


def figures(pictures: Mapping[str, str]) -> str:
    """Return the figures as images of their own, so that nothing in them can act on the page."""
    if not pictures:
        return ""
    sheets = "".join(_sheet(name, svg) for name, svg in pictures.items())
    return f'<section id="figures" aria-labelledby="figures-h"><h2 id="figures-h">Figures</h2>{sheets}</section>'


def _sheet(name: str, svg: str) -> str:
    """Return a figure on a light sheet, no larger than it is; its label is the caption."""
    opening = svg[: svg.find(">")]
    label, box = re.search(r'aria-label="([^"]*)"', opening), re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening)
    caption = escape(unescape(label[1])) if label else escape(name.replace("_", " ").replace("-", " ").capitalize())
    size = f' width="{float(box[1]) * PIXELS:.0f}" height="{float(box[2]) * PIXELS:.0f}"' if box else ""
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<figure class="figure" id="figure-{escape(name)}"><div class="sheet">'
        f'<img decoding="async"{size} alt="{caption}" src="data:image/svg+xml;base64,{data}"></div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def method(comparisons: Sequence[Comparison]) -> str:
    """Say how the page is to be read, and what it does not show."""
    verdicts = "".join(f"<li>{_sign(name)}: {escape(why)}.</li>" for name, (_, _, why) in VERDICTS.items())
    seeds = sorted({c.seeds for c in comparisons})
    span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return Template(asset("method.html")).substitute(
        verdicts=verdicts, seeds=f"{span} seed{'' if span == '1' else 's'}"
    )


def made(facts: Made) -> str:
    """Return what the results were made with: the command, the software, and every setting of the learner by task."""
    command = f"<p>Command: <code>{escape(facts.command)}</code></p>" if facts.command else ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in facts.versions)
    return f'<div class="method">{command}<ul>{lines}</ul></div>{_settings(facts.settings)}'


def settings_line(held: Mapping[str, Any]) -> str:
    """Return the settings of one run as a paragraph."""
    said = ", ".join(f"<code>{escape(name)}</code> {_setting(held, name)}" for name in held)
    return f'<p class="method">{said}.</p>'


def _settings(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of settings, a column for each task; equal ones stand once, above it."""
    names = list(dict.fromkeys(name for held in settings.values() for name in held))
    said = {name: [_setting(held, name) for held in settings.values()] for name in names}
    common = [name for name in names if len(set(said[name])) == 1]
    equal = ", ".join(f"<code>{escape(name)}</code> {said[name][0]}" for name in common)
    heads = "".join(f'<th scope="col" class="words">{escape(task_named(task).title)}</th>' for task in settings)
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(name)}</code></th>'
        + "".join(f'<td class="words">{value}</td>' for value in said[name])
        + "</tr>"
        for name in names
        if name not in common
    )
    differing = (
        '<div class="scroll" role="region" tabindex="0" aria-label="Settings that differ"><table>'
        f"<caption>Settings that differ</caption><thead><tr><td></td>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )
    return f'<p class="method">The same everywhere: {equal or "nothing"}.</p>{differing if rows else ""}'


def _setting(held: Mapping[str, Any], name: str) -> str:
    return escape(_plain(held[name])) if name in held else "–"


def _plain(value: Any) -> str:
    """Return a setting for people.

    >>> _plain(True), _plain([256, 256]), _plain(1_000_000), _plain(0.001)
    ('yes', '256, 256', '1,000,000', '0.001')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
