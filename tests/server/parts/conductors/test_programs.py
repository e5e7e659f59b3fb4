"""`roost conductor` and `roost cell-conductor` as processes."""

from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.process.option_source import Source
from roost.server.options import read_conducting_options
from roost.server.programs import prepare
from roost.storage import DatabaseUnavailable
from support.processes import run_roost
from support.programs import Program, write_config
from support.serving import SECONDS
from support.waiting import wait_for

FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 512, "disk_gb": 1}


def test_conductor_ends_what_finds_no_host_and_forgets_it(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    with (
        Program(tmp_path, "conductor", config=config) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", config=config) as cell,
    ):
        assert conductor.client.get("/readyz").json()["ready"]
        assert cell.client.get("/readyz").json()["ready"]
        accepted = conductor.client.post("/v1/instances", json={"flavor": FLAVOR})
        assert accepted.status_code == 202, accepted.text
        path = f"/v1/instances/{accepted.json()['instances'][0]}"
        wait_for(lambda: conductor.client.get(path).json()["state"] == "error")
        assert "No valid host was found" in conductor.client.get(path).json()["reason"]
        assert conductor.client.delete(path).status_code == 202
        wait_for(lambda: conductor.client.get(path).status_code == 404)
        assert "/v1/instances" in conductor.client.get("/v1/openapi.json").json()["paths"]
        assert (conductor.end(), cell.end()) == (0, 0)
        assert "Traceback" not in conductor.said() + cell.said()


def test_cell_conductor_with_a_scheduler_over_http_needs_no_api_database(tmp_path: Path) -> None:
    config = tmp_path / "roost.conf"
    config.write_text(
        f"[api_database]\nconnection = sqlite:///{tmp_path}/away/api.db\n"
        f"[cell_a]\nconnection = sqlite:///{tmp_path}/a.db\n"
        "[conductor]\nuse_scheduler_service = true\n"
    )
    prepare("cell-conductor", read_conducting_options(Source((str(config),)), "a"))
    assert (tmp_path / "a.db").exists()
    with pytest.raises(DatabaseUnavailable, match="unable to open"):
        prepare("conductor", read_conducting_options(Source((str(config),))))


@pytest.mark.parametrize(
    ("command", "left_out", "says"),
    [
        (["conductor"], "cell0", "the database of cell cell0 is not configured: set connection in [cell0]"),
        (["conductor"], "api_database", "no database of the conductors: set connection in [api_database]"),
        (["cell-conductor", "cell2"], "", "set connection in [cell_cell2]"),
    ],
)
def test_what_is_not_configured_is_named(
    tmp_path: Path, command: list[str], left_out: str, says: str
) -> None:
    text = write_config(tmp_path).read_text()
    without = "".join("[" + part for part in text.split("[")[1:] if not part.startswith(f"{left_out}]"))
    config = tmp_path / "other.conf"
    config.write_text(without)
    ended = run_roost(*command, "--port", str(free_port()), "--config-file", str(config), seconds=SECONDS)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr
