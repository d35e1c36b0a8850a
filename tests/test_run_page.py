"""The page of a certified run: what it says is what the run's folder holds."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from letitcook import Learned, learn, load, make
from letitcook.report.run_page import run_page, write_run_page
from signing import sign
from test_certificate_data import CERTIFIED, NOT, TESTED
from test_page import Elements

CODE = """
def push(observation):
    return [1.0 if observation[1] >= 0 else -1.0]
"""
ROW = {"kind": "schedule", "saved": 0.5, "difference": 3e-14, "difference_se": 0.1, "episodes": 10}
ROWS = [{**ROW, "name": "every 3 steps", "certificate": TESTED}, {**ROW, "name": "<b>", "certificate": None}]


@pytest.fixture(scope="module")
def run() -> Learned:
    learned = learn(make("cook", mode="wrap"), steps=100, progress=False)
    choice = {"name": "every 3 steps", "base_itself": False, "candidates": ROWS}
    return replace(learned, certificate=CERTIFIED, choice=choice)


def values_of(text: str) -> dict[str, str]:
    found = [attributes for _, attributes in Elements(text).found if "data-col" in attributes]
    return {str(a["data-col"]): str(a["data-value"]) for a in found}


def words_of(text: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<script.*?</script>|<[^>]+>", " ", text, flags=re.DOTALL).split())


def test_a_certified_run_says_margin_bound_episodes_and_what_was_spent(run: Learned) -> None:
    text = run_page(run, "my-run", "letitcook 0")
    held = values_of(text)
    for name in ("margin", "bound", "difference", "episodes", "failed", "failure_bound", "at_stake"):
        assert float(held[name]) == TESTED[name]
    assert (held["base_queries"], held["spent_episodes"], held["seconds"]) == ("30", "2", "1.5")
    said = words_of(text)
    assert "certified yes" in said and "Not certified" not in said
    assert "50.0% of the policy's queries are saved, and the mean task return falls by less than 1" in said
    assert "every 3 steps ★" in said and "played the same episodes" in said and "around a student" not in said
    assert "e-14" not in said.replace("−", "-")
    assert "<b>" not in text.partition('id="candidates"')[2].partition("</section>")[0]  # names are text


def test_a_run_without_a_certificate_says_who_came_nearest_and_why_not(run: Learned) -> None:
    near = {"name": "every 3 steps", "bound": TESTED["bound"], "episodes": TESTED["episodes"]}
    text = run_page(replace(run, certificate={**NOT, "nearest": near, "paired": False}), "my-run")
    said, held = words_of(text), values_of(text)
    assert "Not certified" in said and "queried at every step" in said and "Nearest came “every 3 steps”" in said
    assert (held["certified"], float(held["bound"]), held["episodes"]) == ("False", TESTED["bound"], "800")
    assert held["reason"] == TESTED["reason"]
    assert "around a student" in said and "different episodes" in said
    untested = run_page(replace(run, certificate=NOT), "my-run")
    assert "Nothing was tested" in words_of(untested) and "<svg" not in untested


@pytest.mark.parametrize("difference", [-0.02, 5.0, 0.0])
def test_the_drawing_is_in_order_and_within_its_width(run: Learned, difference: float) -> None:
    facts = {**CERTIFIED, "difference": difference, "bound": -0.5}
    elements = Elements(run_page(replace(run, certificate=facts), "my-run"))
    at = {str(a["class"]): float(str(a["x1"]).rstrip("%")) for t, a in elements.found if t == "line"}
    values = {"m-margin": -1.0, "m-bound": -0.5, "m-zero": 0.0, "m-found": difference}
    order = sorted(values, key=lambda name: (values[name], at[name]))
    assert [at[name] for name in order] == sorted(at[name] for name in order)
    shares = np.array([at[name] for name in order])
    assert shares.min() == 12.0 and shares.max() == 88.0


def test_the_page_opens_from_disk_and_every_link_leads_somewhere(run: Learned) -> None:
    elements = Elements(run_page(run, "my-run"))
    ids = elements.all("id")
    assert len(set(ids)) == len(ids)
    assert {link[1:] for link in elements.all("href") if link.startswith("#")} <= set(ids)
    assert elements.all("style") == [] and elements.all("src") == []


def test_the_command_reports_a_wrapper(call: Any, tmp_path: Path) -> None:
    (tmp_path / "my_push.py").write_text(CODE)
    importlib.invalidate_caches()
    wrap = ("wrap", "--env", "MountainCarContinuous-v0", "--policy", "my_push:push", "--wait", "hold")
    options = ("--durations", "2,4", "--steps", "0", "--env-arg", "max_episode_steps=40", "--margin", "50")
    code, _, err = call(*wrap, *options, "--out", "run")
    sys.modules.pop("my_push", None)
    assert code == 0, err
    code, out, _ = call("report", "run")
    assert code == 0 and out.strip() == "run/report.html"
    saved = load(tmp_path / "run").certificate  # the page beside it does not matter
    assert saved is not None
    held = values_of((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert (held["certified"], float(held["margin"])) == (str(saved["certified"]), 50.0)
    assert int(held["base_queries"]) == saved["spent"]["base_queries"] > 0
    assert json.loads(call("report", "run", "--json")[1])["report"] == "run/report.html"


def test_what_cannot_be_reported_is_said_in_a_line(call: Any, run: Learned, tmp_path: Path) -> None:
    replace(run, certificate=None).save(tmp_path / "plain")
    code, _, err = call("report", "plain")
    assert code == 2 and "without a certificate" in err and "letitcook evaluate plain" in err
    folder = run.save(tmp_path / "odd")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["choice"] = {"candidates": [{"name": 3}]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    sign(folder)
    code, _, err = call("report", "odd")
    assert code == 2 and "damaged" in err and len(err.strip().splitlines()) == 1
    assert not (folder / "report.html").exists()
    code, _, err = call("report", "nowhere")
    assert code == 2 and "manifest.json is missing" in err


def test_a_file_is_written_beside_the_run(run: Learned, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    assert write_run_page(folder).parent == folder
    assert load(folder).certificate == CERTIFIED
