"""The Ray engine on a real cluster of several nodes: the same numbers as the serial engine, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from letitcook.errors import SettingError
from letitcook.experiments import ray_engine
from letitcook.experiments import sweep as sweeps
from letitcook.experiments.engine import Engine
from letitcook.experiments.engines import Serial, engine_named
from letitcook.experiments.jobs import Checkpoint, Finished, Job, Lost, Message, Started
from letitcook.experiments.results import read_results, write_tables
from letitcook.experiments.suites import Row, Run, Suite

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves the ends of its processes to the system

MEMORY = 80_000_000
LONG = Run(Row("cartpole", "scratch", "vanilla", variant="quick"), seed=0, steps=60_000, changes=(("batch_size", 8),))
SHORT = tuple(
    Run(Row("cook", mode, "lexicographic"), seed, 100_000) for mode in ("scratch", "wrap") for seed in range(2)
)
BROKEN = Run(Row("cook", "scratch", "lexicographic", variant="slak=1"), 0, 1_000, changes=(("slak", 1.0),))
SUITE = Suite("some", (LONG, BROKEN, *SHORT))
Told = list[tuple[Run, Message]]


def swept(out: Path, engine: Engine, suite: Suite = SUITE, tell: Callable[[Run, Message], Any] | None = None) -> Told:
    """Carry out a suite as the command line does; checkpoints come as often as they can."""
    told = []
    with sweeps.opened(out, suite):
        for run, message in sweeps.sweep(suite, out, engine, checkpoint_seconds=0.0):
            told.append((run, message))
            if tell is not None:
                tell(run, message)
        write_tables(read_results(out))
    return told


def of(told: Told, run: Run, *kinds: type[Message]) -> list[Any]:
    return [message for its, message in told if its == run and isinstance(message, kinds or object)]


def check_same(out: Path, serial: Path) -> None:
    for name in ("runs.csv", "curves.csv"):
        assert (out / name).read_bytes() == (serial / name).read_bytes()
    assert read_results(out).runs["id"].to_list() == [run.id for run in (LONG, *SHORT)]
    assert not list((out / "unfinished").rglob("manifest.json"))


def check_failure(out: Path, told: Told) -> None:
    (failed,) = of(told, BROKEN)
    assert "no setting named 'slak'" in failed.reason
    assert "Traceback" in sweeps.failure_log(out, BROKEN).read_text()


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the same sweep with the serial engine; it also compiles what the nodes need."""
    out = tmp_path_factory.mktemp("serial") / "out"
    check_failure(out, swept(out, Serial()))
    return out


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a cluster whose head, where the sweep is, carries out nothing."""
    ray_engine._imported(local=False)
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


def add_node(cluster: Any) -> None:
    cluster.add_node(num_cpus=1, object_store_memory=MEMORY, wait=False)


def with_nodes(cluster: Any, count: int) -> None:
    """Bring the cluster to so many nodes of one CPU beside its head."""
    while len(cluster.worker_nodes) > count:
        cluster.remove_node(next(iter(cluster.worker_nodes)))
    while len(cluster.worker_nodes) < count:
        add_node(cluster)
    cluster.wait_for_nodes()


def test_a_cluster_gives_what_the_serial_engine_gives(cluster: Any, serial: Path, tmp_path: Path) -> None:
    with_nodes(cluster, 2)
    engine = engine_named("ray", 1, cluster.address)
    assert engine.slots == 2
    told = swept(tmp_path / "out", engine)
    check_same(tmp_path / "out", serial)
    check_failure(tmp_path / "out", told)
    assert [message.steps for message in of(told, LONG, Checkpoint)] == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert all(len(of(told, run, Started)) == len(of(told, run, Finished)) == 1 for run in (LONG, *SHORT))


def test_a_node_that_dies_costs_the_time_since_the_last_checkpoint(
    cluster: Any, serial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with_nodes(cluster, 1)
    (node,) = cluster.worker_nodes

    def kill(run: Run, message: Message) -> None:
        if isinstance(message, Checkpoint) and node in cluster.worker_nodes:
            assert run == LONG
            cluster.remove_node(node, allow_graceful=False)
            add_node(cluster)

    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    told = swept(tmp_path / "out", engine_named("ray", 1, "auto"), tell=kill)
    check_same(tmp_path / "out", serial)
    check_failure(tmp_path / "out", told)
    (lost,) = of(told, LONG, Lost)
    assert "NodeDiedError" in lost.reason or "WorkerCrashedError" in lost.reason
    its = of(told, LONG)
    before, after = its[: its.index(lost)], its[its.index(lost) + 1 :]
    assert before[0] == Started(0)
    assert after[0] == Started(max(message.steps for message in before if isinstance(message, Checkpoint)))
    assert [message.steps for message in of(told, LONG, Checkpoint)] == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert len(of(told, LONG, Finished)) == 1
    assert all(len(of(told, run, Started)) == len(of(told, run, Finished)) == 1 for run in SHORT)
    assert capfd.readouterr().out == ""  # where the results go


def test_a_connection_of_the_callers_stays_and_its_tasks_end(cluster: Any, serial: Path) -> None:
    import ray

    def threads() -> Iterator[tuple[str, int]]:
        import numba

        yield os.environ["OPENBLAS_NUM_THREADS"], numba.get_num_threads()

    with_nodes(cluster, 1)
    ray.init(cluster.address, log_to_driver=False)
    try:
        assert ray.get(next(ray.remote(**ray_engine.TASK)(threads).remote())) == ("1", 1)
        engine = ray_engine.OnRay(cluster.address)
        engine.start(Job(LONG))
        while not engine.messages(0.5):
            pass
        assert "CPU" not in ray.available_resources()
        engine.close()
        assert ray.is_initialized()
        while "CPU" not in ray.available_resources():
            time.sleep(0.1)
    finally:
        ray.shutdown()


def test_a_node_with_another_version_is_named(
    cluster: Any, serial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nodes(cluster, 1)
    monkeypatch.setattr(ray_engine, "VERSION", "9.9.9")
    problem = f"{socket.gethostname()} has letitcook .*, and the sweep has 9.9.9; install letitcook 9.9.9 on every node"
    with pytest.raises(SettingError, match=problem):
        swept(tmp_path / "out", engine_named("ray", 1, cluster.address), Suite("few", SHORT[:2]))
    assert not list((tmp_path / "out" / "runs").rglob("manifest.json"))


LOCAL = """
import json, sys
from letitcook.experiments import ray_engine
from letitcook.experiments.engines import engine_named
from letitcook.experiments.suites import Row, Run
from letitcook.experiments.jobs import Finished, Job

