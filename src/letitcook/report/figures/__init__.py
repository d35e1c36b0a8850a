"""Figures of the results: the paper's, and the plane of length and queries with the exact front.

`make_figures` returns them by name, `write_figures` writes each as PDF and PNG, `figure_svg` is for web pages. What the
results have nothing for is left out. The same results give the same bytes. `settling_times` is the table of what the
figure of sample efficiency shows.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from letitcook.experiments.results import Results
from letitcook.report.figures.curves import learning_curves
from letitcook.report.figures.durations import wait_durations
from letitcook.report.figures.efficiency import efficiency, pong, settling_times
from letitcook.report.figures.episode import episode
from letitcook.report.figures.methods import methods
from letitcook.report.figures.plane import plane
from letitcook.report.figures.rooms import rooms
from letitcook.report.figures.style import style
from letitcook.storage import folders

__all__ = ["CAPTIONS", "figure_svg", "make_figures", "settling_times", "write_figures"]

_ROOT = (
    'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'style="stroke-linejoin:round;stroke-linecap:butt"'
)
_WHERE = {"scratch": "from scratch", "wrap": "wrapped around a base policy"}
_MEASURES = {"length": "Episode length", "queries": "Queries an episode", "scalar": "Scalarised return"}
FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "episode": episode,
    "rooms": rooms,
    "wait-durations": wait_durations,
    **{f"methods-{mode}": partial(methods, mode=mode) for mode in _WHERE},
    **{f"plane-{mode}": partial(plane, mode=mode) for mode in _WHERE},
    **{
        f"curves-{measure}-{mode}": partial(learning_curves, measure=measure, mode=mode)
        for mode in _WHERE
        for measure in _MEASURES
    },
    "efficiency": efficiency,
    "pong-curves": pong,
}
CAPTIONS: dict[str, str] = {
    "episode": (
        "The end of an exactly optimal episode of Cook: the cook commits to a wait while the soup cooks, does not look "
        "until it is over, takes the soup and serves it. Below the pictures the decisions, below them the whole "
        "episode; its part that is shown is marked."
    ),
    "rooms": (
        "The worlds. Green, dashed: the way of the errand that fits into a wait of 15 steps while the coffee brews. "
        "Kitchen and coffee room are reconstructions."
    ),
    "wait-durations": (
        "Share of the steps that the best lexicographic policy of each task spends acting and in waits of each "
        "duration: the seed with the highest task return, then the fewest queries, mean of its fresh evaluation "
        "episodes. The numbers are steps, those above the bars the episode's length."
    ),
    **{
        f"methods-{mode}": (
            f"Length (whole bar) and queries (dark part) of an episode, {where}, as parts of the length of vanilla "
            "from scratch; the numbers are steps and queries. Means over seeds with one standard deviation. The "
            "markers are the paper's, as parts of its own vanilla's length. The best scalarised λ is the one with the "
            "best mean task return, then the fewest queries; the paper's is chosen likewise."
        )
        for mode, where in _WHERE.items()
    },
    **{
        f"plane-{mode}": (
            f"Length against queries, {where}: every λ (the numbers) and the lexicographic result, full markers the "
            "means over seeds, dots the seeds, hollow markers the paper's. On the right what is in the grey frame. "
            "Black is the exact Pareto front: no episode is below it, though the mean of different seeds can be."
        )
        for mode, where in _WHERE.items()
    },
    **{
        f"curves-{measure}-{mode}": (
            f"{name} of the greedy policy during training, {where}: means over seeds, bands of one standard deviation "
            "over seeds at each evaluation. Where there are many evaluations, means and deviations of neighbouring "
            "ones are averaged."
        )
        for mode, where in _WHERE.items()
        for measure, name in _MEASURES.items()
    },
    "efficiency": (
        "The lexicographic method from scratch against wrapped around a base policy: means over seeds with their 95% "
        "bootstrap intervals. A curve has settled where its mean stays within 2% of its level in the last tenth of "
        "the run (dotted lines, numbers above the panels; – where it never does). The training of the base policy "
        "itself is not counted."
    ),
    "pong-curves": (
        "Pong, and its lexicographic learning curves from scratch against wrapped around a base policy: means over "
        "seeds with their 95% bootstrap intervals; dotted lines and numbers as in the figure of all tasks."
    ),
}
"""What each figure shows."""


def make_figures(results: Results) -> dict[str, Figure]:
    """Return the figures that the results have something for, by name; `CAPTIONS` has a caption for each.

    >>> import polars as pl
    >>> from letitcook.experiments.results import CURVES, RUNS
    >>> make_figures(Results(Path("out"), "smoke", pl.DataFrame(schema=RUNS), pl.DataFrame(schema=CURVES), optima={}))
    {}
    """
    figures = {}
    with style():
        for name, make in FIGURES.items():
            figure = make(results)
            if figure is not None:
                figure.set_label(CAPTIONS[name])
                figures[name] = _placed(figure)
    return figures


def write_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write each figure as PDF and PNG into a folder, and return the files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in write_figures({"nothing": Figure()}, Path(place))]
    ['nothing.pdf', 'nothing.png']
    """
    written = []
    for name, figure in figures.items():
        for kind in ("pdf", "png"):
            path = folder / f"{name}.{kind}"
            folders.write_file(path, _bytes(figure, kind))
            written.append(path)
    return written


def figure_svg(figure: Figure) -> str:
    """Return a figure as an `<svg>` element to put into a web page; its caption is the label for those who cannot see.

    Letters are shapes, so that it looks the same everywhere; nothing is fetched from elsewhere. Ids begin with a hash
    of the figure, so that several can stand in one page.

    >>> text = figure_svg(Figure(figsize=(1, 1), label="Nothing at all."))
    >>> text[:45], text[-6:], 'aria-label="Nothing at all."' in text
    ('<svg viewBox="0 0 72 72" role="img" aria-labe', '</svg>', True)
    """
    drawn = _bytes(figure, "svg").decode()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    # Matplotlib's style sheet would hold for the whole page; the root's style does the same within the figure.
    text = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", text, count=1)
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None
    root = f'<svg {view[0]} role="img" aria-label="{html.escape(str(figure.get_label()))}" {_ROOT}>'
    text = re.sub(r"<svg[^>]*>", lambda _: root, text, count=1)
    used, prefix = set(re.findall(r"#([\w-]+)[\")]", text)), "f" + hashlib.sha256(text.encode()).hexdigest()[:8]
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r' d="[^"]*"', lambda m: re.sub(r"\d+\.\d{3,}", lambda n: f"{float(n[0]):.2f}", m[0]), text)
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def _placed(figure: Figure) -> Figure:
    """Place everything in a figure, once for all formats."""
    figure.draw_without_rendering()
    with style(placed=True):
        figure.set_layout_engine(None)
    return figure


def _bytes(figure: Figure, kind: str) -> bytes:
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    buffer = io.BytesIO()
    with style(placed=True):
        figure.savefig(buffer, format=kind, metadata=dateless[kind])
    return buffer.getvalue()
