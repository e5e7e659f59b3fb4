"""People's mistakes have a message and an exit status, and neither a traceback nor a secret."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from roost.cli.main import COMMANDS
from support.processes import RoostUp, run_roost

SECRET = "hunter2Zq"

NOT_ASKED = {"bench", "completion", "config", "man", "metrics"}
"""Commands without a file, an address or a database that could be wrong."""

DATABASES = (
    ("db", "verify"),
    ("db", "upgrade"),
    ("db", "trim"),
    ("db", "backup", "{new}"),
    ("db", "export-placement", "--to", "sqlite:///{tmp}/export.db"),
)
URLS = (
    f"postgresql+psycopg://roost:{SECRET}@127.0.0.1:1/roost",
    f"postgresql+psycopg://127.0.0.1:1/roost?password={SECRET}",
    f"postgresql+psycopg://127.0.0.1:1/roost?pasword={SECRET}",
    f"postgrs+psycopg://roost:{SECRET}@127.0.0.1/roost",
    f"postgresql+pycopg://roost:{SECRET}@127.0.0.1/roost",
    f"postgresql:/roost:{SECRET}@127.0.0.1/roost",
    f"postgresql+psycopg://roost:{SECRET}",
    f"roost:{SECRET}@127.0.0.1/roost",
    f"mysql+pymysql://roost:{SECRET}@127.0.0.1:99999/roost",
    f"mysql+pymysql://127.0.0.1:1/roost?passwrd={SECRET}",
    "sqlite:///{tmp}",
    "sqlite:///{tmp}/none/roost.db",
    "sqlite:///{binary}",
    "sqlite://",
    "",
)
FILES = ("{tmp}", "{tmp}/none", "{binary}", "{latin}", "{line}", "{wrong}", "{unreadable}")
"""Configuration files: a folder, none, no text, another encoding, no section, a wrong value, closed."""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Files and addresses that are wrong, by the names that arguments have for them."""
    names = ("binary", "latin", "line", "wrong", "unreadable", "empty")
    files = {name: tmp_path / f"{name}.file" for name in names}
    files["binary"].write_bytes(bytes(range(256)) * 40)
    files["latin"].write_bytes("[DEFAULT]\n# café\n".encode("latin-1"))
    files["line"].write_text(f"connection postgresql://roost:{SECRET}@db/roost\n")
    files["wrong"].write_text(f"[placement_database]\nanswer_timeout = postgresql://roost:{SECRET}@db/x\n")
    files["unreadable"].write_text("")
    files["unreadable"].chmod(0)
    files["empty"].write_text("")
    if os.access(files["unreadable"], os.R_OK):  # of root nothing is closed
        files["unreadable"].unlink()
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield {
            "tmp": str(tmp_path),
            "new": str(tmp_path / "new"),
            "taken": str(taken.getsockname()[1]),
            **{name: str(path) for name, path in files.items()},
        }


def told(places: dict[str, str], *arguments: str) -> str:
    """What a command says of a mistake; it has ended with the status of one that could not run."""
    done = run_roost(*(each.format_map(places) for each in arguments))
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert SECRET not in said, said
    assert done.returncode == 2, said
    assert said.strip(), "it says why"
    return said


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", [("serve",), ("db", "version")], ids=" ".join)
def test_a_configuration_file_that_is_none(places, command: tuple[str, ...], file: str) -> None:
    assert file.format_map(places) in told(places, *command, "--config-file", file)


@pytest.mark.parametrize("command", ["scheduler", "conductor", "neighbours", "up", "doctor"])
def test_a_folder_is_no_configuration_file(places, command: str) -> None:
    told(places, command, "--config-file", "{tmp}")


@pytest.mark.parametrize("url", URLS)
def test_a_database_that_is_none(places, url: str) -> None:
    told(places, "db", "version", "--database", url)


@pytest.mark.parametrize("command", DATABASES, ids=" ".join)
def test_a_database_whose_url_is_misspelt(places, command: tuple[str, ...]) -> None:
    told(places, *command, "--database", f"postgrs+psycopg://roost:{SECRET}@127.0.0.1/roost")


@pytest.mark.parametrize("url", [URLS[2], URLS[4], URLS[7], URLS[9], URLS[11]])
def test_a_service_waits_for_no_database_that_is_none(places, url: str) -> None:
    told(places, "serve", "--set", "api.auth_strategy=noauth2", "--port", FREE, "--database", url)


