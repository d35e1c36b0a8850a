from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from letitcook.errors import LetItCookError, SettingError, SuiteError
from letitcook.experiments.suite_file import CHECKS, parse_suite, read_suite
from letitcook.experiments.suites import BASE_SEEDS, Row, Run
from letitcook.tasks import task_names

PAGE = Path(__file__).parent.parent / "docs" / "suites.md"
EXAMPLE, SMALLEST = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
IDS, MISTAKE = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
ALL_TASKS = ", ".join(task_names())


def runs_of(text: str) -> tuple[Run, ...]:
    return parse_suite(text, "my.toml").runs


def ids(text: str) -> list[str]:
    """Return the ids of the rows, each once."""
    return list(dict.fromkeys(run.row.id for run in runs_of(text)))


def mistake(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        parse_suite(text, "my.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What a file makes


def test_the_example_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "slack.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    suite = read_suite(file)
    assert suite.name == "slack-study"
    assert ids(EXAMPLE) == IDS.split()
    assert (len(suite.runs), len(IDS.split())) == (80, 16)
    assert "makes 80 runs in 16 rows" in PAGE.read_text(encoding="utf-8")
    assert set(Counter(run.row for run in suite.runs).values()) == {5}
    assert {(run.steps, run.preset) for run in suite.runs} == {(200_000, "paper")}
    assert suite.runs[0] == Run(
        Row("pong", "scratch", "lexicographic", variant="slack=1"), 0, 200_000, changes=(("slack", 1.0),)
    )
    wide = suite.runs[-1]
    assert wide.id == "pong/lexicographic+wide/wrap/seed4"
    assert wide.changes == (("hidden", (128, 128)), ("slack", 3.0))
    assert (wide.settings()["slack"], wide.settings()["hidden"]) == (3.0, [128, 128])


def test_the_mistake_of_the_page() -> None:
    with pytest.raises(SuiteError) as caught:
        parse_suite(EXAMPLE.replace('["pong", "cartpole"]', '["pongg"]'), "slack-study.toml")
    assert f"{caught.value}\n" == MISTAKE


def test_the_page_has_every_key() -> None:
    table = re.findall(r"^\| `\[*(\w+)\]*` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert table == [*CHECKS, "rows"]


def test_the_smallest_file_has_the_papers_settings() -> None:
    suite = parse_suite(SMALLEST, "folder/my-study.toml")
    assert suite.name == "my-study"
    assert suite.runs == tuple(Run(Row("cook", "scratch", "lexicographic"), seed, 10_000_000) for seed in range(3))
    assert {str(run.length) for run in runs_of('tasks = ["pong"]')} == {"1,000,000 decisions"}


def test_how_long_runs_are() -> None:
    rows = "[[rows]]\n[[rows]]\nname = 'a'\nsteps = 20\n[[rows]]\nname = 'b'\npreset = 'best'"
    text = f"tasks = ['pong']\ndecisions = 30\n{rows}"
    assert [str(run.length) for run in runs_of(text)[::3]] == ["30 decisions", "20 steps", "30 decisions"]
    said = "steps and decisions both say how long to train; leave one of them out"
    assert mistake("tasks = ['pong']\nsteps = 1\ndecisions = 1") == f"my.toml:3: {said}"
    assert mistake("tasks = ['pong']\n[[rows]]\n[[rows]]\nsteps = 1\ndecisions = 1") == f"my.toml:5: {said}"
    assert mistake("tasks = ['pong']\ndecisions = 0").startswith("my.toml:2: decisions = 0 is not allowed; give")


def test_the_product() -> None:
    text = """
    tasks = ["cook", "pong"]
    modes = ["wrap", "scratch"]
    methods = ["vanilla", "scalar"]
    lambdas = [1, 0.1, 20]
    seeds = [7, 3]
    """
    assert [run.id for run in runs_of(text)] == [
        f"{task}/{method}/{mode}/seed{seed}"
        for task in ("cook", "pong")
        for mode in ("wrap", "scratch")
        for method in ("vanilla", "scalar-1", "scalar-0.1", "scalar-20")
        if (mode, method) != ("wrap", "vanilla")
        for seed in (7, 3)
    ]
    assert {run.row.lam for run in runs_of(text)} == {None, 0.1, 1.0, 20.0}
    assert all(type(run.row.lam) in (float, type(None)) for run in runs_of(text))


def test_blocks_take_the_place_of_the_top() -> None:
    text = """
    tasks = ["cook"]
    methods = ["scalar"]
    lambdas = [1]
    seeds = 1
    steps = 10
    settings = {alpha = 0.5, slack = 2}
    [[rows]]
    [[rows]]
    tasks = ["coffee"]
    methods = ["lexicographic"]
    modes = ["wrap"]
    seeds = [4]
    steps = 20
    preset = "exact"
    settings.slack = 3
    [[rows]]
    name = "half"
    settings.epsilon = 0.25
    """
    assert runs_of(text) == (
        Run(
            Row("cook", "scratch", "scalar", 1.0, "alpha=0.5,slack=2"), 0, 10, "paper", (("alpha", 0.5), ("slack", 2.0))
        ),
        Run(
            Row("coffee", "wrap", "lexicographic", None, "alpha=0.5,slack=3"),
            4,
            20,
            "exact",
            (("alpha", 0.5), ("slack", 3.0)),
        ),
        Run(
            Row("cook", "scratch", "scalar", 1.0, "half"),
            0,
            10,
            "paper",
            (("alpha", 0.5), ("epsilon", 0.25), ("slack", 2.0)),
        ),
    )
    exact = runs_of(text)[1].settings()
    assert (exact["alpha"], exact["slack"], exact["backward_replay"]) == (0.5, 3.0, True)


def test_the_name_on_top_is_no_variant() -> None:
    suite = parse_suite('name = "top"\ntasks = ["cook"]\nseeds = 1\n[[rows]]', "my.toml")
    assert (suite.name, suite.runs[0].row.variant) == ("top", "")
    assert ids('name = "top"\ntasks = ["cook"]') == ["cook/lexicographic/scratch"]


@pytest.mark.parametrize(
    ("told", "variant"),
    [
        ("", ""),
        ("slack = 1", "slack=1"),
        ("slack = 1.0", "slack=1"),
        ("slack = 1\nhidden = [128, 64]", "hidden=128x64,slack=1"),
        ("hidden = [8]", "hidden=8"),
        ("learning_rate = 1e-5", "learning_rate=1e-05"),
        ("slack = 1e20", "slack=1e20"),
        ("buffer_size = 1_000_000", "buffer_size=1000000"),
        ("double_q = true\nloss = 'huber'", "double_q=true,loss=huber"),
        ("clip_targets = [[-200, 0], [-200, 0.5]]", "clip_targets=-200x0_-200x0.5"),
    ],
)
def test_variants_say_what_is_changed(told: str, variant: str) -> None:
    runs = runs_of(f'tasks = ["pong"]\nseeds = 1\n[settings]\n{told}')
    assert [run.row.variant for run in runs] == [variant]
    assert re.fullmatch(r"[A-Za-z0-9._=,-]*", variant)
    assert len({hash(run) for run in runs}) == 1


def test_the_same_setting_for_both_kinds_of_learner() -> None:
    runs = runs_of('tasks = ["cook", "pong"]\nseeds = 1\nsettings = {slack = 2, bootstrap = "max"}')
    assert [run.settings()["slack"] for run in runs] == [2.0, 2.0]
    assert [type(run.settings()["slack"]) for run in runs] == [float, float]


def test_equal_runs_are_made_once() -> None:
    text = """
    tasks = ["pong", "pong"]
    seeds = [0, 1, 0]
    settings = {slack = 1, gamma = 0.9}
    [[rows]]
    [[rows]]
    seeds = 4
    settings = {gamma = 0.9, slack = 1.0}
    [[rows]]
    tasks = ["cartpole"]
    modes = ["wrap"]
    seeds = 1
    [[rows]]
    tasks = ["cartpole"]
    methods = ["vanilla"]
    seeds = 1
    """
    assert [run.id.split("/")[0] + run.id[-1] for run in runs_of(text)] == [
        "pong0", "pong1", "pong2", "pong3", "cartpole0", "cartpole0",
    ]  # fmt: skip


def test_lambdas_on_top_serve_the_blocks_that_need_them() -> None:
    text = 'tasks = ["cook"]\nlambdas = [1]\n[[rows]]\n[[rows]]\nmethods = ["scalar"]'
    assert ids(text) == ["cook/lexicographic/scratch", "cook/scalar-1/scratch"]
    assert ids('tasks = ["cook"]\nlambdas = [-0.0]\nmethods = ["scalar"]') == ["cook/scalar-0/scratch"]


# Mistakes, each with its line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", f'1: there are no tasks; add tasks = ["pong"] or others of {ALL_TASKS}'),
        ("# nothing\n\n", f'1: there are no tasks; add tasks = ["pong"] or others of {ALL_TASKS}'),
        ("seeds = 1\n[[rows]]\ntasks = ['cook']\n\n[[rows]]", "5: there are no tasks; add"),
        ("\ntask = ['cook']", "2: no key named 'task'; use name, tasks, "),
        ("\ntask = ['cook']", "(did you mean 'tasks'?)"),
        ("tasks = ['cook']\n[[rows]]\nrows = 1", "3: no key named 'rows'; use name, tasks, "),
        ("tasks = ['cook']\nslack = 1", "2: no key named 'slack'; use name, "),
        ("tasks = ['cook']\nslack = 1", "'slack' is a setting, write it under [settings]"),
        ("tasks = ['cook']\n[[rows]]\nslack = 1", "'slack' is a setting, write it under [rows.settings]"),
        ("tasks = 'cook'", "1: tasks = 'cook' is not a list; write tasks = [\"cook\"]"),
        ("\n\ntasks = []", '3: tasks is an empty list; give at least one, such as ["cook"]'),
        ("tasks = ['pong', 3]", f"1: no task named 3; use {ALL_TASKS}"),
        ("tasks = ['pong',\n 'cok',\n]", f"2: no task named 'cok'; use {ALL_TASKS} (did you mean 'cook'?)"),
        ("tasks = ['pong']\nmodes = ['wraps']", "2: no mode named 'wraps'; use scratch, wrap (did you mean 'wrap'?)"),
        ("tasks = ['pong']\nmethods = ['lex']", "2: no method named 'lex'; use lexicographic, scalar, vanilla"),
        ("tasks = ['pong']\nmethods = [true]", "2: no method named true; use lexicographic, scalar, vanilla"),
        ("tasks = ['pong']\npreset = 'papr'", "2: no preset named 'papr'; use paper, exact, best (did you mean 'pap"),
        ("tasks = ['pong']\npreset = 1", "2: no preset named 1; use paper, exact"),
        ("tasks = ['cook', 'pong']\npreset = 'exact'", "2: no preset named 'exact' for pong; use paper"),
        ("tasks = ['cook']\nmodes = ['wrap']\nmethods = ['vanilla']", "3: vanilla has no waits, so around a base"),
        ("tasks = ['cook']\nmethods = ['vanilla']\n[[rows]]\nmodes = ['wrap']", "4: vanilla has no waits"),
        ("tasks = ['cook']\nsteps = 0", "2: steps = 0 is not allowed; give a whole number such as 200_000"),
        ("tasks = ['cook']\nsteps = 2e5", "2: steps = 200000.0 is not allowed; give a whole number such as 200_000"),
        ("tasks = ['cook']\nsteps = true", "2: steps = true is not allowed"),
        ("tasks = ['cook']\nsteps = 9223372036854775808", "2: this number is too large"),
        ("tasks = ['cook']\nsteps = 0x" + "f" * 5_000, "2: this number is too large"),
        ("tasks = ['cook']\nname = 'a/b'", "2: name = 'a/b' cannot name a folder; give at most 100 letters"),
        ("tasks = ['cook']\nname = '..'", "2: name = '..' cannot name a folder; give at most 100 letters"),
        ("tasks = ['cook']\nname = ''", "2: name = '' cannot name a folder"),
        ("tasks = ['cook']\nname = 3", "2: name = 3 cannot name a folder"),
        ("tasks = ['cook']\nname = '" + "a" * 101 + "'", "2: name = 'aaa"),
        ("tasks = ['cook']\n[[rows]]\nname = 'so gut'", "3: name = 'so gut' cannot name a folder"),
        ('tasks = ["cook"]\nname = """\nbad\n"""', "2: name = 'bad\\n' cannot name a folder"),
        ("rows = []", "1: rows are blocks; begin each with a line [[rows]]"),
        ("tasks = ['cook']\n[rows]\nseeds = 1", "2: rows are blocks; begin each with a line [[rows]]"),
        ("tasks = ['cook']\nrows = [1]", "2: rows are blocks; begin each with a line [[rows]]"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    assert said in mistake(text)
    assert not said[0].isdigit() or mistake(text).startswith(f"my.toml:{said}")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0.1", "lambdas = 0.1 is not a list; write lambdas = [0.1, 1]"),
        ("[]", "lambdas is an empty list; give at least one, such as [0.1, 1]"),
        ("[-1]", "λ = -1 is not allowed; give finite numbers of at least 0, such as 0.1"),
        ("[1, nan]", "λ = nan is not allowed"),
        ("[1, inf]", "λ = inf is not allowed"),
        ("[true]", "λ = true is not allowed"),
        ("['1']", "λ = '1' is not allowed"),
        ("[0.1, 0.10000001]", "λ = 0.10000001 and 0.1 are the same in their first six digits, which name the runs"),
    ],
)
def test_mistakes_in_lambdas(value: str, said: str) -> None:
    assert mistake(f"tasks = ['cook']\nmethods = ['scalar']\nlambdas = {value}").startswith(f"my.toml:3: {said}")


def test_lambdas_and_scalar_go_together() -> None:
    needs = "the method 'scalar' needs λs; add lambdas = [0.1, 1]"
    assert mistake("tasks = ['cook']\nmethods = ['vanilla',\n'scalar']") == f"my.toml:3: {needs}"
    assert mistake("tasks = ['cook']\n[[rows]]\n[[rows]]\nmethods = ['scalar']") == f"my.toml:4: {needs}"
    lonely = 'lambdas go with the method "scalar", which is not asked for; add it to methods or leave them out'
    assert mistake("tasks = ['cook']\nlambdas = [1]") == f"my.toml:2: {lonely}"
    assert mistake("tasks = ['cook']\nlambdas = [1]\n[[rows]]") == f"my.toml:2: {lonely}"
    blocks = "tasks = ['cook']\nmethods = ['scalar']\nlambdas = [1]\n[[rows]]\n[[rows]]\n"
    assert mistake(blocks + "lambdas = [2]\nmethods = ['vanilla']") == f"my.toml:6: {lonely}"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0", "seeds = 0 is not allowed; give how many, or a list such as [0, 1]"),
        ("-1", "seeds = -1 is not allowed"),
        ("2.0", "seeds = 2.0 is not allowed"),
        ("true", "seeds = true is not allowed"),
        ("'3'", "seeds = '3' is not allowed"),
        ("[]", "seeds is an empty list; give at least one, such as [0, 1]"),
        ("[0, -1]", "seed -1 is not allowed; give whole numbers of at least 0"),
        ("[0, 1.5]", "seed 1.5 is not allowed"),
        ("[0, false]", "seed false is not allowed"),
        ("100_001", "100001 runs are too many; give fewer seeds, at most 100000 runs in a file"),
        ("9_000_000_000_000", "9000000000000 runs are too many"),
    ],
)
def test_mistakes_in_seeds(value: str, said: str) -> None:
    assert mistake(f"tasks = ['cook']\nseeds = {value}").startswith(f"my.toml:2: {said}")


