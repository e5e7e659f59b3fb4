"""`roost aggregate` and `roost server-group`, as commands beside a system that runs."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.processes import RoostUp, run_roost

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with (
        pytest.MonkeyPatch.context() as patch,
        RoostUp(tmp_path_factory.mktemp("up") / "data", ("--hosts", "3", "--cells", "1")) as server,
    ):
        server.wait_until_up()
        # A line of a table is not folded then.
        patch.delenv("COLUMNS", raising=False)

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return run_roost(*command, "--url", f"http://127.0.0.1:{server.port}")

        yield run


def read(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def refused(done: subprocess.CompletedProcess[str], *words: str, status: int = 1) -> None:
    assert done.returncode == status, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def active(run: Run, *options: str) -> str:
    """The uuid of a new instance that runs."""
    done = run("instance", "create", "--vcpus", "1", *options, "--wait")
    uuid, state, _ = done.stdout.splitlines()[-1].split()
    assert state == "active", done.stdout
    return uuid


def test_an_aggregate_is_made_changed_and_deleted_by_its_name(run: Run) -> None:
    uuid = run("aggregate", "create", "rack1", "--zone", "az1", "--metadata", "ssd=true").stdout.strip()
    added = read(run("aggregate", "add", "rack1", "host-0001", "host-0002", "--json"))
    assert added["member_count"] == 2
    shown = read(run("aggregate", "show", "rack1", "--json"))
    assert shown == read(run("aggregate", "show", uuid, "--json"))
    assert shown["metadata"] == {"availability_zone": "az1", "ssd": "true"}
    table = run("aggregate", "show", "rack1").stdout
    assert all(word in table for word in (uuid, "az1", "host-0001", "host-0002"))
    [listed] = read(run("aggregate", "list", "--json"))["aggregates"]  # type: ignore[misc]
    assert (listed["uuid"], listed["member_count"]) == (uuid, 2)
    line = next(line for line in run("aggregate", "list").stdout.splitlines() if uuid in line)
    assert all(word in line for word in ("rack1", "az1", "ssd=true"))

    changed = read(
        run("aggregate", "set", uuid, "--name", "rack2", "--metadata", "gpu=1", "--unset", "ssd", "--json")
    )
    assert (changed["name"], changed["metadata"]) == ("rack2", {"availability_zone": "az1", "gpu": "1"})
    assert read(run("aggregate", "set", "rack2", "--no-zone", "--json"))["metadata"] == {"gpu": "1"}
    refused(run("aggregate", "delete", "rack2"), "members")
    assert run("aggregate", "remove", "rack2", "host-0001", "host-0002").returncode == 0
    assert run("aggregate", "delete", "rack2").returncode == 0
    assert read(run("aggregate", "list", "--json")) == {"aggregates": []}


def test_a_zone_stays_while_its_node_has_instances(run: Run) -> None:
    instance = active(run, "--host", "host-0003")
    assert run("aggregate", "create", "rack3", "--zone", "az3").returncode == 0
    refused(run("aggregate", "add", "rack3", "host-0003"), "availability zone", "az3", "1 instances")
    assert read(run("aggregate", "show", "rack3", "--json"))["members"] == []
    assert run("instance", "delete", instance).returncode == 0
    assert run("aggregate", "delete", "rack3").returncode == 0


def test_what_is_not_there_or_contradicts_itself_is_named(run: Run) -> None:
    refused(run("aggregate", "show", "nowhere"), "no aggregate nowhere")
    unknown = "4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11"
    refused(run("aggregate", "show", unknown), unknown)
    refused(run("server-group", "show", unknown), unknown)
    refused(run("aggregate", "create", "rack4", "--metadata", "ssd"), "'ssd' is not KEY=VALUE", status=2)
    assert run("aggregate", "create", "rack4").returncode == 0
    refused(run("aggregate", "create", "rack4"), "rack4")
    refused(run("aggregate", "add", "rack4", "host-9"), "no compute node 'host-9'")
    refused(run("aggregate", "set", "rack4", "--zone", "a", "--no-zone"), "exclude", status=2)
    refused(run("aggregate", "set", "rack4", "--unset", "ssd"), "no metadata ssd", status=2)
    assert run("aggregate", "delete", "rack4").returncode == 0
    create = ("server-group", "create", "web", "--policy", "affinity", "--max-per-host", "2")
    refused(run(*create), "max_server_per_host 2")


def test_a_server_group_is_made_used_and_deleted(run: Run) -> None:
    create = ("server-group", "create", "web", "--policy", "anti-affinity", "--max-per-host", "2")
    uuid = run(*create).stdout.strip()
    instance = active(run, "--hint", f"group={uuid}")
    shown = read(run("server-group", "show", uuid, "--json"))
    assert (shown["members"], shown["rules"]) == ([instance], {"max_server_per_host": 2})
    assert instance in run("server-group", "show", uuid).stdout
    line = next(line for line in run("server-group", "list").stdout.splitlines() if uuid in line)
    assert all(word in line for word in ("web", "anti-affinity", "2", "admin"))
    [listed] = read(run("server-group", "list", "--all-projects", "--json"))["server_groups"]  # type: ignore[misc]
    assert listed["uuid"] == uuid
    assert run("server-group", "delete", uuid).returncode == 0
    assert read(run("server-group", "list", "--json")) == {"server_groups": []}


def test_no_conductor_is_status_2(tmp_path: Path) -> None:
    done = run_roost("aggregate", "list", "--url", "http://127.0.0.1:9")
    refused(done, "does not answer", status=2)
