"""The whole report of a sweep: figures as PDF and PNG, and one page that opens from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from letitcook.experiments.results import Results
from letitcook.report.compare import Comparison
from letitcook.report.figures import figure_svg, make_figures, write_figures
from letitcook.report.page import write_page


def write_report(results: Results, comparisons: Sequence[Comparison]) -> Path:
    """Write `report.html` and `figures/` into the sweep's folder, and return the page's path."""
    figures = make_figures(results)
    write_figures(figures, results.folder / "figures")
    return write_page(results, comparisons, {name: figure_svg(f) for name, f in figures.items()}, results.folder)
