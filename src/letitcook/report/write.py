"""The whole report of a sweep: tables, figures as PDF and PNG, and one page that opens from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from letitcook.experiments.results import Results, write_tables
from letitcook.report.compare import Comparison, compare, write_comparison
from letitcook.report.figures import figure_svg, make_figures, write_figures
from letitcook.report.page import write_page
from letitcook.report.traces import NamedTrace


def write_report(results: Results, episodes: Sequence[NamedTrace] | None = None) -> tuple[Path, list[Comparison]]:
    """Write all tables, `figures/` and `report.html` into the results' folder; return the page's path and its rows.

    `episodes` are what the page's player shows, those of the results if not given.
    """
    write_tables(results)
    comparisons = compare(results)
    write_comparison(results, comparisons)
    figures = make_figures(results)
    write_figures(figures, results.folder / "figures")
    pictures = {name: figure_svg(figure) for name, figure in figures.items()}
    return write_page(results, comparisons, pictures, results.folder, episodes), comparisons
