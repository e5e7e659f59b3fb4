"""Credentials for requests to another service: tokens by keystoneauth1, the catalogue, renewal."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from keystoneauth1.access import AccessInfo, create
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.session import Session

from roost.model.errors import OperatorError
from roost.placement.client import HttpPlacement
from roost.placement.errors import PlacementError
from roost.process.option_source import Source
from roost.web.auth.credentials import Access
from roost.web.auth.keystone_credentials import KeystoneCredentials, read_client_options
from support.keystone import PASSWORD, Keystone
from support.placement_api import Api
from support.waiting import patience
from web.auth.conftest import configure

LOGIN = (
    "auth_type = password",
    "username = nova",
    f"password = {PASSWORD}",
    "project_name = service",
    "user_domain_name = Default",
    "project_domain_name = Default",
)


def client_options(folder: Path, *lines: str) -> Source:
    file = folder / "client.conf"
    file.write_text("\n".join(("[placement]", *lines)))
    return Source((str(file),))


@pytest.fixture
def logged_in(keystone: Keystone, tmp_path: Path) -> Source:
    return client_options(tmp_path, f"auth_url = {keystone.url}", *LOGIN)


@pytest.fixture
def guarded(tmp_path: Path, keystone: Keystone) -> Iterator[Api]:
    """A placement service that asks Keystone about the token of each request."""
    source = configure(tmp_path, keystone.url, "token_cache_time = -1")
    api = Api(tmp_path, auth_strategy="keystone", source=source, enforce_new_defaults=True)
    yield api
    api.close()


class Wire(httpx.AsyncBaseTransport):
    """A service in this process, and the URL and token of each request to it."""

    def __init__(self, api: Api) -> None:
        self._service = httpx.ASGITransport(app=api.app)
        self.urls: list[str] = []
        self.tokens: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.urls.append(str(request.url))
        self.tokens.append(request.headers["x-auth-token"])
        return await self._service.handle_async_request(request)


def use(source: Source, api: Api, work: Callable[[HttpPlacement], Awaitable[None]]) -> Wire:
    """Work with a client that has the credentials of a source, on a service in this process."""
    wire = Wire(api)
    credentials = read_client_options(source, "placement", "placement").credentials

    async def run() -> None:
        async with HttpPlacement(credentials, client=httpx.AsyncClient(transport=wire)) as placement:
            await work(placement)

    api.run(run())
    return wire


def test_the_catalogue_says_where_the_service_is_and_one_token_serves_many_requests(
    logged_in: Source, guarded: Api
) -> None:
    async def work(placement: HttpPlacement) -> None:
        await asyncio.gather(*(placement.ensure_resource_class(f"CUSTOM_{number}") for number in range(3)))
        await placement.ensure_resource_class("CUSTOM_LAST")

    wire = use(logged_in, guarded, work)
    assert set(wire.urls) == {
        f"http://there/resource_classes/CUSTOM_{each}" for each in ("0", "1", "2", "LAST")
    }
    assert len(wire.urls) == 4
    assert len(set(wire.tokens)) == 1


def test_a_revoked_token_is_renewed_once_for_all_requests(
    keystone: Keystone, logged_in: Source, guarded: Api
) -> None:
    credentials = read_client_options(logged_in, "placement", "placement").credentials
    wire = Wire(guarded)

    async def run() -> None:
        async with HttpPlacement(credentials, client=httpx.AsyncClient(transport=wire)) as placement:
            await placement.ensure_resource_class("CUSTOM_FIRST")
            keystone.revoke(wire.tokens[0])
            names = [f"CUSTOM_{number}" for number in range(3)]
            await asyncio.gather(*map(placement.ensure_resource_class, names))

    guarded.run(run())
    assert wire.tokens.count(wire.tokens[0]) == 4, "once before it is revoked, and by each of three after it"
    assert len(wire.tokens) == 7
    assert len(set(wire.tokens)) == 2


class Issuer(BaseIdentityPlugin):
    """Issues the tokens 1, 2, …, each good for some seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self._seconds = seconds
        self.issued = 0

    def get_auth_ref(self, session: Session, **_: object) -> AccessInfo:
        time.sleep(0.1)
        self.issued += 1
        endpoints = [
            {"id": interface, "interface": interface, "url": url, "region": "here", "region_id": "here"}
            for interface, url in (("internal", "http://inside"), ("public", "http://there"))
        ]
        token = {
            "methods": ["password"],
            "expires_at": (datetime.now(UTC) + timedelta(seconds=self._seconds)).isoformat(),
            "project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}},
            "catalog": [{"id": "s", "type": "placement", "name": "placement", "endpoints": endpoints}],
        }
        return create(body={"token": token}, auth_token=str(self.issued))


