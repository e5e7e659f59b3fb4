"""`roost up`: what it says when it cannot, how it rests, and how it stops."""

import json
import socket
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from roost.cli.main import roost_command
from roost.server.all_in_one.layout import kept_layout
from support.certificates import issue, make_authority
from support.processes import RoostUp, free_port, run_roost

SMALL = ("--hosts", "6", "--cells", "2")


def refused(answer: subprocess.CompletedProcess[str], *words: object) -> None:
    """It could not run, and said why in one line with these words."""
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1, answer.stderr
    assert answer.stderr.startswith("roost: ")
    for word in words:
        assert str(word) in answer.stderr


def up(data: Path, *arguments: str, port: int | None = None) -> subprocess.CompletedProcess[str]:
    return run_roost("up", "--port", port or free_port(), "--data-dir", data, *SMALL, *arguments)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A small system that is up, and its data directory."""
    data = tmp_path_factory.mktemp("up") / "data"
    with RoostUp(data, SMALL) as server:
        server.wait_until_up()
        yield server, data


def test_data_directory_that_is_a_file_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("precious")
    refused(up(tmp_path / "file"), tmp_path / "file", "cannot be used")
    refused(up(tmp_path / "file" / "below"), tmp_path / "file", "cannot be used")
    assert (tmp_path / "file").read_text() == "precious"


def test_data_directory_that_nobody_may_make_is_named() -> None:
    refused(up(Path("/proc/roost/data")), "/proc/roost/data", "cannot be used")


def test_port_in_use_is_named_and_nothing_is_made(tmp_path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        refused(up(tmp_path / "data", port=port), f"port {port}", "in use")
    assert not (tmp_path / "data").exists()


def test_data_directory_of_a_running_system_is_refused(running) -> None:
    server, data = running
    refused(up(data), data, "in use by another roost")
    refused(run_roost("replay", "demo", "--data-dir", data, "--fresh"), data, "in use by another roost")
    with server.client() as http:
        assert http.get("/v1/instances").status_code == 200


def test_ready_it_answers_and_at_rest_it_rests(running) -> None:
    server, _ = running
    with server.client() as http:
        assert http.get("/").status_code == 200
    before = server.cpu_seconds
    time.sleep(3)
    # Measured: 0.02 s. A loop that does not wait takes 3 s.
    assert server.cpu_seconds - before < 0.6


@pytest.mark.parametrize("asked", ["idle connection", "half a request"])
def test_sigterm_ends_it_within_seconds_with_status_0(tmp_path, asked) -> None:
    with RoostUp(tmp_path / "data", SMALL) as server:
        server.wait_until_up()
        with closing(socket.create_connection(("127.0.0.1", server.port))) as client:
            if asked == "idle connection":
                client.sendall(b"GET / HTTP/1.1\r\nHost: roost\r\n\r\n")
                assert client.recv(9) == b"HTTP/1.1 "
            elif asked == "half a request":
                client.sendall(b"POST /v1/instances HTTP/1.1\r\nHost: roost\r\nContent-Length: 99\r\n\r\n{")
            status, seconds = server.stop()
        own = [line for line in server.stderr.splitlines() if line.startswith("roost:")]
        assert (status, len(own)) == (0, 2), server.stderr
        # 2 s is what is promised; the rest is for a busy machine. A connection is kept open for a minute.
        assert seconds < 30


def test_stays_with_the_hosts_that_it_was_set_up_with(tmp_path) -> None:
    data = tmp_path / "data"
    with RoostUp(data, (*SMALL, "--host-numa-cells", "2", "--host-pci-devices", "3")) as server:
        server.wait_until_up()
    kept = kept_layout(data)
    assert kept is not None
    for there in (there for hosts in kept.cells.values() for there in hosts):
        assert len((there.host.numa_topology or {})["cells"]) == 2
        assert len(there.host.pci_device_pools) == 3
    refused(
        run_roost("up", "--port", free_port(), "--data-dir", data, "--hosts", "7"), data, "6 hosts", "not 7"
    )
    with RoostUp(data) as server:
        server.wait_until_up()
        assert "6 hosts in 2 cells" in server.stderr

    (data / "layout.json").write_text('{"cells": {"cell1": [{"host": {}}]}}')
    refused(up(data), data / "layout.json", "$.cells")


def test_damaged_or_newer_database_is_named_and_left_as_it_is(tmp_path) -> None:
    data = tmp_path / "data"
    with RoostUp(data, SMALL) as server:
        server.wait_until_up()
        assert server.stop()[0] == 0
    with closing(sqlite3.connect(data / "cell1.db")) as connection, connection:
        connection.execute("update cell_schema set version_num = 'ffff'")
    refused(up(data), "cell1.db", "ffff", "newer than this program")

    (data / "api.db").write_bytes(b"This is not a database. " * 1000)
    refused(up(data), "api.db", "not a database")
    assert (data / "api.db").read_bytes() == b"This is not a database. " * 1000


def test_tokens_are_checked_and_databases_are_elsewhere_if_the_configuration_says_so(tmp_path) -> None:
    data, tokens, elsewhere = tmp_path / "data", tmp_path / "tokens", tmp_path / "elsewhere.db"
    made = run_roost("token", "add", "operator", "--role", "admin", "--file", tokens)
    assert made.returncode == 0, made.stderr
    config = tmp_path / "roost.conf"
    config.write_text(
        f"[api]\nauth_strategy = tokens\ntokens_file = {tokens}\n"
        f"[cell_far]\nconnection = sqlite:///{elsewhere}\n"
    )
    refused(up(data, "--config-file", str(config)), "the configuration names 1 cells, not 2: far")
    with RoostUp(data, ["--hosts", "2", "--config-file", str(config)]) as server:
        server.wait_until_up()
        assert "2 hosts in 1 cells" in server.stderr
        url = f"http://127.0.0.1:{server.port}"
        for path in ("/resource_providers", "/v1/instances", "/v1/hosts", "/v1/capacity"):
            assert httpx.get(f"{url}{path}", headers={"X-Auth-Token": "admin"}).status_code == 401
            with_token = {"X-Auth-Token": made.stdout.split()[-1]}
            assert httpx.get(f"{url}{path}", headers=with_token).status_code == 200
        assert elsewhere.exists() and not (data / "far.db").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--port", "0"), ("--failure-rate", "2"), ("--host-numa-cells", "65")],
)
def test_value_out_of_range_is_named(tmp_path, option, value) -> None:
    answer = run_roost("up", "--data-dir", tmp_path / "data", option, value)
    assert answer.returncode == 2
    assert option in answer.stderr and value in answer.stderr
    assert not (tmp_path / "data").exists()


def test_commands_without_an_address_ask_the_running_system(tmp_path, monkeypatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    with RoostUp(tmp_path / "data", SMALL) as server:
        server.wait_until_up()
        assert (tmp_path / "data/profile.toml").stat().st_mode & 0o077 == 0
        for command in (
            ("instance", "create", "--wait"),
            ("ask",),
            ("records",),
            ("top", "--once"),
            ("cell", "list"),
        ):
            answer = run_roost(*command)
            assert answer.returncode == 0, answer.stderr
        server.kill()
        answer = run_roost("cell", "list")
        assert (answer.returncode, "127.0.0.1:8780 (the default" in answer.stderr) == (2, True), answer.stderr


@pytest.mark.parametrize("form", ["a socket", "a certificate", "both"])
def test_commands_find_a_system_at_a_socket_or_with_a_certificate(tmp_path, monkeypatch, form: str) -> None:
    """The certificate is of an authority that nobody trusts, and for the name of another machine."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    authority = make_authority(tmp_path, "authority")
    pair = issue(authority, tmp_path, "server", "DNS:cloud.example")
    other = issue(authority, tmp_path, "other")
    arguments = [*SMALL]
    if form != "a socket":
        arguments += ["--tls-cert", str(pair.certificate), "--tls-key", str(pair.key)]
    if form != "a certificate":
        arguments += ["--uds", str(tmp_path / "socket")]
    with RoostUp(tmp_path / "data", arguments) as server:
        server.wait_until_up()
        for command in (("instance", "create", "--wait"), ("records",), ("top", "--once"), ("cell", "list")):
            answer = run_roost(*command)
            assert answer.returncode == 0, answer.stderr
        if form == "a certificate":
            # Another certificate of the same authority is not the one that is trusted.
            profile = tmp_path / "data/profile.toml"
            profile.write_text(profile.read_text().replace(str(pair.certificate), str(other.certificate)))
            answer = run_roost("cell", "list")
            assert answer.returncode == 2
            assert "certificate verify failed" in answer.stderr


