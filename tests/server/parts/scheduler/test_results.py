"""A platform without conductors says how its builds ended, once or again; the first result counts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from support.clouds import NOW, flat
from support.scheduling_api import SPEC, SchedulingApi, error_of, scheduling

RESULTS = "/v1/scheduler/results"
Work = Callable[[SchedulingApi, dict[str, Any]], Awaitable[None]]


def placed(tmp_path: Path, work: Work) -> None:
    """Work with one instance that was placed a moment ago, given as the body of a result."""

    async def run() -> None:
        async with scheduling(tmp_path, flat(3)) as api:
            answer = (await api.select(num_alternates=1)).json()
            [destination] = answer["destinations"]
            await work(api, {"run": answer["run"], "instance": destination["instance"]})

    asyncio.run(run())


async def tell(api: SchedulingApi, body: dict[str, Any], **more: Any) -> httpx.Response:
    return await api.client.post(RESULTS, json={**body, **more})


async def results(api: SchedulingApi, run: str) -> list[tuple[int, str, str | None]]:
    shown = (await api.client.get(f"/v1/scheduler/records/{run}")).json()
    return [(each["ordinal"], each["result"], each["reason"]) for each in shown["attempts"]]


@pytest.mark.parametrize("by", ["ordinal", "host"])
def test_a_result_ends_its_attempt_once(tmp_path: Path, by: str) -> None:
    async def work(api: SchedulingApi, instance: dict[str, Any]) -> None:
        await api.service.records.flush()
        [recorded] = await api.service.records.backend.last(1)
        named = {by: getattr(recorded.attempts[0], by)}
        first = await tell(api, instance, result="built", **named)
        assert first.status_code == 200, first.text
        assert (first.json()["result"], first.json()["at"]) == ("built", NOW)
        assert first.json()["finished_at"] is not None
        again = await tell(api, instance, result="built", **named)
        assert (again.status_code, again.json()) == (200, first.json())
        other = await tell(api, instance, result="failed", reason="no disk", **named)
        assert error_of(other)["code"] == "scheduler.attempt_has_ended"
        assert "is built" in error_of(other)["detail"]
        assert await results(api, instance["run"]) == [(1, "built", None)]
        assert instance["instance"] in api.held()

    placed(tmp_path, work)


def test_a_result_need_not_wait_for_the_record_of_its_run(tmp_path: Path) -> None:
    async def work(api: SchedulingApi, instance: dict[str, Any]) -> None:
        ended = await tell(api, instance, result="abandoned", reason="the user went away", ordinal=1)
        assert ended.status_code == 200, ended.text
        assert await results(api, instance["run"]) == [(1, "abandoned", "the user went away")]

    placed(tmp_path, work)


def test_the_attempt_on_an_alternate_has_a_result_of_its_own(tmp_path: Path) -> None:
    async def work(api: SchedulingApi, instance: dict[str, Any]) -> None:
        await api.service.records.flush()
        [recorded] = await api.service.records.backend.last(1)
        [chosen] = recorded.run.destinations
        swap = {
            **instance,
            "request_spec": SPEC,
            "failed": msgspec.to_builtins(chosen.selected),
            "alternates": msgspec.to_builtins(chosen.alternates),
            "reason": "no IP",
        }
        swapped = await api.client.post("/v1/use_alternate", json=swap)
        assert swapped.status_code == 200, swapped.text
        host = chosen.alternates[0].host
        ended = await tell(api, instance, result="built", host=host)
        assert (ended.status_code, ended.json()["ordinal"]) == (200, 2)
        assert await results(api, instance["run"]) == [(1, "failed", "no IP"), (2, "built", None)]
        late = await tell(api, instance, result="built", ordinal=1)
        assert error_of(late)["status"] == 409

    placed(tmp_path, work)


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        ({"result": "built"}, 400, "neither ordinal nor host"),
        ({"result": "built", "ordinal": 1, "reason": "r"}, 400, "a result built has no reason"),
        ({"result": "failed", "ordinal": 1}, 400, "a result failed has a reason"),
        ({"result": "pending", "ordinal": 1}, 400, "result"),
        ({"result": "built", "ordinal": 2}, 404, "has no attempt 2 of"),
        ({"result": "built", "host": "host9"}, 404, "on host9"),
        ({"result": "built", "ordinal": 1, "run": "nothing"}, 404, "no run nothing"),
    ],
)
def test_what_names_no_attempt_is_refused_and_changes_nothing(
    tmp_path: Path, more: dict[str, Any], status: int, says: str
) -> None:
    async def work(api: SchedulingApi, instance: dict[str, Any]) -> None:
        answer = await tell(api, {**instance, **more})
        assert (answer.status_code, says in error_of(answer)["detail"]) == (status, True), answer.text
        await api.service.records.flush()
        assert await results(api, instance["run"]) == [(1, "pending", None)]

    placed(tmp_path, work)


def test_results_are_for_services(tmp_path: Path) -> None:
    async def work(api: SchedulingApi, instance: dict[str, Any]) -> None:
        member = {"x-auth-token": "user:project", "x-roles": "member"}
        body = {**instance, "result": "built", "ordinal": 1}
        answer = await api.client.post(RESULTS, json=body, headers=member)
        assert error_of(answer)["status"] == 403

    placed(tmp_path, work)
