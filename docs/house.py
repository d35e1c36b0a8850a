"""The house: its rooms in order, what imports what, and the way of four calls through it.

    python docs/house.py            print the section of CONTRIBUTING.md that is made from the code
    python docs/house.py --write    write it there

The order of the rooms stands here and nowhere else; the tests and CONTRIBUTING.md read it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import sys
import tempfile
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "letitcook"
BEGIN, END = "<!-- house:begin -->", "<!-- house:end -->"
"""Marks around the section in CONTRIBUTING.md."""
ROOMS = {
    "errors": "what a user can do wrong",
    "core": "the nouns: decisions, objectives, episode statistics; compiling and random numbers",
    "storage": "run folders, spaces and settings as plain data, objects by name",
    "adapters": "other people's policies: Stable-Baselines3, skrl, PyTorch, functions",
    "wrappers": "environments around environments: waiting, base policies, vector environments, `wrap`",
    "poll": "when to look whether a job is done: durations, schedules, `wait_for`",
    "tasks": "the paper's tasks, one a file; `make`",
    "finite": "tables: enumeration, exact plans, LQ",
    "deep": "networks: LDQN and what drives it",
    "evaluation": "episodes of a policy, what a wrapper saves, interleaving",
    "training": "`learn`: from an environment to a policy; the run and its folder",
    "deploy": "the control loop, exports",
    "experiments": "suites, sweeps, engines, tables of results",
    "report": "comparison with the paper, figures, the page",
    "cli": "the command line",
}
"""The rooms from the ground up: a room imports only from those above it in this list."""


def modules() -> dict[str, Path]:
    """Return every module by its name, such as `core.decisions`."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = _module(path, SOURCE)
        if name and name != "__main__":
            found[name] = path
    return found


