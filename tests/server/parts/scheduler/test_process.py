"""`roost scheduler` as a process: on a ledger, and by placement over HTTP; wrong options are named."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.processes import RoostUp, run_roost
from support.schedulers import RunningScheduler
from support.serving import Serving
from support.waiting import wait_for

NODE = "00000000-0000-4000-8000-000000000001"


def test_two_schedulers_on_one_platform(tmp_path: Path) -> None:
    """One has the ledger, the other asks the Placement API: both place on a host that nobody reports for."""
    database = f"sqlite:///{tmp_path / 'roost.db'}"
    serving = Serving(database, tmp_path / "serve.log")
    local = RunningScheduler(tmp_path / "local", database=database)
    remote = RunningScheduler(
        tmp_path / "remote",
        placement=serving.url,
        settings=("scheduler.hosts_from_placement=true", "scheduler.placement_hosts_seconds=0"),
    )
    try:
        assert local.select().status_code == 409
        provider = {"uuid": NODE, "name": "host1"}
        assert serving.ask("POST", "/resource_providers", provider).status_code == 200
        inventories = {"VCPU": {"total": 3}, "MEMORY_MB": {"total": 2048}}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        path = f"/resource_providers/{NODE}/inventories"
        assert serving.ask("PUT", path, body).status_code == 200
        for each in (local, remote, local):
            answer = each.select()
            assert answer.status_code == 200, answer.text
            assert answer.json()["destinations"][0]["selected"]["host"] == "host1"
        for each in (local, remote):
            assert each.select().json()["errors"][0]["code"] == "scheduler.no_valid_host"
            assert each.client.get("/readyz").json()["ready"]
            document = each.client.get("/v1/openapi.json").json()
            assert "/v1/use_alternate" in document["paths"]
            assert each.client.get("/v1/select_destinations").status_code == 405
            refused = each.client.post("/v1/select_destinations", headers={"x-auth-token": "user:project"})
            assert refused.status_code == 403
        asked = run_roost("ask", "--scheduler", local.url, "--vcpus", "0", "--memory-mb", "9", "--count", "2")
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout.count("host1") == 2
        refused = run_roost("ask", "--scheduler", remote.url, "--vcpus", "4", "--json")
        assert (refused.returncode, '"scheduler.no_valid_host"' in refused.stdout) == (1, True)
        wrong = run_roost("ask", "--scheduler", remote.url, "--extra-spec", "trait:CUSTOM_NO=required")
        assert (wrong.returncode, "CUSTOM_NO" in wrong.stderr) == (1, True)
        serving.end()
        assert remote.select().status_code == 503
        wait_for(lambda: not remote.client.get("/readyz").json()["ready"])
    finally:
        assert (local.end(), remote.end()) == (0, 0)
    assert "Traceback" not in local.said() + remote.said()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--database", "sqlite:///roost.db"], "no hosts: set connection in [api_database]"),
        (["--set", "scheduler.hosts_from_placement=true"], "[placement] has no auth_type"),
        (["--set", "scheduler.hosts=true"], "--set scheduler.hosts: no such option"),
        (
            ["--set", "scheduler.hosts_from_placement=true", "--set", "filter_scheduler.enabled_filters=No"],
            "No",
        ),
    ],
)
def test_what_cannot_work_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run_roost("scheduler", "--set", "api.auth_strategy=noauth2", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_the_api_database_of_nova_is_not_taken_for_its_own(tmp_path: Path) -> None:
    """The option of a nova.conf has the same name, and four tables have."""
    nova = tmp_path / "nova_api.db"
    with closing(sqlite3.connect(nova)) as connection:
        connection.execute("CREATE TABLE cell_mappings (id INTEGER, uuid VARCHAR(36), name VARCHAR(255))")
        connection.commit()
    config = tmp_path / "nova.conf"
    config.write_text(f"[api_database]\nconnection = sqlite:///{nova}\n[api]\nauth_strategy = noauth2\n")
    database = f"sqlite:///{tmp_path / 'roost.db'}"
    done = run_roost("scheduler", "--config-file", config, "--database", database)
    assert done.returncode == 2
    assert "[api_database] connection: database sqlite:///" in done.stderr, done.stderr
    assert "belongs to another program, such as Nova: it has a table cell_mappings" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    with closing(sqlite3.connect(nova)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("cell_mappings",)]


def test_the_hosts_of_conductors(tmp_path: Path) -> None:
    """Beside `roost up`: hosts are those that the cells' databases report, and claims are in one ledger."""
    with RoostUp(tmp_path / "data", ("--hosts", "3", "--cells", "2")) as system:
        system.wait_until_up()
        database = f"sqlite:///{tmp_path / 'data' / 'api.db'}"
        beside = RunningScheduler(
            tmp_path / "beside", database=database, settings=(f"api_database.connection={database}",)
        )
        try:
            answer = beside.select(num_alternates=1)
            assert answer.status_code == 200, answer.text
            [destination] = answer.json()["destinations"]
            assert destination["selected"]["cell"] in ("cell1", "cell2")
            with system.client() as placement:
                held = placement.get(f"/allocations/{destination['instance']}").json()["allocations"]
            assert set(held) == set(destination["selected"]["allocations"])
        finally:
            assert beside.end() == 0
        assert "Traceback" not in beside.said(), beside.said()
