"""`roost doctor` against real databases, services and Keystone."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.bench.loopback import free_port
from roost.cli.doctor import CHECKS, doctor
from roost.cli.doctor.check import Deployment, DoctorFinding, run_checks
from roost.cli.doctor.machine import is_served
from roost.cli.listen_options import ListenOptions
from roost.ledger import SCHEMA
from roost.process.option_source import Setting, Source
from roost.server.workers.listeners import Address, UnixAddress
from roost.server.workers.tls import Tls
from roost.storage import Database
from support.certificates import issue, make_authority
from support.databases import Place
from support.forked import run_forked
from support.serving import ENVIRONMENT, Serving
from support.waiting import wait_for

NOAUTH = Setting("api", "auth_strategy", "noauth2")


def unused() -> ListenOptions:
    """An address at which nothing listens."""
    return ListenOptions(Address("127.0.0.1", free_port()), None)


def diagnose(deployment: Deployment) -> dict[str, list[DoctorFinding]]:
    """What each check has found."""
    found: dict[str, list[DoctorFinding]] = {}
    for finding in run_checks(CHECKS, deployment):
        found.setdefault(finding.check, []).append(finding)
    asyncio.run(deployment.close())
    assert list(found) == [check.name for check in CHECKS if check.name in found]
    return found


def said(found: dict[str, list[DoctorFinding]], check: str) -> tuple[str, str, str]:
    """Level, text and change of the only finding of a check."""
    [finding] = found[check]
    return finding.level, finding.says, finding.change


def at(place: Place | str, *settings: Setting, workers: int = 1) -> Deployment:
    url = place if isinstance(place, str) else place.url
    return Deployment(Source((), (NOAUTH, *settings)), unused(), url, workers)


def test_tables_that_are_missing_and_then_made(place: Place) -> None:
    before = diagnose(at(place))
    if place.kind == "sqlite":
        assert said(before, "database")[0] == "ok"
        assert said(before, "revision")[0] == "skip"
    else:
        level, _, change = said(before, "revision")
        assert (level, "roost db upgrade" in change) == ("fail", True)
    database = Database(place.url)
    SCHEMA.upgrade(database)
    asyncio.run(database.close())
    after = diagnose(at(place))
    assert said(after, "database")[0] == "ok"
    assert said(after, "revision") == ("ok", f"the tables are at revision {SCHEMA.newest}", "")
    assert not [each for each in after["database settings"] if "collation" in each.says]
    if place.kind != "sqlite":
        assert said(after, "clock")[0] == "ok"


def test_settings_of_a_running_server_are_judged(place: Place) -> None:
    many = diagnose(at(place, workers=1000))
    texts = [each.says for each in many["database settings"]]
    if place.kind == "sqlite":
        assert texts == ["not checked: the file of the database is not there yet"]
    else:
        assert [text for text in texts if text.startswith("max_connections is")]
    assert said(many, "workers")[0] == "warn"


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    found = diagnose(at(f"postgresql+psycopg://root:secret@127.0.0.1:{free_port()}/x"))
    level, text, change = said(found, "database")
    assert (level, "start the database" in change) == ("fail", True)
    assert "secret" not in text
    assert said(found, "revision") == ("skip", "not checked: the database cannot be opened", "")
    found = diagnose(at(f"sqlite:///{tmp_path / 'no' / 'folder.db'}"))
    assert said(found, "database")[0] == said(found, "disk")[0] == "fail"
    nothing = diagnose(Deployment(Source((), (NOAUTH,)), unused()))
    assert said(nothing, "database")[:2] == ("fail", "no database is configured")


def test_a_configuration_that_cannot_be_read_or_has_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text("[placement]\nmax_allocation_candidates = many\n")
    found = diagnose(Deployment(Source((str(file),)), unused()))
    assert said(found, "configuration")[0] == "fail"
    assert said(found, "policy")[:2] == ("skip", "not checked: the configuration cannot be read")
    file.write_text("[placement]\nmax_allocation_candidate = 5\n[ledger]\ntrim_interval = 0\n")
    file.chmod(0o644)
    (tmp_path / "policy.yaml").write_text('"placement:usages": "role:a and ("\n')
    found = diagnose(Deployment(Source((str(file),), (NOAUTH,)), unused(), f"sqlite:///{tmp_path}/x.db"))
    level, text, change = said(found, "options without effect")
    assert (level, "max_allocation_candidate" in text, change) == ("warn", True, "remove the option")
    assert said(found, "policy")[0] == "fail"
    assert said(found, "trimming")[0] == "warn"
    assert said(found, "permissions") == (
        "warn",
        f"{file} has mode 644: every user of this machine may read it",
        f"chmod o-rwx {file}",
    )


def test_a_running_service_is_asked_and_another_program_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    server = Serving(url, tmp_path / "log")
    try:
        port = int(server.url.rpartition(":")[2])
        command = ["doctor", "--database", url, "--port", str(port), "--metrics", server.url]
        done = run_forked(*command, "--json", env=ENVIRONMENT, seconds=60)
        found = {each["check"]: each for each in json.loads(done.stdout)}
        assert (found["service"]["level"], found["revision"]["level"]) == ("ok", "ok")
        assert "served by" in found["port"]["says"]
        assert (found["metrics"]["level"], done.returncode) == ("fail", 2)
        people = run_forked(*command, env=ENVIRONMENT, seconds=60)
        assert "→ correct --metrics" in people.stdout
        assert people.returncode == 2
    finally:
        server.end(signal.SIGKILL)
    port = free_port()
    script = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    with subprocess.Popen(
        script, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as other:
        try:
            deployment = at(url)
            deployment.listening = ListenOptions(Address("127.0.0.1", port), None)
            # Only then is it seen by all checks of one diagnosis: it is bound before it listens.
            wait_for(lambda: is_served(Address("127.0.0.1", port)))
            found = diagnose(deployment)
            assert f"(process {other.pid})" in said(found, "port")[1]
            assert said(found, "service")[0] == "fail"
            assert "another program listens there" in said(found, "service")[1]
        finally:
            other.kill()


@pytest.mark.parametrize("way", ["socket", "TLS"])
def test_a_service_on_a_unix_socket_or_with_tls_is_asked(tmp_path: Path, way: str) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    if way == "socket":
        file = tmp_path / "roost.sock"
        listening, options = ListenOptions(UnixAddress(file, 0o660), None), ["--uds", str(file)]
    else:
        pair = issue(make_authority(tmp_path, "authority"), tmp_path, "server")
        pair.key.chmod(0o604)
        address = unused().address
        listening = ListenOptions(address, Tls(pair.certificate, pair.key))
        options = ["--tls-cert", str(pair.certificate), "--tls-key", str(pair.key)]
    port = None if isinstance(listening.address, UnixAddress) else listening.address.port
    deployment = Deployment(Source((), (NOAUTH,)), listening, url)
    assert said(diagnose(deployment), "service")[0] == "skip"
    server = Serving(url, tmp_path / "log", arguments=options, port=port, waits=False)
    try:
        wait_for(lambda: is_served(listening.address))
        found = diagnose(Deployment(Source((), (NOAUTH,)), listening, url))
        level, text, _ = said(found, "service")
        assert (level, text.endswith("says ready")) == ("ok", True), text
        assert "is served by" in said(found, "port")[1]
        keys = [each for each in found["permissions"] if "server.key" in each.says]
        assert [each.level for each in keys] == ["warn"] * (way == "TLS")
    finally:
        server.end(signal.SIGKILL)


@pytest.mark.parametrize(
    ("arguments", "port"),
    [
        ((), 8778),
        (("--scheduler",), 8779),
        (("--conductor",), 8780),
        (("--cell-conductor", "rack1"), 8781),
        (("--scheduler", "--port", "8778"), 8778),
    ],
)
def test_the_port_is_by_default_that_of_the_program(arguments: tuple[str, ...], port: int) -> None:
    result = CliRunner().invoke(doctor, [*arguments, "--set", "api.auth_strategy=noauth2", "--json"])
    [found] = [each["says"] for each in json.loads(result.stdout) if each["check"] == "port"]
    assert f"127.0.0.1:{port} " in found