def imported(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, anywhere in it: inside functions too."""
    known, found = modules(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "letitcook":
            inside = (node.module or "").removeprefix("letitcook").removeprefix(".")
            for alias in node.names:
                full = f"{inside}.{alias.name}" if inside else alias.name
                found.add(full if full in known else inside)
        elif isinstance(node, ast.Import):
            found.update(a.name.removeprefix("letitcook.") for a in node.names if a.name.startswith("letitcook."))
    return {name for name in found if name in known}


def room_of(module: str) -> str:
    """Return the room that a module stands in.

    >>> room_of("deep.drivers.python")
    'deep'
    """
    return module.partition(".")[0]


def wrong_way() -> list[str]:
    """Return the imports that point at a later room."""
    order = list(ROOMS)
    return [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in sorted(imported(path))
        if order.index(room_of(other)) > order.index(room_of(name))
    ]


def cycles() -> list[str]:
    """Return modules that import each other by some way; imports inside functions count.

    A package that hands on what its modules hold does not count as imported by them.
    """
    arrows = {name: imported(path) - {name} for name, path in modules().items()}
    order: dict[str, int] = {}
    found: list[str] = []

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            found.append(" → ".join((*way[way.index(name) :], name)))
        elif name not in order:
            for other in sorted(arrows[name]):
                visit(other, (*way, name))
            order[name] = len(order)

    for name in arrows:
        visit(name, ())
    return found


# --- walks: the modules on the way of a call ---

WALKS = {
    "letitcook train cartpole": """
import sys
from letitcook.cli import main
sys.argv = ["letitcook", "train", "cartpole", "--steps", "50"]
main()
""",
    "letitcook reproduce": """
import pathlib, sys
from letitcook.cli import main
pathlib.Path("tiny.toml").write_text('tasks = ["cook"]\\nsteps = 50\\nseeds = [0]')
sys.argv = ["letitcook", "reproduce", "--suite", "tiny.toml", "--engine", "serial"]
main()
""",
    "learn(WaitingEnv(...))": """
import gymnasium as gym, letitcook
env = letitcook.WaitingEnv(gym.make("CartPole-v1"), wait=0, durations=(2, 4))
letitcook.learn(env, steps=50, preset="paper", progress=False)
""",
    "wrap(env, policy)": """
import gymnasium as gym, letitcook
letitcook.wrap(gym.make("MountainCar-v0"), lambda o: 2, wait=1, durations=(2, 4))
""",
}
"""Small calls; what follows the last line break is what is called."""
LAST_GOAL = "first step"
GOALS = {
    "environment made": ("WaitingEnv.__init__",),
    "learner made": ("new_learner", "QLearner.__init__"),
    LAST_GOAL: ("CompiledDriver.advance", "PythonDriver.advance", "QLearner.advance"),
}
"""Where walks lead, by the functions that are then called."""
IN_VERSION_0_1 = {
    "letitcook train cartpole": (17, {"environment made": 4, "learner made": 5, "first step": 5}),
    "letitcook reproduce": (15, {"environment made": 4, "learner made": 4, "first step": 4}),
    "learn(WaitingEnv(...))": (14, {"environment made": 0, "learner made": 2, "first step": 3}),
    "wrap(env, policy)": (5, {"environment made": 1}),
}
"""The rooms that each walk entered in version 0.1, and its hops."""


class Arrived(BaseException):
    """Ends a walk at its last goal."""


def walk(script: str, source: Path = SOURCE) -> tuple[set[str], dict[str, list[str]]]:
    """Run a small script up to its first step.

    Returns the rooms whose functions were called, and the modules on the call stack when each goal was reached.
    """
    for module, _ in importlib.import_module(
        "letitcook.cli"
    ).COMMANDS.values():  # what importing calls is no part of it
        importlib.import_module(f"letitcook.cli.{module}")
    package = importlib.import_module("letitcook")
    for name in package.__all__:
        getattr(package, name)
    rooms: set[str] = set()
    found: dict[str, list[str]] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(source)) or code.co_name == "<module>":
            return
        rooms.add(room_of(_module(code.co_filename, source)))
        for goal, names in GOALS.items():
            if goal not in found and code.co_qualname in names:
                found[goal] = _stack(frame, source)
                if goal == LAST_GOAL:
                    raise Arrived

    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.chdir(place),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(Arrived, SystemExit),
    ):
        sys.setprofile(profile)
        try:
            exec(compile(script, "walk", "exec"), {"__name__": "walk"})
        finally:
            sys.setprofile(None)
    return rooms, found


def _stack(frame: FrameType | None, source: Path) -> list[str]:
    """Return the modules of the package on the call stack, the outermost first, neighbours that are equal once."""
    names: list[str] = []
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(str(source)):
            name = _module(path, source)
            if not names or names[-1] != name:
                names.append(name)
        frame = frame.f_back
    return names[::-1]


def _module(path: str | Path, source: Path) -> str:
    parts = Path(path).relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rooms_section() -> str:
    """Return the rooms as a list, with what each is for."""
    width = max(map(len, ROOMS))
    rooms = [f"{room:<{width}}  {what}" for room, what in ROOMS.items()]
    return "\n".join(["```", *rooms, "```"])


def walk_section(name: str) -> str:
    """Return the way of one call through the rooms."""
    rooms, ways = walk(WALKS[name])
    rooms_before, hops_before = IN_VERSION_0_1[name]
    lines = [f"`{name}` enters {len(rooms)} rooms ({rooms_before}):", ""]
    for goal, way in ways.items():
        stack = " → ".join(f"`{module}`" for module in way)
        hops = "1 hop" if len(way) == 2 else f"{len(way) - 1} hops"
        lines.append(f"- {goal}, {hops} ({hops_before[goal]}): {stack}")
    return "\n".join(lines)


def section() -> str:
    """Return the section of CONTRIBUTING.md that is made from the code."""
    parts = [
        "The rooms. Each imports only from those above it, also inside functions:",
        rooms_section(),
        "Four calls on their way to the first step of training, as the modules on the call stack. A hop leads from\n"
        "one module to the next; in brackets is what it took in version 0.1.",
        *map(walk_section, WALKS),
    ]
    return "\n\n".join(parts) + "\n"


def write_section() -> None:
    """Write the section into CONTRIBUTING.md, between its marks."""
    path = ROOT / "CONTRIBUTING.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{section()}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write_section()
    else:
        print(section())
    sys.exit("\n".join(wrong_way() + cycles()) or 0)
