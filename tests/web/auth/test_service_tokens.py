"""Service tokens: what the file keeps, who is let in, what a change does to a running service."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest
import structlog.testing

from roost.model.errors import OperatorError
from roost.model.token import token_digest
from roost.web.auth import Identity, token_file
from roost.web.auth.service_tokens import add_token, read_tokens, revoke_token
from roost.web.auth.token_file import TokenFile
from support.placement_api import Api
from support.processes import run_roost


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.toml"


def identify(authenticator: TokenFile, **headers: str) -> Identity | None:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(authenticator.identify(sent))


def test_a_token_proves_its_user_project_and_roles(file: Path) -> None:
    token = add_token(file, "conductors", "conductor", "service", ("admin", "service"))
    add_token(file, "other", "someone", 'a "project"\\', ("reader",))
    found = TokenFile(file)
    expected = Identity(user_id="conductor", project_id="service", roles=("admin", "service"))
    assert identify(found, x_auth_token=token) == expected
    # What Keystone's middleware sets is believed from nobody.
    assert identify(found, x_auth_token=token, x_roles="root", x_user_id="root") == expected
    assert read_tokens(file)["other"].project == 'a "project"\\'


@pytest.mark.parametrize("wrong", ["", "admin", "conductors", "roost-service-"])
def test_nothing_else_proves_anything(file: Path, wrong: str) -> None:
    token = add_token(file, "conductors", "conductor", "service", ("admin",))
    found = TokenFile(file)
    assert identify(found) is None
    assert identify(found, x_auth_token=wrong) is None
    # The file's digest is no token, so that a copy of the file lets nobody in.
    assert identify(found, x_auth_token=token_digest(token)) is None


def test_the_file_has_no_token_and_is_closed_to_others(file: Path) -> None:
    token = add_token(file, "one", "one", "service", ("admin",))
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    file.chmod(0o600)
    add_token(file, "two", "two", "service", ("admin",))
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_service_token_names_the_service_and_must_be_valid(file: Path) -> None:
    user = add_token(file, "user", "user", "project", ("member",))
    service = add_token(file, "service", "nova", "service", ("service",))
    found = TokenFile(file)
    identity = identify(found, x_auth_token=user, x_service_token=service)
    assert identity is not None
    assert (identity.user_id, identity.service_user_id) == ("user", "nova")
    assert identity.service_roles == ("service",)
    assert identify(found, x_auth_token=user, x_service_token="false") is None
    assert identify(found, x_service_token=service) is None


def test_a_change_counts_and_an_invalid_file_leaves_the_last_tokens(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "CHECK_SECONDS", 0.0)
    first = add_token(file, "first", "first", "service", ("admin",))
    found = TokenFile(file)
    second = add_token(file, "second", "second", "service", ("admin",))
    assert identify(found, x_auth_token=second) is not None
    revoke_token(file, "first")
    assert identify(found, x_auth_token=first) is None
    kept = file.read_text()
    with structlog.testing.capture_logs() as logs:
        file.write_text("[second]\ndigest = 1\n")
        assert [identify(found, x_auth_token=second) is not None for _ in range(3)] == [True] * 3
        file.unlink()
        assert identify(found, x_auth_token=second) is not None
    assert len(logs) == 2 and "digest" in logs[0]["error"] and "cannot be read" in logs[1]["error"]
    file.write_text(kept)
    assert identify(found, x_auth_token=first) is None
    assert identify(found, x_auth_token=second) is not None


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@only_root
def test_file_stays_its_owners_when_root_changes_it(file: Path) -> None:
    """Services of another user must read the revocation: what they cannot read changes nothing for them."""
    add_token(file, "one", "one", "service", ("admin",))
    os.chown(file, 4711, 4712)
    file.chmod(0o440)
    add_token(file, "two", "two", "service", ("admin",))
    revoke_token(file, "one")
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (4711, 4712, 0o440)


@only_root
def test_change_is_refused_that_would_take_the_file_from_its_owner(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_token(file, "one", "one", "service", ("admin",))
    before = file.read_bytes()
    os.chown(file, 4711, 4712)
    # As it is for a process that is not root.
    monkeypatch.setattr("roost.process.durable_file.os.fchown", refuse)
    with pytest.raises(OperatorError, match="owner 4711 and group 4712"):
        revoke_token(file, "one")
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def refuse(descriptor: int, user: int, group: int) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_file_that_could_not_be_read_is_read_when_it_can_be(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "CHECK_SECONDS", 0.0)
    first = add_token(file, "first", "first", "service", ("admin",))
    found = TokenFile(file)
    revoke_token(file, "first")
    with monkeypatch.context() as broken, structlog.testing.capture_logs() as logs:
        broken.setattr(token_file, "read_tokens", unreadable)
        assert [identify(found, x_auth_token=first) is not None for _ in range(2)] == [True] * 2
    assert [each["error"] for each in logs] == ["tokens: no descriptors are left"]
    assert identify(found, x_auth_token=first) is None


def unreadable(file: Path) -> None:
    raise OperatorError("tokens: no descriptors are left")


def test_change_within_a_tick_of_the_clock_counts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a tool that sets the times of what it writes in place."""
    monkeypatch.setattr(token_file, "CHECK_SECONDS", 0.0)
    token = add_token(file, "one", "alice", "service", ("admin",))
    found = TokenFile(file)
    times = file.stat()
    file.write_text(file.read_text().replace("alice", "carol"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    identity = identify(found, x_auth_token=token)
    assert identity is not None and identity.user_id == "carol"


def test_names_and_texts_of_all_characters_stay_in_the_file(file: Path) -> None:
    """Tables that people named by hand, too."""
    user = 'x 😀 é "\\'
    for name in ("a.b", "", "😀", "a\\u007Fb", 'say \\"hi\\"'):
        add_token(file, "kept", user, user, (user,))
        before = read_tokens(file)["kept"]
        text = f'["{name}"]\ndigest = "{DIGEST}"\nuser = "u"\nproject = "p"\nroles = []\n'
        with file.open("a", encoding="utf-8") as out:
            out.write(text)
        both = read_tokens(file)
        assert len(both) == 2
        add_token(file, "new", "u", "p", ())
        revoke_token(file, "new")
        assert read_tokens(file) == both and both["kept"] == before
        assert before.user == before.project == user and before.roles == (user,)
        file.unlink()


def test_tokens_that_are_added_at_the_same_time_are_all_there(file: Path) -> None:
    adding = [
        threading.Thread(target=add_token, args=(file, f"t{number}", "u", "service", ("admin",)))
        for number in range(8)
    ]
    for each in adding:
        each.start()
    for each in adding:
        each.join()
    assert sorted(read_tokens(file)) == [f"t{number}" for number in range(8)]


DIGEST = token_digest("x")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[a", "table declaration"),
        ('[a]\nuser = "u"\nproject = "p"\nroles = []\n', "digest"),
        (f'[a]\ndigest = "{DIGEST[1:]}"\nuser = "u"\nproject = "p"\nroles = []\n', "digest"),
        (f'[a]\ndigest = "{DIGEST}"\nuser = ""\nproject = "p"\nroles = []\n', "user"),
        (f'[a]\ndigest = "{DIGEST}"\nuser = "u"\nproject = "p"\nroles = "admin"\n', "roles"),
        (f'[a]\ndigest = "{DIGEST}"\nuser = "u"\nproject = "p"\nroles = []\nrole = "x"\n', "role"),
        (
            "".join(f'[{n}]\ndigest = "{DIGEST}"\nuser = "u"\nproject = "p"\nroles = []\n' for n in "ab"),
            "a and b",
        ),
    ],
)
def test_a_file_of_another_form_is_refused_by_name(file: Path, text: str, names: str) -> None:
    file.write_text(text)
    with pytest.raises(OperatorError, match=names) as refused:
        TokenFile(file)
    assert str(file) in str(refused.value)


def test_bad_words_change_nothing(file: Path) -> None:
    add_token(file, "one", "one", "service", ("admin",))
    before = file.read_text()
    for name, user, roles, says in (
        ("one", "u", ("admin",), "already"),
        ("a b", "u", ("admin",), "a b"),
        ("two", "a\nb", ("admin",), "user"),
        ("two", "u", ("",), "roles"),
        # As Python reads an argument that is not UTF-8.
        ("two", "u", ("\udcff",), "roles"),
    ):
        with pytest.raises(OperatorError, match=says):
            add_token(file, name, user, "service", roles)
    with pytest.raises(OperatorError, match="two"):
        revoke_token(file, "two")
    assert file.read_text() == before


def test_a_service_checks_these_tokens_and_its_policy(file: Path, tmp_path: Path) -> None:
    admin = add_token(file, "admin", "admin", "service", ("admin",))
    reader = add_token(file, "reader", "reader", "other", ("reader",))
    api = Api(tmp_path, auth_strategy="tokens", tokens_file=str(file), enforce_new_defaults=True)
    try:
        statuses = {
            token: api.ask("GET", "/resource_providers", x_auth_token=token).status_code
            for token in (admin, reader, "admin")
        }
    finally:
        api.close()
    assert statuses == {admin: 200, reader: 403, "admin": 401}


def test_the_command_writes_lists_and_revokes(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "roost.conf"
    config.write_text(f"[api]\nauth_strategy = tokens\ntokens_file = {file}\n")
    made = run_roost("token", "add", "operator", "--role", "admin", "--config-file", config)
    assert made.returncode == 0, made.stderr
    assert read_tokens(file)["operator"].digest == token_digest(made.stdout.strip())
    listed = run_roost("token", "list", "--file", file)
    assert "operator" in listed.stdout and made.stdout.strip() not in listed.stdout
    assert run_roost("token", "revoke", "operator", "--file", file).returncode == 0
    refused = run_roost("token", "list")
    assert refused.returncode == 2 and "tokens_file" in refused.stderr
    missing = run_roost(
        "serve", "--database", f"sqlite:///{tmp_path}/r.db", "--set", "api.auth_strategy=tokens"
    )
    assert missing.returncode == 2 and "roost token add" in missing.stderr
