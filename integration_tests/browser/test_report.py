"""The report in a real browser: Debian's Chromium, driven by Playwright. `LETITCOOK_CHROMIUM` names another one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from letitcook.report.compare import compare, comparison_frame
from letitcook.report.figures import figure_svg, make_figures
from letitcook.report.page import write_page
from tiny_sweep import tiny_sweep

PLACES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tiny_sweep(tmp_path_factory.mktemp("tiny") / "sweep")
    comparisons = compare(results)
    figures = {name: figure_svg(figure) for name, figure in make_figures(results).items()}
    assert figures
    out = tmp_path_factory.mktemp("report")
    (out / "comparison.csv").write_text(comparison_frame(comparisons).write_csv())
    return write_page(results, comparisons, figures, out)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = os.environ.get("LETITCOOK_CHROMIUM") or next(filter(None, map(shutil.which, PLACES)), None)
    assert found, "no Chromium here; install one (apt-get install chromium), or name it in LETITCOOK_CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """The report in a window of its own, with all that went wrong in it."""

    def __init__(self, browser: Browser, report: Path, **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())

    def text(self, name: str) -> str:
        return self.page.locator(f"#p-{name}").inner_text()

    def choose(self, group: str, value: str) -> None:
        self.page.locator(f"input[name='{group}'][value='{value}']").check(force=True)


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Any]:
    """Return what opens the report; at the end nothing went wrong in it, and nothing was fetched."""
    windows: list[Opened] = []

    def open_(**settings: Any) -> Opened:
        windows.append(Opened(browser, report, **settings))
        return windows[-1]

    yield open_
    for window in windows:
        window.context.close()
        assert window.complaints == []
        assert {url.split(":")[0] for url in window.requests} <= {"file", "data"}
        assert {url for url in window.requests if url.startswith("file")} == {report.as_uri()}


def test_the_exact_cook_plays_to_its_end(opened: Any) -> None:
    window = opened()
    page = window.page
    assert (window.text("step"), window.text("steps"), window.text("query")) == ("0", "33", "1")
    page.locator("#p-speed").select_option("4")
    page.locator("#p-play").click()
    expect(page.locator("#p-play")).to_have_attribute("aria-label", "Pause")
    expect(page.locator("#p-step")).to_have_text("33", timeout=20_000)
    expect(page.locator("#p-play")).to_have_attribute("aria-label", "Play")
    assert (window.text("query"), window.text("queries"), window.text("badge")) == ("25", "25", "end")
    outcome = "Finished after 33 steps with 25 queries; 8 steps (24 %) passed without a query."
    assert window.text("outcome") == page.locator("#p-live").text_content() == outcome


def test_the_cook_stands_still_while_the_soup_cooks(opened: Any) -> None:
    window = opened()
    page = window.page
    page.locator("#p-stage").focus()
    page.keyboard.press("Home")
    seen: dict[int, tuple[str, str, bool]] = {}
    for step in range(34):
        assert window.text("step") == str(step)
        facts = page.locator("#p-facts").inner_text()
        cook = page.locator("#p-picture g.moves").nth(2).evaluate("node => node.style.transform")
        waiting = "waiting" in (page.locator("#p-stage").get_attribute("class") or "")
        seen[step] = (cook, facts, waiting)
        page.keyboard.press("ArrowRight")
    assert [step for step, (_, _, waiting) in seen.items() if waiting] == list(range(20, 30))
    assert len({seen[step][0] for step in range(20, 31)}) == 1
    assert len({seen[step][0] for step in range(20)}) > 5
    assert "wait 5, step 3 of 5" in seen[22][1] and "cooking, 8 left" in seen[22][1]
    assert window.text("step") == "33", "there is nothing after the end"


def test_keys_and_buttons(opened: Any) -> None:
    window = opened()
    page = window.page
    stage = page.locator("#p-stage")
    stage.scroll_into_view_if_needed()
    stage.focus()
    place = page.evaluate("scrollY")
    for key, step in (("End", "33"), ("ArrowRight", "33"), ("ArrowLeft", "32"), ("Home", "0"), ("ArrowLeft", "0")):
        page.keyboard.press(key)
        assert window.text("step") == step
    page.keyboard.press("Space")
    expect(page.locator("#p-play")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press("Space")
    expect(page.locator("#p-play")).to_have_attribute("aria-label", "Play")
    assert page.evaluate("scrollY") == place, "keys of the player do not scroll the page"
    for name, step in (("last", "33"), ("back", "32"), ("first", "0"), ("next", "1")):
        page.locator(f"#p-{name}").click()
        assert window.text("step") == step
    page.locator("#p-next").focus()
    page.keyboard.press("End")
    assert window.text("step") == "33"


def test_scrubbing(opened: Any) -> None:
    window = opened()
    page = window.page
    page.locator("#p-scrub").fill("17")
    assert (window.text("step"), window.text("query")) == ("17", "18")
    assert page.locator("#p-scrub").get_attribute("aria-valuetext") == "step 17 of 33 · query 18 of 25"
    timeline = page.locator("#p-timeline")
    width = timeline.evaluate("node => node.clientWidth")
    timeline.click(position={"x": 8 + (width - 16) * 25 / 33, "y": 30})
    assert (window.text("step"), window.text("query")) == ("25", "22")


def test_everything_can_be_reached_and_named_with_the_keyboard(opened: Any) -> None:
    page = opened().page
    page.locator("#p-tasks input").first.focus()
    order = ["task", "p-stage", "p-scrub", "p-first", "p-back", "p-play", "p-next", "p-last", "p-speed", "policy"]
    reached = []
    for _ in order:
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.name"))
        ring = page.evaluate(
            "(() => { const e = document.activeElement; const t = e.matches('input[type=radio]') ? e.nextSibling : e;"
            "return getComputedStyle(t).outlineStyle; })()"
        )
        assert ring != "none", f"no visible focus on {reached[-1]}"
        page.keyboard.press("Tab")
    assert reached == order
    assert page.locator("#player button:not([aria-label])").count() == 0


def test_every_episode_of_every_task(opened: Any) -> None:
    window = opened()
    page = window.page
    data = page.evaluate("JSON.parse(document.getElementById('data').textContent).tasks")
    assert list(data) == ["cook", "coffee", "pong", "cartpole"]
    for task, content in data.items():
        window.choose("task", task)
        for episode in content["episodes"]:
            window.choose("policy", episode["name"])
            length = len(episode["rows"]) - 1
            assert (window.text("steps"), window.text("queries")) == (str(length), str(len(episode["queries"])))
            page.locator("#p-scrub").fill(str(length // 2))
            before = page.locator("#p-picture").screenshot()
            page.locator("#p-scrub").fill("0")
            assert page.locator("#p-picture").screenshot() != before, f"nothing moves in {task}, {episode['name']}"
            page.locator("#p-last").click()
            assert window.text("query") == str(len(episode["queries"]))
            assert ("Finished" if episode["terminated"] else "Cut") in window.text("outcome")


def test_every_number_is_that_of_comparison_csv(opened: Any, report: Path) -> None:
    shown = opened().page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('tr[data-row]')].map(row => [row.dataset.row, "
        "Object.fromEntries([...row.querySelectorAll('[data-col]')].map(c => [c.dataset.col, c.dataset.value]))]))"
    )
    table = pl.read_csv(report.parent / "comparison.csv", infer_schema_length=None)
    assert len(shown) == len(table) > 5
    checked = 0
    for cells, record in zip(shown.values(), table.to_dicts(), strict=True):
        for column, value in cells.items():
            assert (None if value == "" else float(value)) == record[column], column
            checked += 1
    assert checked >= 13 * len(table)


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_no_sideways_scrolling(opened: Any, width: int) -> None:
    window = opened(viewport={"width": width, "height": 800})
    window.page.locator("#summary summary").click()
    for task in ("cook", "coffee", "pong", "cartpole"):
        window.choose("task", task)
        window.choose("plane-task", task)
        assert window.page.evaluate("document.documentElement.scrollWidth") == width
    if width < 400:
        assert window.page.locator(".scroll").first.evaluate("box => box.scrollWidth > box.clientWidth")


def brightness(page: Page) -> float:
    """Return how light the page is, 0 to 1, by its pixels' colour."""
    channels = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    )
    return sum(channels) / 765


