"""OpenStack's command line client, unmodified, against a running Roost: every command of osc-placement."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from support.placement_api import uuid_of
from support.serving import Serving

COMMANDS = {each.name.replace("_", " ") for each in entry_points(group="openstack.placement.v1")}
SCRIPT = Path(__file__).with_name("shell.py")
A, B, C, D = (uuid_of(name) for name in ("a", "b", "c", "d"))
AGGREGATE = uuid_of("agg")


class Client:
    """The client, which remembers what commands it was given."""

    def __init__(self, url: str) -> None:
        self._options = [
            "--os-auth-type", "admin_token", "--os-token", "admin", "--os-endpoint", url,
            "--os-placement-api-version", "1.39",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.used: set[str] = set()

    def run(self, command: str, json_output: bool = False) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self.used.update(name for name in COMMANDS if f"{command} ".startswith(f"{name} "))
        arguments = [*self._options, *shlex.split(command), *(["-f", "json"] if json_output else [])]
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        done: dict[str, Any] = json.loads(self._process.stdout.readline())
        return done

    def does(self, command: str) -> None:
        """A command that shows nothing of interest."""
        done = self.run(command)
        assert done["status"] == 0, f"{command}: {done}"

    def shows(self, command: str) -> Any:
        """What a command shows."""
        done = self.run(command, json_output=True)
        assert done["status"] == 0, f"{command}: {done}"
        return json.loads(done["output"])

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Serving(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "log")
    client = Client(server.url)
    yield client
    client.end()
    server.end(signal.SIGKILL)


def test_every_command(client: Client) -> None:
    names_and_providers(client)
    what_providers_have(client)
    allocations(client)
    endings(client)
    assert client.used == COMMANDS


def names_and_providers(client: Client) -> None:
    client.does("resource class create CUSTOM_GPU")
    client.does("resource class set CUSTOM_NPU")
    assert client.shows("resource class show CUSTOM_GPU") == {"name": "CUSTOM_GPU"}
    assert {"CUSTOM_GPU", "CUSTOM_NPU", "VCPU"} <= {
        each["name"] for each in client.shows("resource class list")
    }
    client.does("trait create CUSTOM_FAST")
    assert client.shows("trait show CUSTOM_FAST") == {"name": "CUSTOM_FAST"}
    assert client.shows("trait list --name startswith:CUSTOM") == [{"name": "CUSTOM_FAST"}]
    assert client.shows(f"resource provider create a --uuid {A}")["uuid"] == A
    client.does(f"resource provider create b --uuid {B} --parent-provider {A}")
    assert client.shows(f"resource provider set {B} --name c --parent-provider {A}")["name"] == "c"
    assert client.shows(f"resource provider show {B}")["root_provider_uuid"] == A
    assert {each["uuid"] for each in client.shows(f"resource provider list --in-tree {B}")} == {A, B}


def what_providers_have(client: Client) -> None:
    shown = client.shows(f"resource provider inventory set {A} --resource VCPU=8 --resource CUSTOM_GPU=2")
    assert {each["resource_class"]: each["total"] for each in shown} == {"VCPU": 8, "CUSTOM_GPU": 2}
    client.does(f"resource provider inventory class set {A} VCPU --total 16 --allocation_ratio 2")
    assert client.shows(f"resource provider inventory show {A} VCPU")["total"] == 16
    assert len(client.shows(f"resource provider inventory list {A}")) == 2
    assert client.shows(f"resource provider trait set {A} --trait CUSTOM_FAST") == [{"name": "CUSTOM_FAST"}]
    assert client.shows(f"resource provider trait list {A}") == [{"name": "CUSTOM_FAST"}]
    client.does(f"resource provider aggregate set {A} --aggregate {AGGREGATE} --generation 3")
    assert client.shows(f"resource provider aggregate list {A}") == [{"uuid": AGGREGATE}]
    found = client.shows(
        "allocation candidate list --resource VCPU=4 --required CUSTOM_FAST --member-of " + AGGREGATE
    )
    assert [each["resource provider"] for each in found] == [A]
    groups = "--group 1 --resource VCPU=1 --group 2 --resource CUSTOM_GPU=1 --group-policy none --limit 3"
    assert {each["resource provider"] for each in client.shows(f"allocation candidate list {groups}")} == {A}


def allocations(client: Client) -> None:
    owner = "--project-id p --user-id u --consumer-type INSTANCE"
    wanted = f"--allocation rp={A},VCPU=4 --allocation rp={A},CUSTOM_GPU=1"
    [held] = client.shows(f"resource provider allocation set {C} {wanted} {owner}")
    assert held["resources"] == {"VCPU": 4, "CUSTOM_GPU": 1}
    [held] = client.shows(f"resource provider allocation show {C}")
    assert (held["resource_provider"], held["project_id"], held["user_id"]) == (A, "p", "u")
    used = client.shows(f"resource provider usage show {A}")
    assert {each["resource_class"]: each["usage"] for each in used} == {"VCPU": 4, "CUSTOM_GPU": 1}
    [used] = client.shows("resource usage show p --user-id u")
    assert used["usage"] == {"VCPU": 4, "CUSTOM_GPU": 1, "consumer_count": 1}
    [held] = client.shows(f"resource provider allocation unset {C} --resource-class CUSTOM_GPU")
    assert held["resources"] == {"VCPU": 4}
    refused = client.run(f"resource provider allocation set {D} --allocation rp={A},VCPU=99 {owner}")
    assert refused["status"] == 1 and "exceed the capacity" in refused["errors"]
    refused = client.run(f"resource provider delete {A}")
    assert refused["status"] == 1 and "HTTP 409" in refused["errors"]
    client.does(f"resource provider allocation delete {C}")


def endings(client: Client) -> None:
    client.does(f"resource provider inventory delete {A} --resource-class CUSTOM_GPU")
    client.does(f"resource provider inventory delete {A}")
    client.does(f"resource provider trait delete {A}")
    client.does("trait delete CUSTOM_FAST")
    client.does("resource class delete CUSTOM_GPU")
    client.does(f"resource provider delete {B}")
    client.does(f"resource provider delete {A}")
    assert client.shows("resource provider list") == []
