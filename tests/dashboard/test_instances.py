"""The list of instances and the page of one: who sees which, what is found, and where an instance was."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from roost.conductor.history.types import HistoryEvent, InstanceAction, InstanceHistory
from roost.dashboard.html.shell import Viewing
from roost.dashboard.views.host_stays import stay_at, stays_of
from support.dashboard_users import DashboardUsers, dashboard_users

VIEWING = Viewing("olga", True, "guard", "/ui/instances", nonce="nonce")


def on_a_dashboard(directory: Path, check: Callable[[DashboardUsers], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as client:
            await check(client)

    asyncio.run(opened())


def test_an_operator_sees_all_and_a_project_its_own(tmp_path: Path) -> None:
    async def check(client: DashboardUsers) -> None:
        mine, theirs = await client.ask_for("mia", 2), await client.ask_for("otto")
        everything = await client.view("/ui/instances")
        assert {each["uuid"] for each in everything["page"]["instances"]} == {*mine, *theirs}
        assert everything["total"] == {"assigned": 3} and everything["all_projects"]
        own = await client.view("/ui/instances", "mia")
        assert {each["uuid"] for each in own["page"]["instances"]} == set(mine)
        assert own["total"] == {} and own["cells"] == []

        page = (await client.get("/ui/instances", "mia")).text
        hosts = [each["host"] for each in everything["page"]["instances"]]
        assert all(host for host in hosts)
        assert theirs[0] not in page and "cell1" not in page and "node-" not in page

    on_a_dashboard(tmp_path, check)


@pytest.mark.parametrize("query", ["host=a", "cell=cell1", "project=other"])
def test_a_project_does_not_search_among_what_it_does_not_see(tmp_path: Path, query: str) -> None:
    async def check(client: DashboardUsers) -> None:
        await client.ask_for("otto")
        for own in ("", "&format=json"):
            answer = await client.get(f"/ui/instances?{query}{own}", "mia")
            assert answer.status_code == 403
        assert (await client.get(f"/ui/instances?{query}")).status_code == 200

    on_a_dashboard(tmp_path, check)


def test_a_search_finds_names_uuids_and_requests(tmp_path: Path) -> None:
    async def check(client: DashboardUsers) -> None:
        [named] = await client.ask_for("mia", name="beef")
        others = await client.ask_for("mia", 3, name="web")

        async def found(query: str) -> set[str]:
            view = await client.view(f"/ui/instances?{query}")
            return {each["uuid"] for each in view["page"]["instances"]}

        assert await found(f"search={others[0][:13]}") == {others[0]}
        assert await found(f"search={others[0].upper()}&state=&cell=") == {others[0]}
        assert await found("search=web-2") == {others[1]}
        assert await found("search=web") == set(others)
        # A name that might be the beginning of a uuid.
        assert named.startswith("beef") or await found("search=beef") == {named}
        assert await found("search=beef&by=uuid") == set()
        request = (await client.view(f"/ui/instances/{others[0]}"))["history"]["request_id"]
        assert await found(f"search={request}") == set(others)
        assert await found("search=%3Cscript%3E") == set()
        answer = await client.get("/ui/instances?search=%3Cscript%3Ealert(1)%3C/script%3E")
        assert "<script>alert" not in answer.text and "&lt;script&gt;alert" in answer.text
        assert await found("state=active") == set() and await found("state=assigned") == {named, *others}
        assert await found("host=a&state=assigned") <= {named, *others}
        assert (await client.get("/ui/instances?state=flying")).status_code == 400

    on_a_dashboard(tmp_path, check)


def test_pages_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.dashboard.views.instances.ON_A_PAGE", 2)

    async def check(client: DashboardUsers) -> None:
        made = await client.ask_for("mia", 5)
        listed: list[str] = []
        address = "/ui/instances?state="
        for size in (2, 2, 1):
            view = await client.view(address)
            page = view["page"]
            assert len(page["instances"]) == size
            listed += [each["uuid"] for each in page["instances"]]
            html = (await client.get(address)).text
            assert ("Next page" in html) == (page["next"] is not None)
            assert ("First page" in html) == (view["marker"] is not None)
            address = f"/ui/instances?marker={page['next']}"
        assert listed == sorted(made)

    on_a_dashboard(tmp_path, check)


def test_one_instance_is_shown_to_its_project_without_hosts(tmp_path: Path) -> None:
    async def check(client: DashboardUsers) -> None:
        [uuid] = await client.ask_for("mia", name="web")
        await client.now.build()
        view = await client.view(f"/ui/instances/{uuid}")
        host, cell = view["instance"]["host"], view["instance"]["cell"]
        assert view["instance"]["state"] == "active" and len(view["stays"]) == 1
        assert view["claim"] == [{"provider": f"node-{host}", "name": host, "amounts": {"VCPU": 1}}]
        html = (await client.get(f"/ui/instances/{uuid}")).text
        assert f"node-{host}" in html and cell in html

        own = await client.view(f"/ui/instances/{uuid}", "mia")
        assert own["claim"] == [] and own["stays"][0]["host"] is None and own["instance"]["host"] is None
        assert own["stays"][0]["ran"] is not None
        shown = (await client.get(f"/ui/instances/{uuid}", "mia")).text
        assert f"node-{host}" not in shown and cell not in shown

        for path in (uuid, "00000000-0000-0000-0000-000000000000", "%3Cscript%3E"):
            answer = await client.get(f"/ui/instances/{path}", "otto")
            assert answer.status_code == 404 and "<script>" not in answer.text.split("<main")[1]

    on_a_dashboard(tmp_path, check)


def test_a_deleted_instance_has_its_history(tmp_path: Path) -> None:
    async def check(client: DashboardUsers) -> None:
        [uuid] = await client.ask_for("mia")
        await client.now.build()
        host = (await client.view(f"/ui/instances/{uuid}"))["instance"]["host"]
        answer = await client.conductor.delete(f"/v1/instances/{uuid}", headers={"x-auth-token": "olga"})
        assert answer.status_code == 202
        await client.now.settle()
        view = await client.view(f"/ui/instances/{uuid}?at=1970-01-01T00:16:39")
        assert view["instance"] is None and view["history"]["state"] == "deleted"
        assert view["stays"][0]["host"] == host and view["stays"][0]["ended"] is not None
        assert view["then"] is None
        listed = await client.view("/ui/instances")
        assert listed["page"]["instances"] == []
        sought = (await client.get(f"/ui/instances?search={uuid}")).text
        assert f'href="/ui/instances/{uuid}"' in sought
        assert (await client.get(f"/ui/instances/{uuid}", "otto")).status_code == 404

    on_a_dashboard(tmp_path, check)


def test_a_cell_that_does_not_answer_hides_its_instances_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(client: DashboardUsers) -> None:
        made = await client.ask_for("mia", 6)
        before = {each["uuid"]: each for each in (await client.view("/ui/instances"))["page"]["instances"]}
        gone = before[made[0]]["cell"]
        await client.now.cells[gone].database.close()

        async def refuse(work: object) -> object:
            raise TimeoutError

        monkeypatch.setattr(client.now.cells[gone], "read", refuse)
        view = await client.view("/ui/instances")
        states = {each["uuid"]: each["state"] for each in view["page"]["instances"]}
        assert states == {
            uuid: "unknown" if each["cell"] == gone else "assigned" for uuid, each in before.items()
        }
        html = (await client.get("/ui/instances")).text
        assert "Cells that cannot be asked now" in html and gone in html
        one = (await client.get(f"/ui/instances/{made[0]}")).text
        assert "cannot be asked" in one and "This history is not whole" in one
        assert "cannot be asked" not in (await client.get("/ui/instances", "mia")).text

    on_a_dashboard(tmp_path, check)


def history(*actions: InstanceAction, state: str = "active", **facts: str) -> InstanceHistory:
    told = {"user_id": "mia", "flavor": "small", "cell": "cell1", "request_id": "req-1", **facts}
    return InstanceHistory(
        uuid="i0", project_id="project", state=state, actions=list(actions), missing=[], **told
    )


def build(host: str, began: float, ended: float | None, result: str | None, attempt: int) -> HistoryEvent:
    return HistoryEvent(
        name="build",
        started_at=began,
        finished_at=ended,
        result=result,
        attempt=attempt,
        host=host,
        node=f"node-{host}",
        cell="cell1",
    )


def test_the_stays_are_those_of_the_history() -> None:
    created = InstanceAction(kind="create", started_at=1.0, finished_at=30.0, result="success")
    created.events = [build("a", 10.0, 20.0, "failed", 1), build("b", 20.0, 30.0, "built", 2)]
    running = stays_of(history(created))
    assert [(each.host, each.began, each.ran, each.ended) for each in running] == [
        ("a", 10.0, None, 20.0),
        ("b", 20.0, 30.0, None),
    ]
    deleted = InstanceAction(kind="delete", started_at=100.0)
    deleted.events = [HistoryEvent(name="destroy", started_at=100.0, finished_at=120.0, host="b")]
    ended = stays_of(history(created, deleted, state="deleted"))
    assert ended[1].ended == 120.0
    found = {at: stay_at(ended, at) for at in (5.0, 15.0, 20.0, 119.0, 120.0)}
    assert {at: stay and stay.host for at, stay in found.items()} == {
        5.0: None,
        15.0: "a",
        20.0: "b",
        119.0: "b",
        120.0: None,
    }


def test_a_guest_that_was_given_up_is_on_its_host_no_more() -> None:
    created = InstanceAction(kind="create", started_at=1.0, finished_at=30.0, result="success")
    created.events = [build("b", 20.0, 30.0, "built", 1)]
    given_up = InstanceAction(kind="give_up", started_at=50.0, finished_at=50.0, result="success")
    given_up.events = [HistoryEvent(name="give_up", started_at=50.0, finished_at=50.0, host="b")]
    [stay] = stays_of(history(created, given_up, state="error"))
    assert stay.ended == 50.0


def test_the_page_of_a_host_names_its_instances(tmp_path: Path) -> None:
    async def check(client: DashboardUsers) -> None:
        [named] = await client.ask_for("mia", name="beef")
        [unnamed] = await client.ask_for("mia")
        for uuid, name in ((named, "beef"), (unnamed, None)):
            node = (await client.view(f"/ui/instances/{uuid}"))["instance"]["node"]
            view = await client.view(f"/ui/hosts/{node}")
            assert uuid in {each["consumer"] for each in view["holders"]["holders"]}
            assert view["names"].get(uuid) == name
            page = (await client.get(f"/ui/instances/{uuid}")).text
            assert "&lt;" not in page
            page = (await client.get(f"/ui/hosts/{node}")).text
            assert (f'title="{uuid}"><bdi>{name}</bdi>' in page) is (name is not None)

    on_a_dashboard(tmp_path, check)
