"""Several processes publish to one folder: numbers of processes, what stays of a dead one, folders."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from roost.bench.server_process import die_with_parent
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.folder import dead_processes, metrics_folder
from roost.process.metrics.publisher import Publisher

PROGRAM = """
import sys
from pathlib import Path
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import start_counting
from roost.process.metrics.publisher import Publisher
start_counting(metrics.CATALOGUE)
publisher = Publisher(Path(sys.argv[1]))
metrics.COMMITS.inc(int(sys.argv[2]))
metrics.IN_FLIGHT.set(int(sys.argv[2]))
metrics.CANDIDATES.observe(int(sys.argv[2]))
metrics.RESIDENT_MEMORY.labels(str(publisher.number)).set(1)
publisher.publish()
print(publisher.number, flush=True)
sys.stdin.read()
"""

CHOOSING = """
import sys
from pathlib import Path
from roost.process.metrics.folder import ProcessNumber
print("ready", flush=True)
sys.stdin.readline()
print(ProcessNumber(Path(sys.argv[1])).number, flush=True)
"""


class Publishing:
    """A process that has counted a number of commits and published that."""

    def __init__(self, folder: Path, commits: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), str(commits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        assert self._process.stdout is not None
        self.number = int(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    with metrics_folder() as folder:
        yield folder


def collected(folder: Path) -> dict[tuple[str, ...], float]:
    """All samples but those of zero, by name and label values."""
    with dead_processes(folder) as numbers:
        for number in numbers:
            mark_process_dead(number, str(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.value
    }


def test_all_processes_add_up_and_a_dead_one_leaves_its_counts_and_not_its_gauges(folder: Path) -> None:
    first, second = Publishing(folder, 5), Publishing(folder, 7)
    assert (first.number, second.number) == (1, 2)
    found = collected(folder)
    assert found["roost_ledger_commits_total",] == 12
    assert found["roost_http_requests_in_flight",] == 12
    assert found["roost_allocation_candidates_returned_count",] == 2
    assert found["roost_allocation_candidates_returned_sum",] == 12
    assert found["roost_allocation_candidates_returned_bucket", "5.0"] == 1
    assert found["roost_allocation_candidates_returned_bucket", "+Inf"] == 2
    first.kill()
    found = collected(folder)
    assert found["roost_ledger_commits_total",] == 12
    assert found["roost_http_requests_in_flight",] == 7
    assert ("roost_process_resident_memory_bytes", "1") not in found
    second.kill()


def test_a_successor_takes_the_number_and_the_counts_of_a_dead_process(folder: Path) -> None:
    first, second = Publishing(folder, 5), Publishing(folder, 7)
    first.kill()
    files = sorted(folder.glob("*.db"))
    third = Publishing(folder, 100)
    assert third.number == 1
    assert sorted(folder.glob("*.db")) == files, "files do not add up with restarts"
    found = collected(folder)
    assert found["roost_ledger_commits_total",] == 112
    assert found["roost_http_requests_in_flight",] == 107
    assert found["roost_allocation_candidates_returned_count",] == 3
    for each in (second, third):
        each.kill()


@pytest.mark.usefixtures("counted")
def test_a_process_that_ends_in_order_publishes_what_it_has_counted_last(folder: Path) -> None:
    publisher = Publisher(folder)
    publisher.publish()
    metrics.COMMITS.inc(3)
    metrics.IN_FLIGHT.set(1)
    publisher.close()
    assert collected(folder)["roost_ledger_commits_total",] == 3
    assert ("roost_http_requests_in_flight",) not in collected(folder)
    again = Publisher(folder)
    assert again.number == publisher.number
    again.close()


def test_a_fork_waits_while_the_dead_are_looked_for(folder: Path) -> None:
    """Otherwise the child would inherit the locks that are held meanwhile and keep the numbers taken."""
    Publishing(folder, 1).kill()
    looking, looked = threading.Event(), threading.Event()

    def look() -> None:
        with dead_processes(folder):
            looking.set()
            looked.wait(30)

    thread = threading.Thread(target=look)
    thread.start()
    looking.wait(30)
    threading.Timer(0.3, looked.set).start()
    child = os.fork()
    if child == 0:
        signal.pause()
    thread.join()
    with dead_processes(folder) as numbers:
        assert numbers == [1]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.usefixtures("counted")
def test_files_have_their_blocks_from_the_start(folder: Path) -> None:
    publisher = Publisher(folder)
    for path in folder.glob("*.db"):
        about = path.stat()
        assert about.st_blocks * 512 >= about.st_size > 0
    publisher.close()


def test_the_folder_of_a_killed_service_is_removed_and_that_of_a_living_one_stays(folder: Path) -> None:
    program = (
        "from roost.process.metrics.folder import metrics_folder\n"
        "with metrics_folder() as folder:\n"
        "    print(folder, flush=True)\n"
        "    input()\n"
    )
    environment = {**os.environ, "TMPDIR": str(folder.parent)}
    service = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=die_with_parent,
    )
    assert service.stdout is not None
    other = Path(service.stdout.readline().strip())
    assert other.parent == folder.parent
    assert other != folder
    with metrics_folder() as third:
        assert {folder, other, third} <= set(folder.parent.iterdir())
    service.kill()
    service.communicate()
    assert other.exists()
    with metrics_folder():
        assert not other.exists()
        assert folder.exists()


def test_a_folder_is_private_and_removed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with metrics_folder() as folder:
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_a_folder_is_not_taken_for_abandoned_while_its_owner_takes_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock, looks = fcntl.flock, list[Path]()

    def look_first(descriptor: int, operation: int) -> None:
        if not looks:
            looks.extend(tmp_path.iterdir())
            with metrics_folder():
                pass
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", look_first)
    with metrics_folder() as folder:
        assert looks == [folder]
        assert [each.name for each in folder.iterdir()] == ["owner.lock"]


def test_a_process_that_starts_during_the_look_takes_the_number_of_a_dead_one(folder: Path) -> None:
    Publishing(folder, 1).kill()
    # It is there before the look: forks of this process wait until the look has ended.
    with subprocess.Popen(
        [sys.executable, "-c", CHOOSING, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    ) as successor:
        assert successor.stdin is not None and successor.stdout is not None
        assert successor.stdout.readline() == "ready\n"
        with dead_processes(folder) as dead:
            successor.stdin.write("\n")
            successor.stdin.flush()
            chosen, _, _ = select.select([successor.stdout], [], [], 0.5)
            assert dead == [1]
            assert not chosen
        assert successor.stdout.readline() == "1\n"