def test_operators_commands_speak_to_a_running_system(running, monkeypatch, tmp_path) -> None:
    server, _ = running
    monkeypatch.setenv("ROOST_URL", f"http://127.0.0.1:{server.port}")

    def run(*arguments: object, status: int = 0) -> str:
        result = CliRunner().invoke(roost_command, [str(each) for each in arguments])
        assert result.exit_code == status, result.output
        return result.output

    created = run("instance", "create", "--vcpus", 1, "--wait")
    uuid, state, host = created.splitlines()[-1].split()
    assert state == "active"
    shown = json.loads(run("instance", "show", uuid, "--json"))
    assert (shown["state"], shown["host"]) == ("active", host)
    assert uuid in json.dumps(json.loads(run("instance", "list", "--host", host, "--json"))["instances"])
    assert json.loads(run("host", "drain", host, "--json", status=1))["instances"][0]["uuid"] == uuid
    assert "signs of life" in run("host", "remove", host, "--force", "--evidence", "none", status=1)
    run("instance", "delete", uuid)
    run("instance", "watch", uuid)
    run("host", "enable", host)
    assert json.loads(run("host", "show", host, "--json"))["enabled"] is True
    tokens = tmp_path / "tokens"
    run("host", "add", "--cell", "cell1", "new-1", "--token-file", tokens)
    assert tokens.read_text().startswith("new-1 roost-host-")
    assert tokens.stat().st_mode & 0o077 == 0
    run("host", "remove", "new-1")
    assert "no host 'new-1'" in run("host", "show", "new-1", status=1)
    assert "set connection in [cell_x]" in run("cell", "add", "x", status=1)
    kinds = {each["kind"] for each in json.loads(run("service", "list", "--json"))["services"]}
    assert kinds == {"conductor", "cell-conductor"}
    assert json.loads(run("node", "list", host, "--json"))["nodes"][0]["nodename"] == host
