"""A request that is sent again with its key creates once, whatever became of the first one."""

import asyncio
import contextlib
import random
from typing import Any

import httpx
import pytest

from roost.conductor.http import OPERATIONS
from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.state.api_database.kept_answers import (
    KEPT_SECONDS,
    PRUNED_AT_ONCE,
    find_answer,
    keep_answer,
    prune_kept_answers,
)
from roost.state.api_database.tables import kept_answers
from roost.storage import Database, DatabaseUnavailable, OutcomeUnknown
from support.conductor_api import ADMIN, FLAVOR, OTHER, TOKEN, api
from support.works import is_of

ASKED: dict[str, tuple[str, Any, Any]] = {
    "/v1/instances": ("/v1/instances", {"flavor": FLAVOR, "count": 2}, {"flavor": FLAVOR}),
    "/v1/server-groups": (
        "/v1/server-groups",
        {"name": "web", "policy": "affinity"},
        {"name": "web", "policy": "anti-affinity"},
    ),
    "/v1/aggregates": ("/v1/aggregates", {"name": "rack"}, {"name": "other"}),
    "/v1/audit/rounds": ("/v1/audit/rounds", {"most": 3}, {"most": 4}),
    "/v1/hosts": (
        "/v1/hosts",
        {"cell": "cell1", "hosts": ["new"]},
        {"cell": "cell1", "hosts": ["newer"]},
    ),
    "/v1/hosts/{host}/token": ("/v1/hosts/a/token", None, None),
    "/v1/maintenances": ("/v1/maintenances", {"hosts": ["a"]}, {"hosts": ["b"]}),
}
"""A request of each operation that creates something, and another body of it."""

ELSEWHERE = {
    "/v1/cells",
    "/v1/hosts/{host}/evacuate",
    "/v1/hosts/{host}/move",
    "/v1/instances/{uuid}/evacuate",
    "/v1/instances/{uuid}/live-migrate",
    "/v1/instances/{uuid}/migrate",
    "/v1/instances/{uuid}/rebuild",
    "/v1/instances/{uuid}/resize",
    "/v1/instances/{uuid}/shelve",
    "/v1/instances/{uuid}/start",
    "/v1/instances/{uuid}/stop",
    "/v1/instances/{uuid}/unshelve",
}
"""Operations that need more: see test_places_over_http, test_hosts_over_http, test_moves_over_http,
test_power_over_http and test_shelves_over_http."""

SECRET = {"/v1/hosts", "/v1/hosts/{host}/token"}


def keyed(key: str, headers: dict[str, str] = ADMIN) -> dict[str, str]:
    return {**headers, "Idempotency-Key": key}


def code(answer: httpx.Response) -> str:
    found: str = answer.json()["errors"][0]["code"]
    return found


def test_each_operation_that_creates_is_asked_here() -> None:
    creating = {each.path for each in OPERATIONS if each.creates is not None}
    assert creating == ASKED.keys() | ELSEWHERE


@pytest.mark.parametrize("path", ASKED)
def test_sent_again_it_has_the_first_answer(tmp_path, path: str) -> None:
    target, body, other = ASKED[path]

    async def run() -> None:
        async with api(tmp_path) as (_, client):
            if "{host}" in path:
                hosts = {"cell": "cell1", "hosts": ["a"]}
                await client.post("/v1/hosts", json=hosts, headers=ADMIN)
            first = await client.post(target, json=body, headers=keyed("one"))
            assert first.is_success, first.text
            assert "idempotent-replayed" not in first.headers
            again = await client.post(target, json=body, headers=keyed("one"))
            if path in SECRET:
                assert (again.status_code, code(again)) == (409, "roost.secret_not_kept")
            else:
                assert (again.status_code, again.content) == (first.status_code, first.content)
                assert again.headers["idempotent-replayed"] == "true"
                assert again.headers["x-openstack-request-id"] != first.headers["x-openstack-request-id"]
            if other is not None:
                contradicts = await client.post(target, json=other, headers=keyed("one"))
                assert (contradicts.status_code, code(contradicts)) == (422, "roost.idempotency_key_reused")

    asyncio.run(run())


