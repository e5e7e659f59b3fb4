"""The programs of a server's client package: what they are told, and a database that is replaced in use."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.server.backup.errors import ToolFailed
from server.backup.backing import backed_up, content, fill, restored
from support.databases import Place, Servers
from support.serving import Serving

PASSWORD = "se cret'pass"
TOOLS = {
    "postgresql": ("pg_dump", "pg_restore", "psql"),
    "mariadb": ("mariadb-dump", "mariadb"),
}


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@contextmanager
def with_password(kind: str, url: str) -> Iterator[str]:
    """The URL with a password. PostgreSQL's test server accepts any, MariaDB gets a user with this one."""
    if kind == "postgresql":
        yield with_user(url, str(sa.make_url(url).username))
        return
    user = f"u{os.getpid()}"
    execute(
        url,
        f"CREATE USER '{user}'@'%%' IDENTIFIED BY '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
        f"GRANT ALL ON *.* TO '{user}'@'%%'",
    )
    try:
        yield with_user(url, user)
    finally:
        execute(url, f"DROP USER '{user}'@'%%'")


def with_user(url: str, user: str) -> str:
    changed = sa.make_url(url).set(username=user, password=PASSWORD)
    return changed.render_as_string(hide_password=False)


def record_arguments(folder: Path, names: tuple[str, ...]) -> Path:
    """Put programs into a folder that note their arguments and call the right ones; return the notes."""
    folder.mkdir()
    notes = folder / "notes"
    for name in names:
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >> {notes}\nexec {shutil.which(name)} "$@"\n')
        script.chmod(0o755)
    return notes


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_passwords_are_not_among_the_arguments(
    kind: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = record_arguments(tmp_path / "bin", TOOLS[kind])
    with servers.place(kind, tmp_path) as place, with_password(kind, place.url) as url:
        fill(place, 3)
        whole = content(place.url)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        backed_up(url, tmp_path / "backup")
        restored(tmp_path / "backup", url, replace=True)
        assert content(place.url) == whole
    said = notes.read_text()
    assert all(f"{name} " in said for name in TOOLS[kind])
    assert "secret" not in said and "cret" not in said


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_program_that_fails_is_named_and_nothing_is_left(
    kind: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.place(kind, tmp_path) as place:
        fill(place, 3)
        whole = content(place.url)
        backed_up(place.url, tmp_path / "backup")
        for name in TOOLS[kind]:
            broken = tmp_path / name
            broken.mkdir()
            for each in TOOLS[kind]:
                (broken / each).symlink_to(str(shutil.which(each)))
            (broken / name).unlink()
            (broken / name).write_text("#!/bin/sh\necho no >&2; exit 3\n")
            (broken / name).chmod(0o755)
            with monkeypatch.context() as patched:
                patched.setenv("PATH", f"{broken}:{os.environ['PATH']}")
                with pytest.raises(ToolFailed, match=f"{name} ended with status 3: no"):
                    backed_up(place.url, tmp_path / "new")
                    restored(tmp_path / "backup", place.url, replace=True)
            shutil.rmtree(tmp_path / "new", ignore_errors=True)
            assert content(place.url) == whole


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_a_worker_that_was_not_stopped_serves_what_was_restored(
    kind: str, servers: Servers, tmp_path: Path
) -> None:
    host = "00000000-0000-0000-0000-000000000001"

    def claim(server: Serving, consumer: str, vcpus: int) -> None:
        body = {
            "allocations": {host: {"resources": {"VCPU": vcpus}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert server.ask("PUT", f"/allocations/{consumer}", body).status_code == 204

    with servers.place(kind, tmp_path) as place:
        fill(place, 3)
        server = Serving(place.url, tmp_path / "log")
        try:
            server.ask("POST", "/resource_providers", {"name": "h", "uuid": host})
            inventory = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
            assert server.ask("PUT", f"/resource_providers/{host}/inventories", inventory).is_success
            claim(server, "10000000-0000-0000-0000-000000000001", 2)
            backed_up(place.url, tmp_path / "backup")
            claim(server, "10000000-0000-0000-0000-000000000002", 5)
            restored(tmp_path / "backup", place.url, replace=True)
            used = server.ask("GET", f"/resource_providers/{host}/usages").json()["usages"]
            assert used == {"VCPU": 2}
            claim(server, "10000000-0000-0000-0000-000000000003", 6)
        finally:
            server.end()


def test_a_backup_is_only_for_its_owner(tmp_path: Path) -> None:
    fill(Place("sqlite", (f"sqlite:///{tmp_path / 'roost.db'}",)), 1)
    backed_up(f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700
