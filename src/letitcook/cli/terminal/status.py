"""How far a sweep is, read from its folder; the sweep itself may be at work meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from letitcook.core.decisions import Timesteps
from letitcook.errors import FileFormatError
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.suites import Run
from letitcook.storage import folders


def status_of(out: Path) -> dict[str, Any]:
    """Return what is done, under way and failed, as plain data."""
    suite = sweeps.read_suite_manifest(out)
    runs = suite.all_runs
    done = {run for run in runs if sweeps.finished(out, run)}
    rows = {run.row for run in suite.runs}
    unfinished = {run: _passed(out, run) for run in runs if run not in done}
    failures = {}
    for run in runs:
        log = sweeps.failure_log(out, run)
        if log.is_file():
            failures[run.id] = {"reason": _reason(log), "log": str(log)}
    return {
        "suite": suite.name,
        "at_work": sweeps.at_work(out),
        "runs": len(runs),
        "runs_done": len(done),
        "rows": len(rows),
        "rows_done": len(rows - {run.row for run in suite.runs if run not in done}),
        "timesteps": sum(run.steps for run in runs),
        "timesteps_done": sum(run.steps for run in done) + sum(unfinished.values()),
        "checkpoints": {run.id: str(Timesteps(passed, run.unit)) for run, passed in unfinished.items() if passed},
        "failures": failures,
    }


def _reason(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[1] if len(lines) > 1 else "its log is damaged"


def _passed(out: Path, run: Run) -> int:
    """Return how far the checkpoint of a run is, in the unit of its length; 0 if there is none."""
    try:
        manifest = folders.read_manifest(sweeps.unfinished_folder(out, run), "run")
        return int(manifest["steps" if run.unit == "step" else "decisions_taken"])
    except (FileFormatError, KeyError, TypeError, ValueError):
        return 0


def status_lines(facts: dict[str, Any]) -> list[str]:
    """Return the same for people."""
    work = "at work" if facts["at_work"] else "finished" if facts["runs_done"] == facts["runs"] else "not running"
    lines = [
        f"{facts['suite']}: {facts['runs_done']} of {facts['runs']} runs, {facts['rows_done']} of {facts['rows']} "
        f"rows, {100 * facts['timesteps_done'] / max(facts['timesteps'], 1):.0f}% of the timesteps; {work}"
    ]
    lines += [f"  at {passed}: {name}" for name, passed in facts["checkpoints"].items()]
    for name, failure in facts["failures"].items():
        lines += [f"  failed: {name}: {failure['reason']}", f"    log: {failure['log']}"]
    return lines
