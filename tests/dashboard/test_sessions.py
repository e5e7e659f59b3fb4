"""Sessions of browsers: who gets in, what a foreign page can do, and what is left of an ended session."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from roost.dashboard.session.authenticator import cookies_of
from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.guard import host_of
from roost.dashboard.session.login import own_address
from roost.dashboard.session.login_limit import LoginLimit, TooManyLogins
from roost.dashboard.session.one_time import OneTimeToken
from roost.dashboard.session.seal import SessionSeal, new_session, session_key
from roost.model.errors import OperatorError
from support.dashboards import ORIGIN, DashboardClient, opened_dashboard

Attack = Callable[[DashboardClient], Awaitable[None]]


def attacked(directory: Path, attack: Attack) -> None:
    async def run() -> None:
        async with opened_dashboard(directory) as client:
            await attack(client)

    asyncio.run(run())


def stranger(client: DashboardClient) -> httpx.AsyncClient:
    """Another browser, without a cookie."""
    return httpx.AsyncClient(transport=client.http._transport, base_url=ORIGIN)


def test_a_page_without_a_session_leads_to_the_login(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        other = stranger(client)
        answer = await other.get("/ui/map?class=VCPU")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/ui/login?next=%2Fui%2Fmap%3Fclass%3DVCPU"
        json = await other.get("/ui?format=json")
        assert json.status_code == 401 and json.json()["errors"][0]["code"] == "dashboard.unauthorised"

    attacked(tmp_path, attack)


def test_the_printed_address_begins_one_session(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        file = client.system.directory / "dashboard" / "address"
        address = file.read_text().strip()
        assert (await stranger(client).get(address)).status_code == 303
        assert file.read_text().strip() != address and file.stat().st_mode & 0o077 == 0
        again = await stranger(client).get(address)
        assert again.status_code == 200 and "used before" in again.text and "set-cookie" not in again.headers
        # A token by itself begins none: the login of services without authentication takes no form.
        form = await stranger(client).post("/ui/login", data={"token": "admin"}, headers={"origin": ORIGIN})
        assert form.status_code == 400 and "set-cookie" not in form.headers

    attacked(tmp_path, attack)


def test_cookie_is_kept_from_scripts_and_foreign_pages(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        address = (client.system.directory / "dashboard" / "address").read_text().strip()
        cookie = (await stranger(client).get(address)).headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
        assert "admin" not in cookie

    attacked(tmp_path, attack)


def test_over_tls_the_cookie_is_bound_to_the_host(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        address = (client.system.directory / "dashboard" / "address").read_text().strip()
        secure = httpx.AsyncClient(transport=client.http._transport, base_url="https://127.0.0.1:8778")
        cookie = (await secure.get(address.replace("http:", "https:"))).headers["set-cookie"]
        assert cookie.startswith("__Host-roost-session=") and "Secure" in cookie and "Domain" not in cookie

    attacked(tmp_path, attack)


FOREIGN = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9999"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {"x-roost-session": ""},
    {"x-roost-session": "guessed"},
)
"""Heads of requests that a page of the dashboard does not send."""


def test_request_of_a_foreign_page_changes_nothing(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        for headers in FOREIGN:
            assert (await client.post("/ui/logout", **headers)).status_code == 403, headers
            # The session is still there: the log-out was not carried out.
            assert (await client.get("/ui")).status_code == 200
        own = await client.post("/ui/logout")
        assert own.status_code == 204 and own.headers["hx-redirect"] == "/ui/login"

    attacked(tmp_path, attack)


def test_a_name_that_was_pointed_at_this_address_gets_nothing(tmp_path: Path) -> None:
    names = ("evil.example", "evil.example:8778", "127.0.0.1.evil.example", "localhost.evil.example", "")

    async def attack(client: DashboardClient) -> None:
        for name in names:
            for path in ("/ui", "/ui/login", "/ui/assets/roost.css", "/ui/logout"):
                answer = await client.get(path, host=name)
                assert answer.status_code == 421 and "set-cookie" not in answer.headers
            # Of the Placement API on the same address it says nothing.
            assert (await client.get("/", host=name)).status_code == 200

    attacked(tmp_path, attack)


def test_an_ended_session_is_not_brought_back_by_its_cookie(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        copied = dict(client.http.cookies)
        assert (await client.post("/ui/logout")).status_code == 204
        replayed = httpx.AsyncClient(transport=client.http._transport, base_url=ORIGIN, cookies=copied)
        assert (await replayed.get("/ui?format=json")).status_code == 401

    attacked(tmp_path, attack)

    async def after_a_restart() -> None:
        async with opened_dashboard(tmp_path) as client:
            file = client.system.directory / "dashboard" / "ended_sessions.json"
            assert len(file.read_text()) > 20

    asyncio.run(after_a_restart())


def test_a_session_ends_with_its_time(tmp_path: Path) -> None:
    now = [1_800_000_000.0]

    async def run() -> None:
        async with opened_dashboard(tmp_path, clock=lambda: now[0]) as client:
            assert (await client.get("/ui?format=json")).status_code == 200
            now[0] += 12 * 3600 + 1
            assert (await client.get("/ui?format=json")).status_code == 401

    asyncio.run(run())


def test_a_link_from_another_site_is_loaded_again_as_a_request_of_its_own(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        # The browser has kept the cookie back (SameSite=Strict).
        answer = await stranger(client).get(
            "/ui/hosts?search=a%22b", headers={"sec-fetch-site": "cross-site"}
        )
        assert answer.status_code == 200 and 'content="0; url=/ui/hosts?search=a%22b"' in answer.text

    attacked(tmp_path, attack)


def test_every_answer_has_the_heads_that_keep_it_apart(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        for path in ("/ui", "/ui/login", "/ui/nothing", "/ui?format=json", "/ui/assets/roost.css"):
            answer = await client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy and "http" not in policy.replace("trusted-types htmx", "")
            assert answer.headers["x-content-type-options"] == "nosniff"
            if "/assets/" not in path:
                assert answer.headers["cache-control"] == "no-store"

    attacked(tmp_path, attack)


def test_the_token_is_in_no_page(tmp_path: Path) -> None:
    async def attack(client: DashboardClient) -> None:
        cookie = next(iter(client.http.cookies.values()))
        text = (await client.get("/ui")).text
        assert cookie not in text and "?once=" not in text

    attacked(tmp_path, attack)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example/ui",
        "/ui//evil.example",
        "/ui/../admin\\@evil",
        "javascript:alert(1)",
        "/other",
        "/uix",
        "/ui\r\nset-cookie: a=b",
        "",
    ],
)
def test_after_a_login_only_own_addresses_are_gone_to(address: str) -> None:
    assert own_address(address) == "/ui"
    assert own_address("/ui/hosts?search=a&page=2") == "/ui/hosts?search=a&page=2"


def test_failed_logins_are_limited_for_a_minute() -> None:
    now = [0.0]
    limit = LoginLimit(3, lambda: now[0])
    for _ in range(3):
        limit.check()
        limit.failed()
    with pytest.raises(TooManyLogins, match="3 logins"):
        limit.check()
    now[0] = 60.1
    limit.check()


def test_a_sealed_session_that_was_changed_opens_nothing() -> None:
    seal = SessionSeal(bytes(32))
    session = new_session("token", "admin", 1e10)
    cookie = seal.seal(session)
    assert seal.open(cookie) == session and "token" not in cookie
    for changed in (cookie[:-2] + "AA", "A" + cookie[1:], cookie[: len(cookie) // 2], "", "é", "=" * 40):
        if changed != cookie:
            assert seal.open(changed) is None
    assert SessionSeal(bytes(31) + b"\1").open(cookie) is None


def test_key_and_ended_sessions_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "dashboard"
    key = session_key(folder)
    assert session_key(folder) == key and (folder / "session.key").stat().st_mode & 0o077 == 0
    ended = EndedSessions(folder, lambda: 100.0)
    ended.add("a", 200.0)
    ended.add("b", 50.0)
    assert "a" in EndedSessions(folder, lambda: 100.0) and "b" not in ended
    (folder / "session.key").write_bytes(b"short")
    with pytest.raises(OperatorError, match="5 bytes"):
        session_key(folder)
    (folder / "ended_sessions.json").write_text("{")
    with pytest.raises(OperatorError, match="ended_sessions"):
        EndedSessions(folder, lambda: 100.0)


def test_one_time_token_is_spent_by_its_use(tmp_path: Path) -> None:
    once = OneTimeToken("http://h/ui/login", tmp_path / "address")
    token = once.address.partition("once=")[2]
    assert not once.use("") and not once.use("é") and not once.use(token + "x")
    assert once.use(token) and not once.use(token)


@pytest.mark.parametrize(
    ("named", "name"),
    [("A.b:80", "a.b"), ("[::1]:8778", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("", ""), (" x ", "x")],
)
def test_the_name_of_a_host_header(named: str, name: str) -> None:
    assert host_of(named) == name


def test_cookies_that_cannot_be_parsed_are_none() -> None:
    assert cookies_of("roost-session=a; b=c") == ["a"]
    assert cookies_of("\x00; ;=;") == [] and cookies_of("") == []
