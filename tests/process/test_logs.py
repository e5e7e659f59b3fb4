"""All processes of Roost log in one format, whichever logger a line comes from."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from roost.bench.loopback import free_port
from support.forked import Forked
from support.processes import RoostUp, run_roost
from support.waiting import patience, wait_for

SOURCE = Path(__file__).parents[2] / "src/roost"

LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00) (?P<level>[a-z]+) (?P<process>\d+) "
    r"(?P<logger>[\w.]+)(?: \[(?P<requests>[^\]]+)\])?: (?P<event>.*)"
)

TOKEN = "gAAAAABtoken-that-no-log-may-show"

SPEAKER = """
import logging, sys
import click, structlog
from roost.cli import main

@click.command()
def speak():
    structlog.get_logger("ours").warning("a host is away", host="h 1\\nh 2")
    logging.getLogger("oslo_policy").warning("a rule of %s", "theirs\\nand more")
    logging.getLogger("alembic").info("not shown")
    try:
        raise KeyError("missing")
    except KeyError:
        structlog.get_logger("ours").exception("a fault")
        logging.getLogger("theirs").exception("a fault")

main.speak = speak
main.COMMANDS["speak"] = "roost.cli.main:speak"
sys.argv = ["roost", "speak"]
main.main()
"""


def parse(line: str) -> re.Match[str]:
    found = LINE.fullmatch(line)
    assert found is not None, line
    return found


def lines_of(text: str, logger: str) -> list[re.Match[str]]:
    return [found for found in map(LINE.fullmatch, text.splitlines()) if found and found["logger"] == logger]


def test_a_command_writes_records_of_both_libraries_in_one_format() -> None:
    run = subprocess.run([sys.executable, "-c", SPEAKER], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    ours, theirs = parse(lines[0]), parse(lines[1])
    assert ours.group("level", "logger", "event") == ("warning", "ours", r"a host is away host='h 1\nh 2'")
    assert theirs.group("level", "logger") == ("warning", "oslo_policy")
    assert theirs["event"] == r"'a rule of theirs\nand more'"
    assert ours["process"] == theirs["process"]
    faults = [lines.index(line) for line in lines if line.endswith("a fault")]
    assert [parse(lines[at])["logger"] for at in faults] == ["ours", "theirs"]
    for at in faults:
        assert lines[at + 1] == "    Traceback (most recent call last):"
    assert lines[-1] == "    KeyError: 'missing'"
    assert "not shown" not in run.stderr


def test_the_server_and_its_workers_log_in_one_format(tmp_path: Path) -> None:
    port, keystone = free_port(), free_port()
    configuration = tmp_path / "placement.conf"
    configuration.write_text(
        "[DEFAULT]\ndebug = true\n[api]\nauth_strategy = keystone\n"
        "[keystone_authtoken]\nauth_type = password\n"
        f"www_authenticate_uri = http://127.0.0.1:{keystone}\nauth_url = http://127.0.0.1:{keystone}\n"
        "username = roost\npassword = PASSWORD\nproject_name = service\nuser_domain_id = default\n"
        "project_domain_id = default\nhttp_request_max_retries = 0\n"
    )
    log = tmp_path / "log"
    command = ["serve", "--port", str(port), "--database", f"sqlite:///{tmp_path}/roost.db"]
    with log.open("wb") as file:
        server = Forked(*command, "--config-file", configuration, stderr=file)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: _answers(url))
        answer = httpx.get(f"{url}/resource_providers", headers={"X-Auth-Token": TOKEN}, timeout=patience(60))
        assert answer.status_code == 503
        text = log.read_text()
        [ours] = lines_of(text, "roost.web.auth.keystone")
        theirs = lines_of(text, "keystonemiddleware.auth_token")
        own = answer.headers["x-openstack-request-id"]
        assert {ours["requests"], *(each["requests"] for each in theirs)} == {own}
        assert theirs and {each["process"] for each in theirs} == {ours["process"]} != {str(server.pid)}

        os.kill(int(ours["process"]), signal.SIGKILL)
        wait_for(lambda: bool(lines_of(log.read_text(), "roost.server.workers.supervisor")))
        assert lines_of(log.read_text(), "roost.server.workers.supervisor")[0]["process"] == str(server.pid)
    finally:
        server.terminate()
        server.wait(30)
    assert TOKEN not in log.read_text() and "PASSWORD" not in log.read_text()
    first, *others = log.read_text().splitlines()
    assert first.startswith("roost: Placement API on")
    for line in others:
        parse(line)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def torn_records(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration with records in a file whose last line is unfinished, and the file."""
    records, configuration = tmp_path / "records.jsonl", tmp_path / "roost.conf"
    records.write_text('{"torn')
    configuration.write_text(f"[records]\nbackend = jsonl\npath = {records}\n")
    return configuration, records


def test_the_whole_system_logs_in_that_format(tmp_path: Path, torn_records: tuple[Path, Path]) -> None:
    configuration, records = torn_records
    arguments = ("--hosts", "2", "--cells", "1", "--config-file", str(configuration))
    with RoostUp(tmp_path / "data", arguments) as system:
        system.wait_until_up()
        system.stop()
        [torn] = lines_of(system.stderr, "roost.records.lines")
    assert torn["level"] == "warning" and torn["event"].endswith(f"file='{records}' bytes=6")


def test_a_replay_logs_in_that_format(tmp_path: Path, torn_records: tuple[Path, Path]) -> None:
    configuration, records = torn_records
    arguments = ("--bins", "1", "--config-file", configuration, "--data-dir", tmp_path / "data")
    replayed = run_roost("replay", "demo", *arguments)
    assert replayed.returncode == 0, replayed.stderr
    [torn] = lines_of(replayed.stderr, "roost.records.lines")
    assert torn["event"].endswith(f"file='{records}' bytes=6")


def test_only_one_room_uses_the_standard_library_to_log() -> None:
    used = {path.parent for path in SOURCE.rglob("*.py") if re.search(r"\blogging\.", path.read_text())}
    assert used == {SOURCE / "process" / "logs"}