def test_too_many_runs_in_all() -> None:
    text = "tasks = ['cook']\nseeds = 60_000\n[[rows]]\nname = 'a'\n[[rows]]\nname = 'b'\nseeds = 50_000"
    assert mistake(text).startswith("my.toml:7: 110000 runs are too many")


@pytest.mark.parametrize(
    ("tasks", "told", "said"),
    [
        (["pong"], "slak = 1", "no setting named 'slak' for pong; use gamma, timestep, epsilon_end, slack, "),
        (["pong"], "slak = 1", "(did you mean 'slack'?)"),
        (["cook"], "batch_size = 1", "no setting named 'batch_size' for cook; use gamma, timestep, alpha, alpha_end, "),
        (
            ["cook", "pong", "coffee", "cook"],
            "batch_size = 1",
            "no setting named 'batch_size' for cook, coffee; use gamma, timestep, epsilon_end, slack, bootstrap, "
            "bootstrap_on_truncation, intra_option; or give these tasks a [[rows]] block of their own",
        ),
        (["pong"], "seeds = 1", "'seeds' goes above [settings]"),
        (["pong"], "gamma = 1.5", "gamma = 1.5 is not allowed; give a discount in (0, 1]"),
        (["pong"], "slack = nan", "slack = nan is not allowed; give a number of at least 0"),
        (["cook"], "alpha = 2", "alpha = 2.0 is not allowed; see letitcook.QSettings"),
        (["pong"], "slack = '1'", "slack = '1' is not allowed for pong; give a number"),
        (["pong"], "slack = true", "slack = true is not allowed for pong; give a number"),
        (["pong"], "slack = {a = 1}", "slack = {'a': 1} is not allowed for pong; give a number"),
        (["pong"], "slack = 1979-05-27", "slack = datetime.date(1979, 5, 27) is not allowed for pong; give a number"),
        (["pong"], "batch_size = 2.0", "batch_size = 2.0 is not allowed for pong; give a whole number"),
        (["pong"], "batch_size = true", "batch_size = true is not allowed for pong; give a whole number"),
        (["pong"], "double_q = 1", "double_q = 1 is not allowed for pong; give true or false"),
        (["pong"], "loss = 'hubber'", "loss = 'hubber' is not allowed for pong; give 'mse' or 'huber'"),
        (["pong"], "hidden = 128", "hidden = 128 is not allowed for pong; give [a whole number, ...]"),
        (["pong"], "hidden = [128.5]", "hidden = [128.5] is not allowed for pong; give [a whole number, ...]"),
        (["pong"], "hidden = [0]", "hidden = (0,) is not allowed; give widths of at least 1"),
        (["pong"], "clip_targets = [[0, 1]]", "give [[a number, a number], [a number, a number]]"),
        (["pong"], "clip_targets = [[0, 1], [1, 0]]", "give (low, high) of the task and of the waiting return"),
        (["cook"], "alpha_end = '1'", "alpha_end = '1' is not allowed for cook; give a number"),
        (["pong", "cook"], "intra_option = 2", "intra_option = 2 is not allowed for cook; give true or false"),
    ],
)
def test_mistakes_in_settings(tasks: list[str], told: str, said: str) -> None:
    name = told.split(" ", maxsplit=1)[0]
    for text, line in [
        (f"tasks = {tasks}\n[settings]\n# {told}\n{told}", 4),
        (f"tasks = {tasks}\n\nsettings = {{{told}}}", 3),
        (f"tasks = {tasks}\nsettings.{told}", 2),
        (f"tasks = {tasks}\n[settings]\n{told}\n[[rows]]\n[[rows]]", 3),
        (f"tasks = {tasks}\n[[rows]]\nsteps = 1\n[[rows]]\nname = '{name}'\n[rows.settings]\n\n{told}", 8),
        (f"tasks = {tasks}\n[[rows]]\n[[rows]]\nname = 'b'\nsettings.{told}", 5),
        (f"tasks = {tasks}\nrows = [\n  {{}},\n  {{name = 'b', settings = {{{told}}}}},\n]", 4),
    ]:
        found = mistake(text)
        assert found.startswith(f"my.toml:{line}: "), (text, found)
        assert said in found


def test_settings_that_do_not_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def settings_of(run: Run) -> dict[str, object]:
        if len(run.changes) > 1 and run.row.mode == "wrap":
            raise SettingError("these two do not go together")
        return {}

    monkeypatch.setattr(Run, "settings", settings_of)
    text = "tasks = ['pong']\nsettings.slack = 1\n[[rows]]\n[[rows]]\nmodes = ['scratch', 'wrap']\nsettings.gamma = 1"
    assert mistake(text) == "my.toml:4: these two do not go together"


def test_settings_must_be_a_table() -> None:
    said = "settings = 3 is not a table; write [settings], then slack = 1"
    assert mistake("tasks = ['cook']\nsettings = 3") == f"my.toml:2: {said}"
    assert mistake("tasks = ['cook']\n[[rows]]\n[[rows]]\nsettings = 3") == f"my.toml:4: {said}"


def test_the_file_itself_must_have_a_name_for_a_folder() -> None:
    with pytest.raises(
        SuiteError, match=r"^my study\.toml:1: the file's own name cannot name a folder of results; add"
    ):
        parse_suite("tasks = ['cook']", "my study.toml")
    assert parse_suite("tasks = ['cook']\nname = 'fine'", "my study.toml").name == "fine"


def test_many_settings_need_a_name() -> None:
    told = "\n".join(
        f"{name} = 1" for name in ("batch_size", "buffer_size", "learning_starts", "update_interval", "gradient_steps")
    )
    told = f"{told}\nepsilon_steps = 1\ntarget_interval = 1\nepsilon_start = 1\nepsilon_end = 1"
    assert mistake(f"tasks = ['pong']\n[settings]\n{told}").startswith("my.toml:1: batch_size=1,buffer_size=1,")
    assert mistake(f"tasks = ['pong']\n[[rows]]\n[rows.settings]\n{told}").endswith("use a [[rows]] block with a name")
    assert ids(f"tasks = ['pong']\n[[rows]]\nname = 'all'\n[rows.settings]\n{told}") == [
        "pong/lexicographic+all/scratch"
    ]


