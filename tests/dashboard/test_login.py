"""Login: by token, and by name and password at a real Keystone; a dashboard as a program of its own."""

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from roost.dashboard.session.keystone import KeystonePasswords
from roost.dashboard.session.login_methods import PasswordCredentials
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth import IdentityUnavailable
from roost.web.auth.keystone import Keystone as Authenticator
from support.dashboards import opened_dashboard
from support.keystone import PASSWORD, Keystone
from support.processes import run_roost
from support.programs import Program, write_config
from web.auth.conftest import configure


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    running = Keystone.start(tmp_path_factory.mktemp("keystone"))
    yield running
    running.close()


def test_keystone_issues_refuses_and_revokes(keystone: Keystone, tmp_path: Path) -> None:
    source = configure(tmp_path, keystone.url)
    passwords, authenticator = KeystonePasswords(source), Authenticator(source)

    async def run() -> None:
        issued = await passwords.issue(PasswordCredentials("rita", PASSWORD, "Default", "alpha", "Default"))
        assert issued is not None and issued.user == "rita" and issued.ends > time.time()
        identity = await authenticator.identify({"x-auth-token": issued.token})
        assert identity is not None and identity.project_id is not None
        for wrong in (
            PasswordCredentials("rita", "guessed", "Default", "alpha", "Default"),
            PasswordCredentials("rita", PASSWORD, "Default", "nowhere", "Default"),
            PasswordCredentials("nobody", PASSWORD, "Default", "alpha", "Default"),
        ):
            assert await passwords.issue(wrong) is None
        await passwords.revoke(issued.token)
        # The authenticator may keep a valid token for seconds: another one asks.
        assert await Authenticator(source).identify({"x-auth-token": issued.token}) is None
        await passwords.revoke(issued.token)

    asyncio.run(run())


def test_keystone_that_does_not_answer_is_told(tmp_path: Path) -> None:
    passwords = KeystonePasswords(configure(tmp_path, "http://127.0.0.1:9/v3"))
    with pytest.raises(IdentityUnavailable, match="does not answer"):
        asyncio.run(passwords.issue(PasswordCredentials("a", "b", "Default", "c", "Default")))


def test_without_a_url_of_keystone_the_start_ends(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("[keystone_authtoken]\nauth_type = password\n")
    with pytest.raises(OperatorError, match="no auth_url"):
        KeystonePasswords(Source((str(file),)))


def test_a_dashboard_of_its_own_shows_hosts_and_takes_tokens(tmp_path: Path) -> None:
    async def some_cloud() -> None:
        async with opened_dashboard(tmp_path / "up") as client:
            await client.system.settle()

    asyncio.run(some_cloud())
    up = tmp_path / "up"
    config = write_config(
        tmp_path,
        ("cell1", "cell2"),
        api=f"auth_strategy = tokens\ntokens_file = {tmp_path / 'tokens.json'}",
        placement_database=f"connection = sqlite:///{up / 'api.db'}",
        api_database=f"connection = sqlite:///{up / 'api.db'}",
        records=f"connection = sqlite:///{up / 'records.db'}",
    )
    made = run_roost("token", "add", "ops", "--role", "admin", "--config-file", config)
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip().splitlines()[-1].split()[-1]
    with Program(tmp_path, "dashboard", config=config, settings=["api.auth_strategy=tokens"]) as program:
        with httpx.Client(base_url=program.url, timeout=60) as client:
            assert client.get("/").headers["location"] == "/ui"
            assert client.post("/ui/login", data={"token": "guessed"}).status_code == 401
            began = client.post("/ui/login", data={"token": token, "next": "/ui?format=json"})
            assert began.status_code == 303 and began.headers["location"] == "/ui?format=json"
            view = client.get("/ui?format=json").json()
            assert view["hosts"] == 6 and {each["name"] for each in view["cells"]} == {"cell1", "cell2"}
            page = client.get("/ui").text
            assert token not in page and token not in program.said()
            guard = re.search(r'name="roost-session" content="([^"]+)"', page)
            assert guard is not None
            copied = dict(client.cookies)
            assert client.post("/ui/logout", headers={"x-roost-session": guard[1]}).status_code == 204
        with httpx.Client(base_url=program.url, cookies=copied, timeout=60) as replayed:
            assert replayed.get("/ui").status_code == 303