def test_a_key_is_of_its_project_user_and_operation(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            group = {"name": "web", "policy": "affinity"}
            mine = await client.post("/v1/server-groups", json=group, headers=keyed("k", TOKEN))
            others = await client.post("/v1/server-groups", json=group, headers=keyed("k", OTHER))
            colleague = {**TOKEN, "X-Auth-Token": "colleague:project"}
            theirs = await client.post("/v1/server-groups", json=group, headers=keyed("k", colleague))
            assert len({each.json()["uuid"] for each in (mine, others, theirs)}) == 3
            wanted = {"flavor": FLAVOR}
            assert (await client.post("/v1/instances", json=wanted, headers=keyed("k"))).status_code == 202

    asyncio.run(run())


def test_a_body_that_utf8_cannot_encode_has_the_same_answer_with_a_key(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            body = b'{"flavor": {"vcpus": 1, "memory_mb": 0}, "scheduler_hints": {"build_near": "\\ud800"}}'
            plain = await client.post("/v1/instances", content=body)
            with_key = await client.post("/v1/instances", content=body, headers=keyed("k", TOKEN))
            assert with_key.status_code == plain.status_code < 500

    asyncio.run(run())


@pytest.mark.parametrize("key", ["", " ", "a b", "a,b", "x" * 256, "caf\u00e9", "\x7f"])
def test_a_key_that_is_none_is_refused_and_creates_nothing(tmp_path, key: str) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            headers = [*TOKEN.items(), ("Idempotency-Key", key.encode("latin-1"))]
            group = {"name": "web", "policy": "affinity"}
            answer = await client.post("/v1/server-groups", json=group, headers=headers)
            assert (answer.status_code, code(answer)) == (400, "roost.idempotency_key_malformed")
            twice = [*TOKEN.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
            assert (await client.post("/v1/server-groups", json=group, headers=twice)).status_code == 400
            assert (await client.get("/v1/server-groups")).json()["server_groups"] == []

    asyncio.run(run())


def test_one_whose_key_is_in_work_is_a_conflict(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            write, go, begun = now.groups._database.write, asyncio.Event(), asyncio.Event()

            async def held(work: Any) -> Any:
                begun.set()
                await go.wait()
                return await write(work)

            monkeypatch.setattr(now.groups._database, "write", held)
            group = {"name": "web", "policy": "affinity"}
            first = asyncio.create_task(client.post("/v1/server-groups", json=group, headers=keyed("k")))
            await begun.wait()
            second = await client.post("/v1/server-groups", json=group, headers=keyed("k"))
            assert (second.status_code, code(second)) == (409, "roost.idempotency_key_in_work")
            assert second.headers["retry-after"] == "1"
            go.set()
            assert (await first).status_code == 201
            again = await client.post("/v1/server-groups", json=group, headers=keyed("k"))
            assert again.content == (await first).content

    asyncio.run(run())


def test_a_refused_request_leaves_its_key_free(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            rack = {"name": "rack"}
            made = await client.post("/v1/aggregates", json=rack, headers=ADMIN)
            taken = await client.post("/v1/aggregates", json=rack, headers=keyed("k"))
            assert taken.status_code == 409
            await client.delete(f"/v1/aggregates/{made.json()['uuid']}", headers=ADMIN)
            assert (await client.post("/v1/aggregates", json=rack, headers=keyed("k"))).status_code == 201

    asyncio.run(run())


def test_what_a_late_transaction_creates_is_the_answer_to_the_request_that_it_refuses(tmp_path) -> None:
    """The name of an aggregate is taken by the same request, whose answer was lost."""

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            database: Database = now.requests.database
            rack = {"name": "rack"}
            first = await client.post("/v1/aggregates", json=rack, headers=keyed("k"))
            find, looks = database.read, []

            async def not_yet(work: Any, **how: bool) -> Any:
                if is_of(work, find_answer) and not looks:
                    looks.append(work)
                    return None
                return await find(work, **how)

            database.read = not_yet  # type: ignore[method-assign]
            again = await client.post("/v1/aggregates", json=rack, headers=keyed("k"))
            assert looks
            assert (again.status_code, again.content) == (201, first.content)

    asyncio.run(run())


class Weather:
    """Writes, some of which are refused, lost, or carried out after their caller got an error."""

    def __init__(self, database: Database, seed: int) -> None:
        self._write, self._draw = database.write, random.Random(seed)
        self.late: set[asyncio.Task[Any]] = set()
        database.write = self.write  # type: ignore[method-assign]

    async def write(self, work: Any) -> Any:
        fate = self._draw.random()
        if fate < 0.2:
            raise DatabaseUnavailable("no answer")
        if fate < 0.3:
            raise OutcomeUnknown("no answer")
        if fate < 0.6:
            late = asyncio.create_task(self._later(work))
            self.late.add(late)
            late.add_done_callback(self.late.discard)
            raise OutcomeUnknown("no answer")
        return await self._write(work)

    async def _later(self, work: Any) -> None:
        for _ in range(self._draw.randrange(6)):
            await asyncio.sleep(0)
        with contextlib.suppress(Exception):  # what the database refuses has no caller any more
            await self._write(work)


@pytest.mark.parametrize("seed", range(3))
def test_a_client_that_does_what_it_is_told_has_nothing_twice(tmp_path, seed: int) -> None:
    """With keys: sent again until there is an answer. Without: only after ``Retry-After``."""

    async def create(client: httpx.AsyncClient, body: Any, key: str | None) -> bool:
        headers = TOKEN if key is None else keyed(key, TOKEN)
        while True:
            answer = await client.post("/v1/server-groups", json=body, headers=headers)
            if answer.is_success:
                return True
            assert answer.status_code in (409, 503), answer.text
            if key is None and "retry-after" not in answer.headers:
                assert code(answer) == "roost.outcome_unknown"
                return False

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            weather = Weather(now.groups._database, seed)
            names = [f"{'keyed' if number % 2 else 'plain'}-{number}" for number in range(120)]
            keys = [name if name.startswith("keyed") else None for name in names]
            bodies = [{"name": name, "policy": "affinity"} for name in names]
            told = await asyncio.gather(*(create(client, *each) for each in zip(bodies, keys, strict=True)))
            await asyncio.gather(*weather.late)
            page = (await client.get("/v1/server-groups?limit=1000")).json()["server_groups"]
            made = [each["name"] for each in page]
            assert len(made) == len(set(made))
            answered = {name for name, done in zip(names, told, strict=True) if done}
            assert {name for name in names if name.startswith("keyed")} <= answered <= set(made)

    asyncio.run(run())


def test_answers_are_kept_for_a_day_and_forgotten_in_small_transactions(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, _):
            database: Database = now.requests.database
            for number in range(3):
                key = IdempotencyKey(f"{number:064}", "0" * 64, 1000.0 * number)
                await database.write(keep_answer(KeyedAnswer(key, 201, b"{}")))
            assert await database.write(prune_kept_answers(1500.0)) == 2 < PRUNED_AT_ONCE
            left = await database.read(lambda connection: connection.execute(kept_answers.select()).all())
            assert [row.at for row in left] == [2000.0]
            assert KEPT_SECONDS >= 24 * 3600

    asyncio.run(run())