# Two blocks, one folder


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("steps = 10", "", "length 10 steps and 1,000,000 decisions"),
        ("name = 'a'\nsettings.slack = 1", "name = 'a'\nsettings.slack = 2", "slack 1.0 and 2.0"),
        (
            "name = 'a'\nsteps = 1",
            "name = 'a'\nsettings.slack = 2",
            "length 1 step and 1,000,000 decisions, slack unchanged and 2.0",
        ),
        ("settings.slack = 1", "settings.slack = 1.00000001", "slack 1.0 and 1.00000001"),
        ("tasks = ['cook']", "tasks = ['cook']\npreset = 'exact'", "preset paper and exact"),
        (
            "methods = ['scalar']\nlambdas = [1]",
            "methods = ['scalar']\nlambdas = [1.00000001]",
            "λ 1.0 and 1.00000001",
        ),
    ],
)
def test_blocks_that_clash(first: str, second: str, said: str) -> None:
    found = mistake(f"tasks = ['pong']\n[[rows]]\n{first}\n[[rows]]\n{second}\n[[rows]]\nseeds = [9]\nname = 'c'")
    line = 4 + first.count("\n")
    assert found.startswith(f"my.toml:{line}: lines 2 and {line} say different things of "), found
    assert f"/seed0: {said}" in found
    assert found.endswith("; give one of the blocks a name of its own")


