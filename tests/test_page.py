from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from letitcook import task_named
from letitcook.adapters import CallablePolicy
from letitcook.experiments.jobs import Exact
from letitcook.experiments.results import Results
from letitcook.experiments.suites import PaperRow, Row, paper_rows, paper_tasks
from letitcook.report.compare import Comparison, compare, comparison_frame
from letitcook.report.page import TITLES, page, write_page
from letitcook.report.traces import NamedTrace, exact_policy, trace
from letitcook.report.verdicts import VERDICTS, Sample, difference, value_of
from tiny_sweep import tiny_sweep

FIGURE = (
    '<svg viewBox="0 0 300 200" role="img" aria-label="Bars &amp; &lt;dots&gt;." xmlns="http://www.w3.org/2000/svg"/>'
)
VOID = {"meta", "link", "input", "img"}


class Elements(HTMLParser):
    """Keeps every element with its attributes, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.found if (value := attributes.get(attribute)) is not None]


def rows_of(text: str) -> dict[str, dict[str, str]]:
    """Return each row's numbers as the page holds them."""
    rows: dict[str, dict[str, str]] = {}
    for _, attributes in Elements(text).found:
        if name := attributes.get("data-row"):
            rows[name] = {}
        elif column := attributes.get("data-col"):
            rows[name_of_last(rows)][column] = attributes["data-value"] or ""
    return rows


def name_of_last(rows: dict[str, Any]) -> str:
    return next(reversed(rows))


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return tiny_sweep(tmp_path_factory.mktemp("tiny") / "sweep", ("cook", "cartpole/lexicographic/wrap"))