FREE = "0"
"""Refused as a port; where a database is looked at first, the test replaces it."""


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.socket()) as asked:
        asked.bind(("127.0.0.1", 0))
        monkeypatch.setitem(globals(), "FREE", str(asked.getsockname()[1]))
    for name in list(os.environ):
        if name.startswith("OS_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "0"),
        ("--port", "65536"),
        ("--port", "http"),
        ("--port", "{taken}"),
        ("--host", "nowhere.invalid"),
        ("--host", "192.0.2.1"),
        ("--uds", "{tmp}/none/socket"),
        ("--uds", "{empty}"),
        ("--tls-cert", "{empty}", "--tls-key", "{empty}"),
        ("--tls-cert", "{tmp}", "--tls-key", "{binary}"),
        ("--tls-cert", "{tmp}/none"),
        ("--metrics-port", "{taken}"),
        ("--drain-seconds", "-1"),
        ("--drain-seconds", "soon"),
        ("--set", "overload.query_seconds"),
        ("--set", f"placement_database.connection postgresql://roost:{SECRET}@db/x"),
        ("--set", f"placement_database.conection=postgresql://roost:{SECRET}@db/x"),
        ("--set", "conductor.max_attempts=2"),
        (f"postgresql://roost:{SECRET}@db/x",),
        ("--databse", f"postgresql://roost:{SECRET}@db/x"),
    ],
    ids=lambda each: " ".join(each).replace(SECRET, "x"),
)
@pytest.mark.parametrize("command", ["serve"])
def test_an_argument_of_a_service_that_is_wrong(places, command: str, arguments: tuple[str, ...]) -> None:
    open_ = ("--set", "api.auth_strategy=noauth2")
    port = () if "--port" in arguments else ("--port", FREE)
    database = ("--data-dir", "{new}") if command == "up" else ("--database", "sqlite:///{tmp}/serve.db")
    told(places, command, *open_, *port, *database, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--workers", "100000"),
        ("serve", "--workers", "0"),
        ("up", "--hosts", "100000000"),
        ("up", "--cells", "0"),
        ("up", "--data-dir", "{empty}"),
        ("up", "--data-dir", "{empty}/below"),
        ("up", "--data-dir", "{new}", "--host-numa-cells", "65"),
        ("agent", "--host", "a", "--state-dir", "{empty}", "--token-file", "{tmp}", "--endpoint", "http://h"),
        (
            "agent",
            "--host",
            "a",
            "--state-dir",
            "{new}",
            "--token-file",
            "{binary}",
            "--endpoint",
            "http://h",
        ),
        (
            "agent",
            "--hosts",
            "2",
            "--state-dir",
            "{new}",
            "--token-file",
            "{empty}",
            "--endpoint",
            "http://h",
        ),
        ("agent", "--host", "a", "--state-dir", "{new}", "--driver", "none", "--token-file", "{empty}"),
        ("token", "add", "x", "--role", "adminn", "--file", "{new}"),
        ("token", "add", "a b", "--role", "admin", "--file", "{new}"),
        ("token", "add", "x", "--role", "admin", "--file", "{tmp}"),
        ("token", "list", "--file", "{binary}"),
        ("token", "list", "--file", "{tmp}/none"),
        ("token", "revoke", "x", "--file", "{empty}"),
        ("token", "list"),
        ("db", "version"),
        ("db", "version", "--section", "records_database"),
        ("db", "version", "--section", "cell_a"),
        ("db", "version", "--section", "cell_a", "--database", "sqlite:///x.db"),
        ("db", "version", f"postgresql://roost:{SECRET}@db/x"),
        ("db", "restore", "{tmp}/none", "--database", "sqlite:///{new}"),
        ("db", "restore", "{tmp}", "--database", "sqlite:///{new}"),
        ("db", "backup", "{tmp}", "--data-dir", "{tmp}"),
        ("db", "backup", "{new}", "--data-dir", "{tmp}", "--database", "sqlite:///{empty}"),
        ("db", "trim", "--database", "sqlite:///{empty}", "--days", "nan"),
        (
            "db",
            "import-placement",
            "--from",
            f"mysql+pymysql://x:{SECRET}@h:port/x",
            "--database",
            "sqlite://",
        ),
        ("records", "--data-dir", "{tmp}"),
        ("records", "--config-file", "{tmp}"),
        ("records", "--config-file", "{latin}"),
        ("records", "--archive", "{binary}"),
        ("archive-records", "--data-dir", "{tmp}", "{tmp}"),
        ("restore-records", "{tmp}"),
        ("replay", "demo", "--data-dir", "{empty}"),
        ("replay-decision", "x", "--data-dir", "{tmp}"),
        ("redfish", "{tmp}"),
        ("doctor", "--config-file", "{tmp}"),
        ("no-such-command",),
        ("serve", "--no-such-option"),
    ],
    ids=lambda each: " ".join(each).replace(SECRET, "x"),
)
def test_a_command_line_that_is_wrong(places, arguments: tuple[str, ...]) -> None:
    told(places, *arguments)


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - NOT_ASKED))
def test_an_option_that_there_is_not(places, command: str) -> None:
    told(places, command, "--no-such-option", f"postgresql://roost:{SECRET}@db/x")


def test_cells_without_hosts_are_no_mistake(tmp_path: Path) -> None:
    """An operator's new cell has no hosts either."""
    with RoostUp(tmp_path / "data", ("--cells", "3", "--hosts", "1")) as up:
        up.wait_until_up()
        with up.client() as client:
            assert client.get("/readyz").json()["ready"]
            assert len(client.get("/v1/cells").json()["cells"]) == 4
        assert up.stop()[0] == 0