@pytest.mark.parametrize("wrapped_first", [True, False])
def test_a_base_policy_that_clashes_with_a_run(wrapped_first: bool) -> None:
    base = f"cartpole/vanilla/scratch/seed{BASE_SEEDS['cartpole']}"
    wrapped = "[[rows]]\nmodes = ['wrap']\nsteps = 20\n"
    plain = f"[[rows]]\nmethods = ['vanilla']\nsteps = 10\nseeds = [0, 1, {BASE_SEEDS['cartpole']}]\n"
    first, second = (wrapped, plain) if wrapped_first else (plain, wrapped)
    line = 5 if wrapped_first else 6
    said = f"lines 2 and {line} say different things of {base} (the base policy of what is wrapped)"
    assert mistake(f"tasks = ['cartpole']\n{first}{second}").startswith(f"my.toml:{line}: {said}: length ")
    assert len(runs_of(f"tasks = ['cartpole']\n{first}{second}name = 'other'")) == 6
    assert len(runs_of(f"tasks = ['cook']\n{first}{second}")) == 6, "a handwritten policy needs no folder"


# Files that are no TOML


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks = ['cook']\nname = slack", "2: this is not TOML: Invalid value (column 8); text stands in quotes"),
        ("tasks = ['cook']\n\nseeds = 1\nseeds = 2", "4: this is not TOML: Cannot overwrite a value"),
        ("tasks = ['cook'\n", "1: this is not TOML: Unclosed array (the file ends too early)"),
        ("tasks = ['cook']\n\nseeds = 1" + "0" * 5_000, "3: this is not TOML: a number is too long"),
        ("tasks = ['cook']\nseeds = " + "[" * 50_000, "2: this is not TOML: "),
    ],
)
def test_files_that_are_no_toml(text: str, said: str) -> None:
    assert mistake(text).startswith(f"my.toml:{said}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"no\.toml cannot be read \(No such file or directory\); give a TOML file$"):
        read_suite(tmp_path / "no.toml")
    with pytest.raises(SuiteError, match=r"cannot be read \(Is a directory\); give a TOML file$"):
        read_suite(tmp_path)
    with pytest.raises(SuiteError, match="cannot be read"):
        read_suite(Path("a\0b"))
    file = tmp_path / "latin.toml"
    file.write_bytes(b"tasks = ['cook']\n\n# caf\xe9\n")
    with pytest.raises(SuiteError, match=r"latin\.toml:3: this is not UTF-8 text; save the file as UTF-8$"):
        read_suite(file)
    file.write_bytes(b"")
    with pytest.raises(SuiteError, match=r"latin\.toml:1: there are no tasks"):
        read_suite(file)
    file.write_bytes(b"\xef\xbb\xbf# a mark and carriage returns, as some editors write\r\n\r\ntasks = ['cok']\r\n")
    with pytest.raises(SuiteError, match=r"latin\.toml:3: no task named 'cok'"):
        read_suite(file)
    file.write_bytes(b"\xef\xbb\xbftasks = ['cook']\r\nseeds = [\r\n0,\r\n1]\r\n")
    assert [run.id[-1] for run in read_suite(file).runs] == ["0", "1"]


# Lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# slack = 'a'\nname = 'slack'\ntasks = [ # slack\n'pong']\n[settings]\n# slack\nslack = 'a' # slack = 1", 7),
        ("tasks = ['pong']\n[settings]\nloss = 'mse'\n[[rows]]\nsettings.loss = 'mse'\n[[rows]]\nsettings.loss = 1", 7),
        ("tasks = ['pong']\n[settings]\nloss = 2\n[[rows]]\nsettings.loss = 'mse'\n[[rows]]\nname = 'b'", 3),
        ("tasks = ['pong']\n[[rows]]\n[rows.settings]\nslack = 1\n[[rows]]\n[rows.settings]\nslack = 'a'", 7),
        ("tasks = ['pong']\n[[ rows ]]\n[ rows . \"settings\" ]\n'slack' = 'a'", 4),
        ("'tasks' = [\n  'pong',  # ]\n  # 'x',\n  'cook', 'x',\n]", 4),
        ("seeds = [\n\n  0,\n  1\n  ,\n  -2]\ntasks = ['pong']", 6),
        ("seeds\t=\t-2\ntasks = ['pong']", 1),
        ("tasks = ['pong']\nsettings.hidden = [\n  1,\n  'a',\n]", 2),
        ("tasks = ['pong']\nsettings = {slack = 1, hidden = [\n  1.5,\n]}", 2),
        ("rows = [\n {tasks = [\n'cook']},\n {tasks = [\n'cook',\n'x']},\n]", 6),
        ('name = """a"""\ntasks = ["x]"]', 2),
        ("name = '''\nslack = 1\n[[rows]]\n'''\ntasks = ['x']", 1),
        ('tasks = ["""pong""", """\\\n   x""",\n\'\'\'\ny\'\'\']', 1),
        ('tasks = [\n"pong",\n"""x""""", "y"]', 3),
        ('tasks = ["pong"]\n[settings]\nloss = "\\"]["\nslack = "a"', 3),
        ('settings = {loss = """x"""", bootstrap = "["}\ntasks = [\n"pong",\n"x"]\n\n', 4),
        ("settings = {loss = '''x'''', bootstrap = '['}\ntasks = [\n'pong',\n'x']\n\n", 4),
        ("settings = {loss = '['}\ntasks = [\n'pong',\n'x']\n\n", 4),
        ("tasks = ['pong']\n\n\n[settings.slack]\na = 1", 4),
        ("tasks = ['pong']\n[settings]\n[[rows]]\nseeds = 1\n[[rows]]\nsteps = 'x'\n[[rows]]\nsteps = 1", 6),
        ("tasks = ['pong']\n# \u2028 \x85 is no new line\nseeds = 0", 3),
    ],
)
def test_lines(text: str, line: int) -> None:
    assert mistake(text).startswith(f"my.toml:{line}: "), mistake(text)