@pytest.fixture(scope="module")
def text(results: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write_page(results, compare(results), {"bars": FIGURE}, tmp_path_factory.mktemp("out"))
    assert path.name == "report.html"
    return path.read_text(encoding="utf-8")


def every_paper_row() -> list[Comparison]:
    """Return comparisons in which ours is what the paper reports."""
    return [
        Comparison(p.row, p.n, p.length, p.length_sd, p.queries, p.queries_sd, -p.length, p.length_sd, p, None)
        for p in paper_rows().values()
    ]


def test_every_number_of_the_comparison_is_there_in_full(results: Results, text: str) -> None:
    comparisons = compare(results)
    held = rows_of(text)
    assert list(held) == [c.row.id for c in comparisons]
    for c, record in zip(comparisons, comparison_frame(comparisons).to_dicts(), strict=True):
        words = ("task", "mode", "method", "lambda", "variant", "at_optimum", "verdict", "reason")
        numbers = {k: v for k, v in record.items() if k not in words}
        assert set(held[c.row.id]) == set(numbers)
        for name, value in numbers.items():
            shown = held[c.row.id][name]
            assert (None if shown == "" else float(shown)) == value


def test_ids_are_unique_and_links_lead_somewhere(text: str) -> None:
    elements = Elements(text)
    assert max(Counter(elements.all("id")).values()) == 1
    inside = [link for link in elements.all("href") if link.startswith("#")]
    assert len(inside) > 6
    assert {link[1:] for link in inside} <= set(elements.all("id"))
    for reference in ("aria-labelledby", "aria-describedby"):
        assert set(elements.all(reference)) <= set(elements.all("id"))


def test_nothing_is_loaded_from_elsewhere(text: str) -> None:
    elements = Elements(text)
    assert {link.split(":")[0] for link in elements.all("src") + elements.all("href") if link[0] != "#"} == {"data"}
    assert set(re.findall(r"https?://[^\s\"'<>\\]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|<iframe|<object|\bfetch\(|XMLHttpRequest|import\(", text)


def test_the_security_policy_names_the_very_script_and_style(text: str) -> None:
    (policy,) = [a["content"] for tag, a in Elements(text).found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:; ")
    for name, pattern in (
        ("style-src", "<style>(.*?)</style>"),
        ("script-src", '<script type="module">(.*?)</script>'),
    ):
        content = re.search(pattern, text, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert Elements(text).all("style") == []
    assert [name for _, attributes in Elements(text).found for name in attributes if name.startswith("on")] == []


def test_figures_are_images_with_their_captions(text: str) -> None:
    ((_, image),) = [found for found in Elements(text).found if found[0] == "img"]
    assert image["alt"] == "Bars & <dots>."
    assert base64.b64decode((image["src"] or "").split(",")[1]).decode() == FIGURE
    assert (image["width"], image["height"]) == ("480", "320")
    assert "<figcaption>Bars &amp; &lt;dots&gt;.</figcaption>" in text


def test_no_figures_no_section(results: Results) -> None:
    assert 'href="#figures"' not in page(results, compare(results), {}, [])


def test_the_player_has_every_primitive_step(text: str) -> None:
    cook = data_of(text)["tasks"]["cook"]
    assert [e["name"] for e in cook["episodes"]] == [
        "exact", "lexicographic", "vanilla", "exact wrapped", "wrapped", "base"
    ]  # fmt: skip
    exact = cook["episodes"][0]
    assert (len(exact["rows"]), len(exact["queries"])) == (34, 25)
    episode = trace("cook", "scratch", exact_policy("cook", "scratch"))
    assert [dict(zip(exact["fields"], row, strict=True)) for row in exact["rows"]] == episode.states
    assert exact["queries"] == [[q.time, q.steps, int(q.wait), q.label, q.work] for q in episode.queries]
    assert [e["name"] for e in data_of(text)["tasks"]["cartpole"]["episodes"]] == ["wrapped"]


def test_the_plane_has_the_exact_front(text: str) -> None:
    fronts = data_of(text)["fronts"]
    assert fronts["cook/scratch"] == [[33, 25], [37, 23], [200, 14]]
    assert set(fronts) == {"cook/scratch", "cook/wrap"}


def test_the_same_results_give_the_same_page(results: Results, text: str, tmp_path: Path) -> None:
    again = write_page(results, compare(results), {"bars": FIGURE}, tmp_path)
    assert again.read_text(encoding="utf-8") == text


def test_whatever_data_hold_is_text(results: Results) -> None:
    evil = '"><script>alert(1)</script><!--&'
    row = Row("cook", "scratch", "scalar", 0.5, variant=evil)
    comparison = Comparison(row, 1, 33.0, 0.0, 25.0, 0.0, -45.5, 0.0, None, None)
    episode = trace("cook", "scratch", CallablePolicy(lambda observation: 4))
    query = replace(episode.queries[0], label=evil, work=evil)
    named = NamedTrace("exact", evil, replace(episode, queries=[query, *episode.queries[1:]]))
    text = page(replace(results, suite=evil), [comparison], {evil: "<svg/>"}, [named])
    assert "<script>alert" not in text and "<!--" not in text
    assert rows_of(text)[row.id]["length_mean"] == "33.0"
    assert data_of(text)["tasks"]["cook"]["episodes"][0]["queries"][0][3] == evil
    assert data_of(text)["plane"][0]["id"] == row.id
    assert html.escape(evil) in text


def longest_episodes() -> Iterator[NamedTrace]:
    for task in (task.name for task in paper_tasks()):
        episode = trace(task, "scratch", CallablePolicy(lambda observation, task=task: task_named(task).wait))  # type: ignore[misc]
        yield from (NamedTrace(name, "a run", episode) for name in TITLES)


def test_the_whole_paper_is_below_ten_megabytes(results: Results) -> None:
    episodes = list(longest_episodes())
    text = page(results, every_paper_row(), {}, episodes)
    assert len(rows_of(text)) == 166
    assert len(data_of(text)["tasks"]) == 7
    assert len(text.encode()) < 5_000_000, "leaves as much for the figures"
    assert "166 <small>of 166</small>" in text


PAPER = PaperRow(Row("cook", "scratch", "lexicographic"), 33.0, 0.0, 25.0, 1.0, seeds=10)


def compared(length: float, queries: float, sd: float = 0.0, seeds: int = 10, **row: Any) -> Comparison:
    """Return a row of ours beside 33±0 steps and 25±1 queries of the paper's."""
    mine = replace(PAPER.row, **row)
    value = value_of(mine.method, mine.lam, mine.task, length, queries)
    paper = replace(PAPER, row=mine)
    return Comparison(mine, seeds, length, sd, queries, sd, value, sd, paper, Exact(33.0, 25.0))


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (compared(33.0, 25.0), "same"),
        (compared(33.0005, 24.8), "same"),
        (compared(33.0, 26.5, sd=2.5), "same"),  # p = 0.11
        (compared(33.0, 28.0, sd=2.5), "worse"),  # p = 0.004
        (compared(33.0, 28.0, sd=2.5, seeds=3), "same"),  # p = 0.17: three seeds cannot tell
        (compared(33.0, 27.0, seeds=1), "same"),
        (compared(33.0, 29.0, seeds=1), "worse"),
        (compared(33.0, 22.0), "better"),
        (compared(33.1, 25.0), "worse"),
        (compared(35.0, 20.0), "worse"),
        (compared(31.0, 40.0), "better"),
        (compared(35.0, 20.0, method="scalar", lam=1.0), "better"),
        (compared(33.5, 24.5, method="scalar", lam=1.0), "other"),
        (compared(35.0, 24.0, method="scalar", lam=0.1), "worse"),
        (compared(33.0, 40.0, method="scalar", lam=0.0), "other"),
        (compared(35.0, 35.0, method="vanilla"), "worse"),
        (compared(35.0, 25.0, task="cartpole"), "better"),
        (replace(compared(33.0, 25.0), paper=None), "new"),
    ],
)
def test_verdicts(comparison: Comparison, expected: str) -> None:
    assert comparison.verdict == expected
    assert expected in VERDICTS
    assert bool(comparison.reason) == (expected not in ("same", "new"))


def test_differences_are_welchs_test() -> None:
    dice = np.random.default_rng(0)
    for n in (2, 5, 10):
        a, b = dice.normal(3.0, 1.0, n), dice.normal(2.0, 3.0, 10)
        found = difference(*(Sample(x.mean(), x.std(ddof=1), len(x)) for x in (a, b)))
        expected = stats.ttest_ind(a, b, equal_var=False)
        assert found.p == pytest.approx(expected.pvalue)
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_a_row_that_is_the_same_is_called_so_in_95_of_100_cases() -> None:
    dice, same = np.random.default_rng(1), 0
    for _ in range(1_000):
        ours, paper = dice.normal((33.0, 25.0), (1.0, 3.0), (10, 2)), dice.normal((33.0, 25.0), (1.0, 3.0), (10, 2))
        (length, q), (sd, q_sd) = ours.mean(axis=0), ours.std(axis=0, ddof=1)
        p, p_sd = paper.mean(axis=0), paper.std(axis=0, ddof=1)
        row = replace(PAPER, length=p[0], length_sd=p_sd[0], queries=p[1], queries_sd=p_sd[1])
        same += Comparison(PAPER.row, 10, length, sd, q, q_sd, -length, sd, row, None).verdict == "same"
    assert 930 <= same <= 970


def test_printed_means_fit_the_number_of_seeds() -> None:
    """Lengths and queries of a finite task are whole numbers, so that a mean over n seeds is a multiple of 1/n."""
    for paper in paper_rows().values():
        if task_named(paper.row.task).finite:
            for mean in (paper.length, paper.queries):
                assert abs(mean - round(mean * paper.n) / paper.n) < 0.00051, paper.row.id


def test_at_the_optimum_is_every_seed() -> None:
    assert compared(33.0, 25.0).at_optimum
    assert not compared(33.0, 25.0, sd=0.1).at_optimum
    assert not compared(33.0, 26.0).at_optimum
    assert replace(compared(33.0, 30.0, method="scalar", lam=0.0), exact=Exact(33.0, None)).at_optimum
    assert not replace(compared(33.0, 25.0), exact=None).at_optimum
    assert compared(35.0, 24.0, method="scalar", lam=2.0).at_optimum, "another policy of the same value"
    assert not compared(35.0, 24.0, method="scalar", lam=1.0).at_optimum


def test_rows_that_differ_are_listed_with_a_reason(results: Results) -> None:
    rows = [compared(33.0, 25.0), compared(35.0, 20.0, mode="wrap"), compared(37.0, 23.0, method="scalar", lam=9.0)]
    text = page(results, rows, {}, [])
    listed = text[text.index('class="differing"') : text.index("</details>")]
    assert re.findall(r'href="#([^"]*)"', listed) == ["cook/lexicographic/wrap", "cook/scalar-9/scratch"]
    assert "35 / 20, paper 33 / 25 steps / queries, exact 33 / 25: not known" in listed
    assert "The 2 rows that differ" in text and "1 <small>of 3</small>" in text


def test_intervals_are_read_where_they_are_not_points(results: Results) -> None:
    wide = replace(compared(33.0, 25.4, sd=1.3), length_interval=(33.0, 33.0), queries_interval=(25.0, 26.25))
    text = page(results, [wide], {}, [])
    held = rows_of(text)["cook/lexicographic/scratch"]
    assert (held["length_low"], held["queries_low"], held["queries_high"]) == ("33.0", "25.0", "26.25")
    (shown,) = re.findall(r'<span class="ci">(.*?)</td>', text)
    assert re.sub("<[^>]*>", "", shown) == "[25, 26.2]"
    assert text.count('<span class="ci" hidden>') == 1
