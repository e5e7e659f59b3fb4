"""Tokens of a real Keystone: who they are from, what is remembered, and what happens without Keystone."""

import asyncio
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth import Identity, IdentityUnavailable
from roost.web.auth import keystone as keystone_module
from roost.web.auth.keystone import Keystone as Tokens
from support.keystone import LOCK, Keystone
from web.auth.conftest import configure

GARBAGE = "gAAAAABnot-a-token"


def identify(source: Source, *tokens: str, service: str | None = None) -> list[Identity | None]:
    """What one authenticator says of some tokens, one after the other."""

    async def ask() -> list[Identity | None]:
        authenticator = Tokens(source)
        more = {} if service is None else {"x-service-token": service}
        return [await authenticator.identify({"x-auth-token": token, **more}) for token in tokens]

    return asyncio.run(ask())


def test_a_token_says_who_sent_it_for_which_project_and_with_which_roles(
    keystone: Keystone, configured: Source
) -> None:
    token = keystone.token("mo", "alpha")
    [identity] = identify(configured, token)
    assert identity is not None
    assert set(identity.roles) == {"member", "reader"}
    assert (identity.project_id, identity.system_scope) == (keystone.project_id(token), None)
    assert identity.user_domain_id == "default"


def test_a_token_for_the_system_has_no_project(keystone: Keystone, configured: Source) -> None:
    [identity] = identify(configured, keystone.token(project=None))
    assert identity is not None
    assert (identity.project_id, identity.system_scope) == (None, "all")


def test_what_is_no_token_proves_nothing(configured: Source) -> None:
    assert identify(configured, GARBAGE, "", "x" * 5_000, "täg") == [None] * 4

    async def ask() -> Identity | None:
        claimed = {"x-user-id": "root", "x-roles": "admin", "x-identity-status": "Confirmed"}
        return await Tokens(configured).identify(claimed)

    assert asyncio.run(ask()) is None


def test_an_expired_token_is_good_only_together_with_a_services(
    keystone: Keystone, configured: Source
) -> None:
    token = keystone.token("rita", "alpha", seconds=1)
    time.sleep(2)
    assert identify(configured, token) == [None]
    [identity] = identify(configured, token, service=keystone.token("nova", "service"))
    assert identity is not None and identity.service_roles == ("service",)
    assert identify(configured, token, service=keystone.token("rita", "alpha")) == [None]


def test_keystone_is_asked_once_for_a_token_also_by_many_requests(
    keystone: Keystone, configured: Source
) -> None:
    token = keystone.token("rita", "alpha")

    async def ask() -> set[Identity | None]:
        authenticator = Tokens(configured)
        headers = {"x-auth-token": token}
        together = await asyncio.gather(*(authenticator.identify(headers) for _ in range(50)))
        return {*together, *[await authenticator.identify(headers) for _ in range(50)]}

    before = keystone.validations()
    assert len(asyncio.run(ask())) == 1
    assert keystone.validations() == before + 1


def test_what_is_remembered_costs_no_thread(keystone: Keystone, configured: Source) -> None:
    headers = {"x-auth-token": keystone.token("rita", "alpha")}

    async def ask() -> None:
        authenticator = Tokens(configured)
        await authenticator.identify(headers)
        authenticator._threads.shutdown()  # it takes no more work
        for _ in range(1_000):
            assert await authenticator.identify(headers) is not None

    asyncio.run(ask())


def test_a_revoked_token_is_refused_once_caches_forget_it(keystone: Keystone, tmp_path: Path) -> None:
    token = keystone.token("rita", "alpha")
    source = configure(tmp_path, keystone.url, "token_cache_time = 1")

    async def ask() -> list[bool]:
        authenticator = Tokens(source)
        known = [await authenticator.identify({"x-auth-token": token}) is not None]
        keystone.revoke(token)
        await asyncio.sleep(2.5)
        return [*known, await authenticator.identify({"x-auth-token": token}) is not None]

    assert asyncio.run(ask()) == [True, False]


def test_without_a_cache_time_nothing_is_remembered(keystone: Keystone, tmp_path: Path) -> None:
    token = keystone.token("rita", "alpha")
    before = keystone.validations()
    assert None not in identify(configure(tmp_path, keystone.url, "token_cache_time = -1"), token, token)
    assert keystone.validations() == before + 2