FILLERS = ["", "# seeds = 'x'", "  # [[rows]]", '# """', "# ["]
STATEMENTS = [
    ["name = 'seeds'"],
    ["tasks = [", "'pong',", "# 'x' ]", "'cartpole',", "]"],
    ["steps = 10"],
    ["[settings]"],
    ["hidden = [8, 8]"],
    ["clip_targets = [", "[-9, 0],", "[-9, 0] ]"],
    ["[[rows]]"],
    ["name = '''seeds'''"],
    ["[rows.settings]"],
    ["slack = 3"],
    ["[[rows]]"],
    ["modes = ['wrap']"],
]
WRONG = {"name": "seeds = -5", "tasks": "seeds = -5", "steps": "seeds = -5", "[settings]": "slack = 'x'"}
WRONG |= {"hidden": "slack = 'x'", "clip_targets": "slack = 'x'", "[[rows]]": "seeds = -5", "modes": "seeds = [-5]"}
WRONG |= {"[rows.settings]": "loss = 'x'", "slack": "loss = 'x'"}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_mistake_anywhere_is_named_by_its_line(seed: int) -> None:
    chance = random.Random(seed)
    after = chance.randrange(len(STATEMENTS))
    lines: list[str] = []
    for n, statement in enumerate(STATEMENTS):
        lines += chance.choices(FILLERS, k=chance.randrange(3))
        lines += statement
        if n == after:
            lines += chance.choices(FILLERS, k=chance.randrange(3))
            lines.append(WRONG[statement[0].split(" ")[0]])
            expected = len(lines)
    text = chance.choice(["\n", "\r\n"]).join(lines)
    assert mistake(text).startswith(f"my.toml:{expected}: "), text


