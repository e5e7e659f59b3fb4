"""The compose file: what it starts exists, and its health check answers as a container's engine needs it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import yaml

from roost.bench.loopback import free_port
from roost.cli.configuration import options_without_effect
from roost.cli.main import roost_command
from roost.process.option_source import Source
from support.forked import Forked
from support.processes import SECONDS, run_roost
from support.serving import Serving
from support.waiting import Deadline, patience

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SERVING = ("placement", "dashboard")
OURS = ("migrate", *SERVING)


def test_the_services_wait_for_each_other() -> None:
    assert set(SERVICES) == {"database", *OURS}
    assert SERVICES["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for service in SERVING:
        assert SERVICES[service]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert "healthcheck" in SERVICES["database"] and SERVICES["migrate"]["restart"] == "no"


@pytest.mark.parametrize("service", SERVICES)
def test_images_have_short_names_and_can_be_replaced(service: str) -> None:
    assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[a-z]+(:[\w.-]+)?\}", SERVICES[service]["image"])


def test_the_image_is_built_from_the_containerfile() -> None:
    build = SERVICES["migrate"]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()
    containerfile = (ROOT / build["dockerfile"]).read_text()
    for name, value in build["args"].items():
        default = value.partition(":-")[2].removesuffix("}")
        assert f"ARG {name}={default}\n" in containerfile
    assert len({SERVICES[service]["image"] for service in OURS}) == 1


@pytest.mark.parametrize("service", OURS)
def test_a_container_is_locked_down(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"] is True and settings["tmpfs"] == ["/tmp"]
    assert settings["cap_drop"] == ["ALL"] and settings["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in settings.get("ports", ()))


@pytest.mark.parametrize("service", OURS)
def test_a_command_is_one_of_roost(service: str) -> None:
    command: click.Command | None = roost_command
    words = list(SERVICES[service]["command"])
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None
    context = command.make_context("roost", list(words))
    published = [port.rpartition(":")[2] for port in SERVICES[service].get("ports", ())]
    assert published == ([] if service == "migrate" else [str(context.params["port"])])
    named = words[words.index("--database") + 1] if "--database" in words else None
    url = named or SERVICES[service]["environment"]["OS_PLACEMENT_DATABASE__CONNECTION"]
    assert url == "postgresql+psycopg://roost@database/roost", "the password is in PGPASSWORD"


def test_two_workers_serve() -> None:
    command = SERVICES["placement"]["command"]
    assert command[command.index("--workers") + 1] == "2"


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_an_option_of_roost(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SERVICES[service]["environment"].items():
        monkeypatch.setenv(name, value)
        assert name == "PGPASSWORD" or name.startswith("OS_")
    assert options_without_effect(Source(()), schedules=True) == []


def check(service: str, port: int) -> int:
    """Run the health check of a service with the Python of this environment, at a port here."""
    kind, program, *arguments = SERVICES[service]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    command = [sys.executable, *(re.sub(r":87\d\d", f":{port}", each) for each in arguments)]
    return subprocess.run(command, capture_output=True, timeout=patience(60), check=False).returncode


def test_the_health_check_tells_a_serving_process_from_a_stopped_one(tmp_path: Path) -> None:
    server = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log")
    try:
        healthy = [check(service, server.port) for service in SERVING]
    finally:
        server.end(signal.SIGKILL)
    assert healthy == [0, 0]
    assert all(check(service, server.port) != 0 for service in SERVING)


def test_the_dashboard_starts_and_shows_the_address_that_begins_a_session(tmp_path: Path) -> None:
    """With its own variables and arguments, on the tables that the service before it makes."""
    database = f"sqlite:///{tmp_path / 'roost.db'}"
    assert run_roost("db", "upgrade", "--role", "api", "--database", database).returncode == 0
    port = free_port()
    variables: dict[str, str] = SERVICES["dashboard"]["environment"]
    variables = {name: value.replace("/tmp/", f"{tmp_path}/") for name, value in variables.items()}
    environment = {**os.environ, **variables, "OS_PLACEMENT_DATABASE__CONNECTION": database}
    arguments = [each.replace("0.0.0.0", "127.0.0.1") for each in SERVICES["dashboard"]["command"]]
    with (tmp_path / "log").open("wb") as log:
        process = Forked(*arguments, "--port", str(port), stderr=log, env=environment)
    try:
        until = Deadline(SECONDS)
        while check("dashboard", port):
            assert process.poll() is None and not until.passed, (tmp_path / "log").read_text()
        address = (tmp_path / "dashboard/address").read_text().strip()
        assert address.startswith(f"http://127.0.0.1:{port}/ui/login?once=")
        with httpx.Client(follow_redirects=True, trust_env=False) as browser:
            assert browser.get(address.replace("127.0.0.1", "localhost")).status_code == 200
            assert browser.get(f"http://localhost:{port}/ui").status_code == 200
    finally:
        process.kill()
        process.wait()