def test_dark_and_light(opened: Any) -> None:
    assert brightness(opened(color_scheme="light").page) > 0.9
    page = opened(color_scheme="dark").page
    assert brightness(page) < 0.15
    button = page.locator("#theme")
    for name, dark in (("light", False), ("dark", True), ("auto", True), ("light", False)):
        button.click()
        assert button.inner_text() == name
        assert (brightness(page) < 0.15) == dark
    page.reload()
    assert (button.inner_text(), brightness(page) > 0.9) == ("light", True)


def test_calm_where_motion_is_unwanted(opened: Any) -> None:
    moving = "getComputedStyle(document.querySelector('#p-picture .moves')).transitionDuration"
    for wish, still in (("reduce", True), ("no-preference", False)):
        page = opened(reduced_motion=wish).page
        page.locator("#p-next").click()
        assert (page.evaluate(moving) == "0s") == still


def test_the_plane_tells_of_its_rows(opened: Any) -> None:
    window = opened()
    tip = window.page.locator("#tip")
    assert tip.is_hidden()
    mark = window.page.locator(".mark").last
    mark.focus()
    assert "ours, lexicographic" in tip.inner_text() and "steps" in tip.inner_text()
    mark.evaluate("node => node.blur()")
    assert tip.is_hidden()
    window.page.locator(".mark").last.hover()
    assert tip.is_visible()
    assert "cook/lexicographic/scratch" in (mark.get_attribute("aria-label") or "")
    window.choose("plane-mode", "wrap")
    assert "cook/lexicographic/wrap" in (window.page.locator(".mark").last.get_attribute("aria-label") or "")


def test_only_rows_that_differ(opened: Any) -> None:
    page = opened().page
    rows = page.locator("tr[data-row]")
    before = rows.count()
    page.locator("#only-differing").check()
    shown = [rows.nth(n).get_attribute("data-verdict") for n in range(before) if rows.nth(n).is_visible()]
    assert 0 < len(shown) < before
    assert "same" not in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(opened: Any, scheme: str) -> None:
    window = opened(color_scheme=scheme)
    window.page.locator("#summary summary").click()
    found = Axe().run(window.page)
    assert found.violations_count == 0, found.generate_report()