# Anything at all


PIECES = [
    *(
        "name",
        "tasks",
        "modes",
        "methods",
        "lambdas",
        "seeds",
        "steps",
        "preset",
        "settings",
        "rows",
        "slack",
        "hidden",
    ),
    *('"pong"', "'cook'", '"wrap"', '"scalar"', '"vanilla"', '"exact"', "0", "1", "-1", "0.5", "nan", "true", "1e400"),
    *(
        " = ",
        "\n",
        "[",
        "]",
        "[[rows]]\n",
        "[settings]\n",
        "[rows.settings]\n",
        "{",
        "}",
        ", ",
        ".",
        "#",
        '"""',
        "'''",
        "\\",
    ),
    *("1979-05-27T07:32:00Z", "9" * 30, "\r\n", "\ufeff", "\0"),
]


def makes_runs_or_says_why(text: str) -> None:
    try:
        suite = parse_suite(text, "my.toml")
    except LetItCookError as error:
        assert re.match(r"my\.toml:\d+: ", str(error))
        assert 1 <= int(str(error).split(":")[1]) <= text.count("\n") + 1
    else:
        assert suite.runs
        assert len({run.id for run in suite.runs}) == len(suite.runs)


@given(st.text())
@settings(max_examples=200, deadline=None)
@example("a = " + "[" * 1_000)
@example(".".join("a" * 3_000) + " = 1")
@example("tasks = [{" + ".".join("a" * 3_000) + " = 1}]")
@example("tasks = ['cook']\nsettings.alpha = 1e400")
def test_any_text_makes_runs_or_says_why(text: str) -> None:
    makes_runs_or_says_why(text)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_pieces_make_runs_or_say_why(text: str) -> None:
    makes_runs_or_says_why(text)


VALUES = st.recursive(
    st.sampled_from(
        [
            *("0", "1", "3", "-1", "0.5", "nan", "inf", "true", "''", "12:00:00", "'max'", "'huber'"),
            *("'pong'", "'cook'", "'wrap'", "'scratch'", "'paper'", "'exact'"),
            *("'scalar'", "'vanilla'", "'lexicographic'"),
        ]
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    max_leaves=4,
)
TABLE = st.dictionaries(
    st.sampled_from([*CHECKS, "settings.slack", "settings.hidden", "settings.clip_targets", "settings.intra_option"]),
    VALUES,
).map(lambda table: "\n".join(f"{key} = {value}" for key, value in table.items() if key != "settings"))


@given(st.lists(TABLE, min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_values_make_runs_or_say_why(tables: list[str]) -> None:
    makes_runs_or_says_why("tasks = ['pong']\n" + "\n[[rows]]\n".join(tables))
    makes_runs_or_says_why("\n[[rows]]\n".join(tables))