def test_access_rules_hold_for_each_call(keystone: Keystone, configured: Source) -> None:
    rule = {"path": "/traits", "method": "GET", "service": "placement"}
    headers = {"x-auth-token": keystone.token(**keystone.application_credential(rule))}

    async def ask() -> list[bool]:
        authenticator = Tokens(configured)
        calls = [("GET", "/traits"), ("PUT", "/traits"), ("GET", "/traits"), ("GET", "/usages")] * 2
        found = await asyncio.gather(*(authenticator.identify(headers, *call) for call in calls))
        return [identity is not None for identity in found]

    assert asyncio.run(ask()) == [True, False, True, False] * 2


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v3"


def test_a_keystone_that_is_down_or_silent_is_said_so_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    async def ask(source: Source) -> int:
        authenticator = Tokens(source)
        asked = asyncio.create_task(authenticator.identify({"x-auth-token": GARBAGE}))
        ticks = 0
        while not asked.done():
            await asyncio.sleep(0.01)
            ticks += 1
        with pytest.raises(IdentityUnavailable):
            await asked
        return ticks

    port = free_port()
    asyncio.run(ask(configure(tmp_path, f"http://127.0.0.1:{port}/v3")))
    with silent_server() as url:
        assert asyncio.run(ask(configure(tmp_path, url, "http_connect_timeout = 1"))) > 20


def test_so_many_tokens_are_validated_at_once_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keystone_module, "MAX_VALIDATIONS", 3)

    async def ask(source: Source) -> None:
        authenticator = Tokens(source)
        asked = [
            asyncio.create_task(authenticator.identify({"x-auth-token": str(number)})) for number in range(4)
        ]
        with pytest.raises(IdentityUnavailable, match="3 tokens are being validated already"):
            await asked[3]
        await asyncio.gather(*asked, return_exceptions=True)

    with silent_server() as url:
        asyncio.run(ask(configure(tmp_path, url, "http_connect_timeout = 1")))


@contextmanager
def memcached() -> Iterator[tuple[str, dict[bytes, bytes]]]:
    """What the middleware needs of memcached; its address and what it holds."""
    held: dict[bytes, bytes] = {}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                command, *arguments = line.split()
                if command == b"set":
                    held[arguments[0]] = self.rfile.read(int(arguments[3]) + 2)[:-2]
                    flags[arguments[0]] = arguments[1]
                    self.wfile.write(b"STORED\r\n")
                elif command == b"get":
                    for key in arguments:
                        if key in held:
                            size = str(len(held[key])).encode()
                            head = b" ".join((b"VALUE", key, flags[key], size))
                            self.wfile.write(head + b"\r\n" + held[key] + b"\r\n")
                    self.wfile.write(b"END\r\n")

    flags: dict[bytes, bytes] = {}
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", held
        server.shutdown()


@pytest.mark.parametrize("strategy", ["None", "ENCRYPT"])
def test_memcached_is_shared_between_processes(keystone: Keystone, tmp_path: Path, strategy: str) -> None:
    token = keystone.token("rita", "alpha")
    before = keystone.validations()
    with memcached() as (address, held):
        more = (
            f"memcached_servers = {address}",
            f"memcache_security_strategy = {strategy}",
            "memcache_secret_key = s",
        )
        first = identify(configure(tmp_path, keystone.url, *more), token)
        second = identify(configure(tmp_path, keystone.url, *more), token)
    assert first == second != [None]
    assert keystone.validations() == before + 1
    assert any(b"rita" in value for value in held.values()) == (strategy == "None")


PASSWORD = "auth_type = password\nauth_url = http://x\nusername = u\npassword = p"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "has no auth_type"),
        ("auth_type = guess", "auth_type"),
        ("auth_type = password", "auth_url|auth-url"),
        ("auth_type = none\nendpoint = http://x", "auth_type = none, which gives this service no token"),
        ("auth_type = password\nauth_url = http://x", "no username or user_id"),
        ("auth_type = password\nauth_url = http://x\nusername = u", "no password"),
        ("auth_type = v3password\nauth_url = http://x\nuser_id = u", "no password"),
        ("auth_type = token\nauth_url = http://x", "no token"),
        (
            f"{PASSWORD}\nmemcache_security_strategy = MAC",
            "memcache_secret_key",
        ),
        (
            f"{PASSWORD}\nmemcached_servers = a:1\nmemcache_tls_enabled = true",
            "python-binary-memcached",
        ),
    ],
)
def test_options_that_cannot_work_are_refused_at_the_start(tmp_path: Path, lines: str, told: str) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(f"[keystone_authtoken]\n{lines}\n")
    with pytest.raises(OperatorError, match=told):
        Tokens(Source((str(file),)))


def test_the_lock_of_keystone_names_no_address() -> None:
    assert "://" not in LOCK.read_text()
