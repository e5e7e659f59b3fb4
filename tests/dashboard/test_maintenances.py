"""The pages of maintenances: the list, one with its hosts, and the acts on them."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from roost.dashboard.html.states import host_in_maintenance_state, maintenance_state
from roost.model.maintenance import HostState, MaintenanceState
from support.dashboard_users import DashboardUsers, dashboard_users

PATH = "/ui/maintenances"


def on_a_dashboard(directory: Path, check: Callable[[DashboardUsers], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as users:
            await check(users)

    asyncio.run(opened())


async def asked(users: DashboardUsers, method: str, path: str, body: object = None) -> Any:
    answer = await users.conductor.request(method, path, json=body, headers={"x-auth-token": "olga"})
    assert answer.is_success, answer.text
    return answer.json()


async def begun(users: DashboardUsers, *hosts: str) -> str:
    body = {"hosts": [*hosts], "reserve": False}
    uuid: str = (await asked(users, "POST", "/v1/maintenances", body))["uuid"]
    return uuid


async def act(users: DashboardUsers, verb: str, query: str, user: str = "olga") -> httpx.Response:
    """Open the page that asks, and send its form as it is."""
    page = await users.get(f"/ui/actions/{verb}?{query}", user)
    assert page.status_code == 200, page.text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
    return await users.post(f"/ui/actions/{verb}", hidden, user)


def test_each_state_has_words() -> None:
    for state in get_args(MaintenanceState):
        assert maintenance_state(state).words != state
    for state in get_args(HostState):
        assert host_in_maintenance_state(state).words != state


def test_a_maintenance_is_followed_paused_resumed_and_cancelled(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        assert "roost maintenance start" in (await users.get(PATH)).text
        uuid = await begun(users, "a", "b")
        page = (await users.get(f"{PATH}/{uuid}")).text
        assert "Waits for a wave" in page and "/ui/hosts/node-a" in page and "data-live-topic" in page
        assert "pause-maintenance" in page and "resume-maintenance" not in page
        paused = await act(users, "pause-maintenance", f"maintenance={uuid}")
        assert paused.status_code == 200 and "is paused" in paused.text, paused.text
        view = await users.view(f"{PATH}/{uuid}")
        assert (view["maintenance"]["state"], view["maintenance"]["reason"]) == (
            "paused",
            "olga has paused it",
        )
        attention = (await users.view("/ui"))["attention"]
        assert {
            "level": "look",
            "about": f"maintenance {uuid[:8]}",
            "says": "paused, 2 hosts are left: olga has paused it",
            "href": f"{PATH}/{uuid}",
        } in attention
        hindered = await users.view(f"/ui/actions/pause-maintenance?maintenance={uuid}")
        assert hindered["hindered"] == "This is not possible now: the maintenance is paused."
        assert (await act(users, "resume-maintenance", f"maintenance={uuid}")).status_code == 200
        assert (await act(users, "cancel-maintenance", f"maintenance={uuid}")).status_code == 200
        for _ in range(4):
            await users.now.super.step()
        view = await users.view(f"{PATH}/{uuid}?state=waiting")
        assert (view["maintenance"]["state"], view["maintenance"]["hosts"]) == ("cancelled", {"waiting": 2})
        assert [each["host"] for each in view["hosts"]["hosts"]] == ["a", "b"]
        assert "Cancelled" in (await users.get(PATH)).text
        late = await users.post("/ui/actions/pause-maintenance", {"maintenance": uuid})
        assert late.status_code == 409 and "is as it was" in late.text

    on_a_dashboard(tmp_path, check)


def test_a_host_that_is_in_work_is_given_back(tmp_path: Path) -> None:
    async def check(users: DashboardUsers) -> None:
        uuid = await begun(users, "a")
        refused = await users.post("/ui/actions/finish-host", {"maintenance": uuid, "host": "a"})
        assert refused.status_code == 409 and "waits for its wave" in refused.text
        for _ in range(4):
            await users.now.super.step()
        page = (await users.get(f"{PATH}/{uuid}")).text
        assert "In work" in page and "finish-host" in page
        assert (await act(users, "finish-host", f"maintenance={uuid}&host=a")).status_code == 200
        for _ in range(2):
            await users.now.super.step()
        assert (await users.view(f"{PATH}/{uuid}"))["maintenance"]["state"] == "done"
        for query in (f"maintenance={uuid}", f"maintenance={uuid}&host=a&x=1", "maintenance=x&host=a"):
            assert (await users.get(f"/ui/actions/finish-host?{query}")).status_code == 400
        assert (await users.post("/ui/actions/finish-host", {"maintenance": uuid})).status_code == 400

    on_a_dashboard(tmp_path, check)


def test_the_list_has_pages_and_knows_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.dashboard.views.maintenances.ON_A_PAGE", 1)

    async def check(users: DashboardUsers) -> None:
        uuids = [await begun(users, host) for host in "abc"]
        await asked(users, "POST", f"/v1/maintenances/{uuids[0]}/cancel")
        for _ in range(3):
            await users.now.super.step()

        async def listed(query: str = "") -> list[str]:
            found: list[str] = []
            address: str | None = f"{PATH}?{query}"
            while address is not None:
                view = await users.view(address)
                found += [each["uuid"] for each in view["page"]["maintenances"]]
                more = view["page"]["next"]
                address = more and f"{PATH}?{query}&marker={more}"
            return found

        assert sorted(await listed()) == sorted(uuids)
        assert sorted(await listed("under_way=true")) == sorted(uuids[1:])
        assert await listed("under_way=false") == uuids[:1]
        assert 'rel="next"' in (await users.get(PATH)).text
        for wrong in ("under_way=perhaps", "marker=x", "limit=3"):
            assert (await users.get(f"{PATH}?{wrong}")).status_code == 400
        assert (await users.get(f"{PATH}/{uuids[0]}?state=asleep")).status_code == 400
        assert (await users.get(f"{PATH}/{uuids[0][:-4]}ffff")).status_code == 404

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize("user", ["mia", "rita", "otto"])
def test_maintenances_are_for_operators(tmp_path: Path, user: str) -> None:
    async def check(users: DashboardUsers) -> None:
        uuid = await begun(users, "a")
        for path in (PATH, f"{PATH}/{uuid}", f"/ui/actions/pause-maintenance?maintenance={uuid}"):
            assert (await users.get(path, user)).status_code == 403
        refused = await users.post("/ui/actions/cancel-maintenance", {"maintenance": uuid}, user)
        assert refused.status_code == 403

    on_a_dashboard(tmp_path, check)
