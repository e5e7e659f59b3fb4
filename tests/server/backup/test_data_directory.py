"""All databases of a `roost up` in one backup, made while instances come and go."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.conductor.comparison import LEAKED_CLAIM, MISSING_CLAIM, MISSING_INSTANCE, UNMAPPED_INSTANCE
from roost.server.backup.data_directory import back_up_directory
from server.backup.backing import content
from support.processes import RoostUp, run_roost

FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 256, "disk_gb": 1}
BETWEEN = {LEAKED_CLAIM, MISSING_CLAIM, MISSING_INSTANCE, UNMAPPED_INSTANCE}
"""What an instance may be that was built or deleted between the snapshots of two databases."""


@contextmanager
def busy(system: RoostUp) -> Iterator[list[str]]:
    """Build and delete instances without end; the list grows with each that was accepted."""
    accepted: list[str] = []
    failed: list[str] = []
    stopped = threading.Event()

    def run() -> None:
        with system.client() as http:
            while not stopped.is_set():
                answer = http.post("/v1/instances", json={"flavor": FLAVOR, "count": 2, "min_count": 1})
                if answer.status_code != 202:
                    failed.append(answer.text)
                    return
                accepted.extend(answer.json()["instances"])
                if len(accepted) % 3 == 0:
                    http.delete(f"/v1/instances/{accepted[-3]}")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield accepted
    finally:
        stopped.set()
        thread.join()
    assert failed == []


def wait_for(accepted: list[str], count: int) -> None:
    pause = threading.Event()
    for _ in range(12_000):
        if len(accepted) >= count:
            return
        pause.wait(0.01)
    raise AssertionError(f"only {len(accepted)} instances")


def test_a_system_is_backed_up_while_it_builds_and_goes_on_elsewhere(tmp_path: Path) -> None:
    folder, backup, new = tmp_path / "up", tmp_path / "backup", tmp_path / "new"
    with RoostUp(folder, ("--hosts", "6", "--cells", "2")) as system:
        system.wait_until_up()
        with busy(system) as accepted:
            wait_for(accepted, 20)
            made = run_roost("db", "backup", "--data-dir", folder, backup, "--json")
            assert made.returncode == 0, made.stderr
            wait_for(accepted, len(accepted) + 6)
    manifest = json.loads(made.stdout)["manifest"]
    names = [each["name"] for each in manifest["databases"]]
    assert names == ["cell0", "cell1", "cell2", "api", "records"]
    assert [each["file"] for each in manifest["files"]] == ["layout.json"]
    shutil.rmtree(folder)  # so that nothing of it is read by mistake

    done = run_roost("db", "restore", backup, "--data-dir", new, "--json")
    restored = json.loads(done.stdout)
    assert {each["kind"] for each in restored["findings"]} <= BETWEEN
    assert done.returncode == (1 if restored["findings"] else 0), done.stderr
    assert restored["not_checked"] == []
    before = {each["name"]: (each["identity"], each["incarnation"]) for each in manifest["databases"]}
    for each in restored["databases"]:
        uuid, incarnation = before[each["name"]]
        assert (each["identity"], each["incarnation"] > incarnation) == (uuid, True)
    names_now = {row[1] for row in content(f"sqlite:///{new / 'api.db'}")["cell_mappings"]}
    assert names_now == {f"sqlite:///{new / name}.db" for name in ("cell0", "cell1", "cell2")}

    with RoostUp(new) as system:
        system.wait_until_up()
        with busy(system) as accepted:
            wait_for(accepted, 6)
        with system.client() as http:
            page = http.get("/v1/instances", params={"limit": 1000}).json()
            assert set(accepted[:1]) <= {each["uuid"] for each in page["instances"]}


def test_a_directory_that_exists_is_refused_and_one_database_can_be_chosen(tmp_path: Path) -> None:
    folder, backup = tmp_path / "up", tmp_path / "backup"
    with RoostUp(folder, ("--hosts", "2", "--cells", "1")) as system:
        system.wait_until_up()
        back_up_directory(folder, backup, lambda *_: None)
    refused = run_roost("db", "restore", backup, "--data-dir", folder)
    assert refused.returncode == 2
    assert refused.stderr == f"roost: {folder} exists already: name a new folder\n"
    target = f"sqlite:///{tmp_path / 'one.db'}"
    refused = run_roost("db", "restore", backup, "--database", target)
    assert refused.returncode == 2
    assert "has the databases cell0, cell1, api, records: name one with --only" in refused.stderr
    done = run_roost("db", "restore", backup, "--only", "cell1", "--database", target)
    assert done.returncode == 0, done.stderr
    cell = content(f"sqlite:///{folder / 'cell1.db'}")
    # Leases are renewed all the time.
    assert {name: rows for name, rows in content(target).items() if name != "leases"} == {
        name: rows for name, rows in cell.items() if name != "leases"
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no database: give --database or --data-dir"),
        (("--database", "sqlite:///x.db", "--data-dir", "x"), "give either --database or --data-dir"),
    ],
)
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_database_or_a_directory_must_be_named(
    tmp_path: Path, command: str, arguments: tuple[str, ...], said: str
) -> None:
    answer = run_roost("db", command, tmp_path, *arguments)
    assert answer.returncode == 2
    assert said in answer.stderr