def credentials_of(issuer: Issuer) -> KeystoneCredentials:
    session = Session(auth=issuer)
    return KeystoneCredentials(Adapter(session, "placement", interface=["internal", "public"], auth=issuer))


def test_a_token_is_issued_once_for_all_that_wait_and_used_until_shortly_before_its_end() -> None:
    issuer = Issuer(seconds=3600)

    async def ask() -> list[Access]:
        credentials = credentials_of(issuer)
        together = await asyncio.gather(*(credentials.access() for _ in range(10)))
        return [*together, await credentials.access()]

    assert set(asyncio.run(ask())) == {Access("http://inside", "1")}
    assert issuer.issued == 1


def test_a_token_that_ends_soon_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.web.auth.keystone_credentials.SHORTEST_USE", 0)

    async def ask() -> list[Access]:
        credentials = credentials_of(Issuer(seconds=60))
        return [await credentials.access() for _ in range(3)]

    assert len(set(asyncio.run(ask()))) == 3


def test_a_refused_token_is_replaced_once_for_all_that_it_was_refused_to() -> None:
    issuer = Issuer(seconds=3600)

    async def ask() -> set[Access]:
        credentials = credentials_of(issuer)
        refused = await credentials.access()
        renewed = await asyncio.gather(*(credentials.renew(refused) for _ in range(10)))
        return {*renewed, await credentials.renew(refused), await credentials.access()}

    assert asyncio.run(ask()) == {Access("http://inside", "2")}
    assert issuer.issued == 2


def test_a_request_that_is_given_up_takes_the_token_from_no_other() -> None:
    issuer = Issuer(seconds=3600)

    async def ask() -> Access:
        credentials = credentials_of(issuer)
        given_up = asyncio.create_task(credentials.access())
        other = asyncio.create_task(credentials.access())
        await asyncio.sleep(0.01)
        given_up.cancel()
        return await other

    assert asyncio.run(ask()) == Access("http://inside", "1")
    assert issuer.issued == 1


HANGING = """
import asyncio, threading
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.session import Session
from roost.web.auth.keystone_credentials import KeystoneCredentials

asked = threading.Event()

class Hanging(BaseIdentityPlugin):
    def get_auth_ref(self, session, **_):
        asked.set()
        threading.Event().wait()

async def give_up():
    plugin = Hanging()
    credentials = KeystoneCredentials(Adapter(Session(auth=plugin), "placement", auth=plugin))
    asking = asyncio.create_task(credentials.access())
    while not asked.is_set():
        await asyncio.sleep(0.01)
    asking.cancel()

asyncio.run(give_up())
print("ended")
"""


def test_the_end_of_the_program_waits_for_no_answer_of_keystone() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=patience(300)
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n")


def test_a_wrong_password_is_an_error_of_placement_with_status_503(
    keystone: Keystone, tmp_path: Path, guarded: Api
) -> None:
    lines = [line if "password =" not in line else "password = wrong" for line in LOGIN]

    async def work(placement: HttpPlacement) -> None:
        with pytest.raises(PlacementError, match="no token") as refused:
            await placement.ensure_resource_class("CUSTOM_A")
        assert refused.value.status == 503

    use(client_options(tmp_path, f"auth_url = {keystone.url}", *lines), guarded, work)


def test_a_fixed_token_and_endpoint_need_no_keystone(tmp_path: Path, api_without_keystone: Api) -> None:
    source = client_options(tmp_path, "auth_type = admin_token", "endpoint = http://fixed/", "token = admin")

    async def work(placement: HttpPlacement) -> None:
        await placement.ensure_resource_class("CUSTOM_A")

    wire = use(source, api_without_keystone, work)
    assert (wire.urls, wire.tokens) == (["http://fixed/resource_classes/CUSTOM_A"], ["admin"])


@pytest.fixture
def api_without_keystone(tmp_path: Path) -> Iterator[Api]:
    api = Api(tmp_path)
    yield api
    api.close()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((), "no auth_type"),
        (("auth_type = guess",), "guess"),
        (("auth_type = password",), "auth_url|auth-url"),
        (
            ("auth_type = admin_token", "endpoint = http://x", "token = t", "cafile = /nowhere"),
            "No such file",
        ),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(OperatorError, match=told):
        HttpPlacement.configured(client_options(tmp_path, *lines))
