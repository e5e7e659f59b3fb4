"""The page of events: the newest first, what is asked for, and the way further back."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from roost.dashboard.html.shell import Viewing
from roost.dashboard.views.events import EVENT_GROUPS, kinds_of
from roost.state.api_database.event_types import EVENT_KINDS
from roost.storage import DatabaseUnavailable
from support.dashboard_users import DashboardUsers, dashboard_users

VIEWING = Viewing("olga", True, "guard", "/ui/events", nonce="nonce")


def on_a_dashboard(directory: Path, check: Callable[[DashboardUsers], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as users:
            await check(users)

    asyncio.run(opened())


async def disable(users: DashboardUsers, host: str, reason: str) -> None:
    body = {"enabled": False, "reason": reason}
    answer = await users.conductor.put(f"/v1/hosts/{host}", json=body, headers={"x-auth-token": "olga"})
    assert answer.status_code == 200, answer.text


def test_each_kind_is_in_one_group() -> None:
    grouped = [kind for group in EVENT_GROUPS for kind in kinds_of(group)]
    assert sorted(grouped) == sorted(EVENT_KINDS)


def test_events_of_operators_and_instances_are_listed_and_searched(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        [uuid] = await users.ask_for("mia")
        await disable(users, "a", "fan 3")
        await disable(users, "d", "cable")

        async def kinds(query: str) -> list[str]:
            view = await users.view(f"/ui/events?{query}")
            return [each["kind"] for each in view["page"]["events"]]

        everything = await kinds("")
        assert sorted(everything) == ["host_disabled", "host_disabled", "instance_assigned"]
        assert await kinds("about=operators") == ["host_disabled"] * 2
        assert await kinds("about=instances") == ["instance_assigned"]
        assert await kinds("kind=host_disabled&host=a&cell=&since=") == ["host_disabled"]
        assert await kinds("cell=cell2&kind=host_disabled") == ["host_disabled"]
        assert await kinds(f"instance={uuid}") == ["instance_assigned"]
        assert await kinds("since=1970-01-01T00:16:40") == everything
        assert await kinds("since=1001") == [] and await kinds("until=999") == []

        page = (await users.get("/ui/events?host=a&about=operators")).text
        assert "fan 3" in page and "olga" in page and "/ui/hosts/node-a" in page and "cable" not in page
        for query in (
            "kind=flying",
            "since=yesterday",
            "kind=repair&about=instances",
            "instance=x",
            "skip=-1",
        ):
            assert (await users.get(f"/ui/events?{query}")).status_code == 400

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize("user", ["mia", "rita", "otto"])
def test_events_are_for_operators(tmp_path: Path, user: str) -> None:
    async def check(users: DashboardUsers) -> None:
        [uuid] = await users.ask_for(user if user != "rita" else "mia")
        for path in ("/ui/events", f"/ui/events?instance={uuid}", "/ui/events?format=json"):
            assert (await users.get(path, user)).status_code == 403

    on_a_dashboard(tmp_path, check)


def test_older_pages_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.dashboard.views.events.ON_A_PAGE", 2)

    async def check(users: DashboardUsers) -> None:
        for host in "abcde":
            await disable(users, host, host)
        found: list[str] = []
        address: str | None = "/ui/events?about=operators"
        while address is not None:
            view = await users.view(address)
            found += [each["host"] for each in view["page"]["events"]]
            html = (await users.get(address)).text
            older = re.search(r'href="([^"]+)" rel="next"', html)
            # Only the newest page is live: an older one is a window that stays as it is.
            assert ("data-live-topic" in html) == (view["until"] is None)
            address = None if older is None else unescape(older[1])
        assert found == [*"edcba"]

    on_a_dashboard(tmp_path, check)


def test_a_cell_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(work: object) -> Any:
        raise DatabaseUnavailable("away")

    async def check(users: DashboardUsers) -> None:
        await disable(users, "a", "fan 3")
        monkeypatch.setattr(users.now.cells["cell2"], "read", fail)
        page = (await users.get("/ui/events")).text
        assert "Events of these cells are missing" in page and "cell2" in page and "fan 3" in page

    on_a_dashboard(tmp_path, check)
