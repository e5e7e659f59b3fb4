"""Service tokens: what the file keeps, who is let in, what a change does to a running service."""

import asyncio
import threading
from pathlib import Path

import pytest
import structlog.testing

from roost.auth import Identity, token_file
from roost.auth.service_tokens import add_token, read_tokens, revoke_token, token_digest
from roost.auth.token_file import TokenFile
from roost.model.errors import OperatorError
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