engine = engine_named("ray", 1)
import ray

(node,) = ray.nodes()
engine.start(Job(Run(Row("cook", "scratch", "lexicographic"), 0, 100_000)))
last = None
while not isinstance(last, Finished):
    for _, last in engine.messages(0.5):
        pass
engine.close()
policy = last.files["policy.safetensors"].hex()
print(json.dumps({"address": node["NodeManagerAddress"], "policy": policy, "connected": ray.is_initialized()}))
"""


def test_a_ray_of_its_own_listens_on_the_loopback_address_alone(serial: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", LOCAL],
        env={**clean, "HOME": str(tmp_path)},
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    told = json.loads(done.stdout)
    policy = sweeps.run_folder(serial, SHORT[0]) / "policy.safetensors"
    assert told == {"address": "127.0.0.1", "policy": policy.read_bytes().hex(), "connected": False}


def test_addresses_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(
            SettingError, match=f"no Ray cluster answers at 127.0.0.1:{port} .*refused.*ray start --head"
        ):
            engine_named("ray", 1, f"127.0.0.1:{port}")
    monkeypatch.setattr(ray_engine, "CONNECT_SECONDS", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SettingError, match=f"no Ray cluster answers at {address} .no answer in 3 seconds"):
            engine_named("ray", 1, address)


@pytest.mark.parametrize("address", ["somewhere", "ray://127.0.0.1:10001", "127.0.0.1:", ":6379", "127.0.0.1:65536"])
def test_addresses_of_another_form_are_named(address: str) -> None:
    with pytest.raises(SettingError, match=f"the address '{address}' is not allowed; give auto, or HOST:PORT"):
        engine_named("ray", 1, address)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r'pip install "letitcook\[ray\]"'):
        engine_named("ray", 1)
