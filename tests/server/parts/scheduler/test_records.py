"""Administrators read all records over HTTP; a project reads its own, without what is of the hosts."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.model.reasons import HostNames, Miss, Reasons, Relaxation, Stage
from roost.model.record import BUILT, RunReasons, end_of
from roost.model.spec import Selection
from support.clouds import flat
from support.recording import Backend
from support.scheduling_api import SPEC, SchedulingApi, error_of, scheduling

MEMBER = {"x-auth-token": "user:project", "x-roles": "member"}
STRANGER = {"x-auth-token": "user:other", "x-roles": "member"}
RECORDS = "/v1/scheduler/records"
NOBODYS = "00000000-0000-4000-8000-000000000000"
Work = Callable[[SchedulingApi], Awaitable[None]]


def within(tmp_path: Path, work: Work) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            for project in ("project", "other", "project"):
                answer = await api.select(request_spec={**SPEC, "project_id": project})
                assert answer.status_code == 200, answer.text
            refused = await api.select(request_spec={**SPEC, "ignore_hosts": ["host0"]}, count=99)
            assert refused.status_code == 409
            await api.service.records.flush()
            await work(api)

    asyncio.run(run())


async def listed(api: SchedulingApi, headers: dict[str, str] | None = None, **query: Any) -> dict[str, Any]:
    answer = await api.client.get(RECORDS, params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_services_read_all_by_page_and_search_them(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        everything = await listed(api)
        runs = [each["run"] for each in everything["records"]]
        assert [run["project_id"] for run in runs] == ["project", "project", "other", "project"]
        assert everything["next"] is None
        assert runs[0]["refusal"] is not None and runs[0]["spec"]["ignore_hosts"] == ["host0"]
        assert runs[3]["destinations"][0]["selected"]["ordinal"] == 1
        assert runs[3]["settings"]["filters"]

        first = await listed(api, limit=3)
        rest = await listed(api, limit=3, marker=first["next"])
        assert first["records"] + rest["records"] == everything["records"]

        [attempt] = everything["records"][3]["attempts"]
        assert (attempt["result"], attempt["ordinal"]) == ("pending", 1)
        queries: list[dict[str, object]] = [
            {"instance": attempt["instance"]},
            {"request_id": runs[3]["request_id"]},
            {"host": attempt["host"], "result": "pending", "until": runs[3]["started_at"] + 1, "limit": 99},
            {"project_id": "other"},
            {"refused": "true"},
            {"since": runs[3]["started_at"] + 1},
        ]
        found = [[each["run"]["id"] for each in (await listed(api, **query))["records"]] for query in queries]
        assert found[0] == found[1] == [runs[3]["id"]]
        assert runs[3]["id"] in found[2]
        assert found[3:] == [[runs[2]["id"]], [runs[0]["id"]], []]

        shown = await api.client.get(f"{RECORDS}/{runs[3]['id']}")
        assert shown.json() == everything["records"][3]

    within(tmp_path, work)


def test_a_decision_is_listed_and_shown_as_soon_as_it_is_answered(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        answer = await api.select(request_spec={**SPEC, "project_id": "newest"})
        assert api.service.records.waiting
        [found] = (await listed(api, limit=1))["records"]
        assert found["run"]["project_id"] == "newest"
        refused = await api.select(request_spec={**SPEC, "ignore_hosts": ["host1"]}, count=99)
        assert (answer.status_code, refused.status_code) == (200, 409)
        [found] = (await listed(api, limit=1))["records"]
        assert found["run"]["spec"]["ignore_hosts"] == ["host1"]

    within(tmp_path, work)


def test_a_build_that_ends_is_seen(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        run = (await listed(api))["records"][3]["run"]
        [placed] = run["destinations"]
        selected = msgspec.convert(placed["selected"], Selection)
        end = end_of(
            selected, BUILT, 7.0, run=run["id"], request_id="r", instance=placed["instance"], reason=None
        )
        api.service.records.put([], [end])
        await api.service.records.flush()
        [found] = (await listed(api, result="built"))["records"]
        assert found["run"]["id"] == run["id"]
        assert (found["attempts"][0]["finished_at"], found["attempts"][0]["at"]) == (7.0, run["finished_at"])

    within(tmp_path, work)


def test_a_project_sees_its_own_without_hosts(tmp_path: Path) -> None:
    async def work(api: SchedulingApi) -> None:
        refused = (await listed(api))["records"][0]["run"]["id"]
        reasons = Reasons(
            sentence="312 hosts have the traits; host-0042 lacks 8 VCPU",
            public="no host has 64 VCPU free",
            hosts=312,
            stages=(Stage(kind="filter", name="F", hosts=3, removed=HostNames(("host-[0001-0003]",))),),
            misses=(Miss(host="host-0042", kind="query", name="64 VCPU", text="lacks 8", distance=0.1),),
            relaxations=(
                Relaxation(kind="amount", name="VCPU", text="ask for 56", distance=0.1, host="host-0042"),
            ),
        )
        api.service.records.put([], [], [RunReasons(refused, reasons)])
        await api.service.records.flush()
        page = await listed(api, MEMBER)
        runs = [each["run"] for each in page["records"]]
        assert [run["project_id"] for run in runs] == ["project"] * 3
        assert runs[0]["refusal"] == "no host has 64 VCPU free"
        assert runs[0]["reasons"]["relaxations"][0]["text"] == "ask for 56"
        assert runs[2]["spec"]["flavor"]["vcpus"] == 1
        attempt = page["records"][2]["attempts"][0]
        assert (attempt["result"], attempt["ordinal"], attempt["host"]) == ("pending", 1, "")
        words = set(re.findall(r"[\w-]+", msgspec.json.encode(page).decode()))
        # Whole words: ids and times have any digits within.
        assert words.isdisjoint(
            {"host0", "host1", "host2", "host-0042", "host-", "0001-0003", "cell1", "312"}
        )

        other = (await listed(api, STRANGER))["records"]
        assert [each["run"]["project_id"] for each in other] == ["other"]
        foreign = await api.client.get(RECORDS, params={"project_id": "other"}, headers=MEMBER)
        assert error_of(foreign)["status"] == 403
        assert await listed(api, MEMBER, project_id="project") == page
        shown = await api.client.get(f"{RECORDS}/{runs[2]['id']}", headers=MEMBER)
        assert shown.json() == page["records"][2]
        hidden = await api.client.get(f"{RECORDS}/{runs[2]['id']}", headers=STRANGER)
        assert error_of(hidden)["status"] == 404
        by_host = await api.client.get(RECORDS, params={"host": "host0"}, headers=MEMBER)
        assert (by_host.status_code, "by host" in error_of(by_host)["detail"]) == (403, True)

    within(tmp_path, work)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"marker": "nobody"}, "Got: nobody"),
        ({"marker": NOBODYS}, f"no run {NOBODYS}"),
        ({"result": "claimed"}, "result"),
        ({"since": "yesterday"}, "since"),
        ({"limit": "0"}, "limit"),
        ({"hosts": "a"}, "hosts"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(tmp_path: Path, query: dict[str, str], says: str) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(1)) as api:
            answer = await api.client.get(RECORDS, params=query)
            assert error_of(answer)["status"] == 400
            assert says in error_of(answer)["detail"]

    asyncio.run(run())


def test_a_backend_that_cannot_search_gives_its_last_runs(tmp_path: Path) -> None:
    class Least(Backend):
        async def last(self, n: int, refused: bool = False) -> list[Any]:
            return []

    async def work(api: SchedulingApi) -> None:
        searchable = api.service.records.backend
        api.service.records.backend = Least()
        assert (await listed(api))["records"] == []
        answer = await api.client.get(RECORDS, params={"host": "host0"})
        assert (answer.status_code, "cannot be searched" in error_of(answer)["detail"]) == (400, True)
        api.service.records.backend = searchable

    within(tmp_path, work)
