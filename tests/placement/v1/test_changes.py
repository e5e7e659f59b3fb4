"""``/v1/changes``: every commit once and in order, whoever made it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import falcon.asgi
import pytest

from roost.fleet import Fleet
from roost.ledger.feed import commits_after, decode_changes
from roost.placement.commands.providers import CreateProvider
from roost.placement.http.app import document_at
from roost.placement.queries import QueryBudget
from roost.placement.v1 import changes
from roost.placement.v1.follower import ChangeFollower
from roost.placement.v1.past import Past
from roost.placement.v1.service import V1Service
from roost.storage.identity import set_incarnation
from roost.web.errors import TooMany
from roost.web.limits import Limits
from support.ledgers import claim, host, opened, run, whole
from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of


def numbers(document: dict[str, Any]) -> list[int]:
    return [commit["seq"] for commit in document["commits"]]


@pytest.fixture
def written(v1: V1Api) -> Iterator[V1Api]:
    v1.provider("a", VCPU=8)
    for number in range(5):
        v1.claim(uuid_of(f"c{number}"), uuid_of("a"), VCPU=1)
    yield v1


def test_pages_follow_each_other_up_to_the_head(written: V1Api) -> None:
    found: list[int] = []
    while True:
        page = written.read(f"/v1/changes?after={found[-1] if found else 0}&limit=2")
        assert len(page["commits"]) <= 2
        if not page["commits"]:
            break
        found += numbers(page)
    assert found == list(range(1, page["head"] + 1))


def test_changes_carry_the_fact_before_and_after(written: V1Api) -> None:
    head = written.read("/v1/changes?limit=1")["head"]
    [commit] = written.read(f"/v1/changes?after={head - 1}")["commits"]
    [change, _] = commit["changes"]
    assert change["type"] == "allocations"
    assert change["before"] is None
    assert change["holds"] == {uuid_of("a"): {"VCPU": 1}}
    assert commit["at"] > 1e9


def test_a_page_is_bounded_in_bytes(written: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_BYTES", 1)
    assert numbers(written.read("/v1/changes")) == [1]
    assert numbers(written.read("/v1/changes?after=1")) == [2]


def test_what_is_trimmed_away_is_gone(written: V1Api) -> None:
    head = written.read("/v1/changes?limit=1")["head"]
    written.run(written.ledger.trim(2, 0.0))
    status, text = fault_of(written.fetch(f"/v1/changes?after={head - 3}"))
    assert (status, f"the oldest kept is {head - 1}" in text) == (410, True)
    assert numbers(written.read(f"/v1/changes?after={head - 2}")) == [head - 1, head]
    assert numbers(written.read(f"/v1/changes?after={head}")) == []


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_version_yet_to_come_is_refused(written: V1Api, accept: str) -> None:
    assert fault_of(written.fetch("/v1/changes?after=99999", accept=accept))[0] == 400
    assert fault_of(written.fetch(f"/v1/changes?after={2**63 - 1}", accept=accept))[0] == 400


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "99999", "9" * 40, "@", "x@y"])
def test_a_wrong_last_event_is_refused(written: V1Api, last: str) -> None:
    answer = written.fetch("/v1/changes", accept="text/event-stream", last_event_id=last)
    assert fault_of(answer)[0] == 400


def test_waiting_ends_with_the_next_commit(written: V1Api) -> None:
    head = written.read("/v1/changes?limit=1")["head"]

    async def wait() -> dict[str, Any]:
        waiting = asyncio.create_task(
            written.client.get(f"/v1/changes?after={head}&wait=20", headers={"x-auth-token": "admin"})
        )
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await written.ledger.execute(claim("late", uuid_of("a"), VCPU=1))
        return (await waiting).json()

    assert numbers(written.run(wait())) == [head + 1]
    assert numbers(written.read(f"/v1/changes?after={head + 1}&wait=1")) == []


def test_a_limit_of_bytes_counts_bytes(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            for number in range(3):
                await ledger.execute(CreateProvider(f"p{number}", "\N{SNOWMAN}" * 100 + str(number)))
            read = ledger.database.read
            stretch = await read(lambda connection: commits_after(connection, 1, 10, 600))
            assert [commit.seq for commit in stretch.commits] == [2, 3]

    asyncio.run(check())


def test_whoever_follows_the_feed_has_the_fleet(tmp_path: Path) -> None:
    """Two workers write at the same time; what a third reads is the fleet of both."""

    async def check() -> None:
        async with opened(tmp_path / "roost.db", 3) as [one, other, reader]:
            await run(one, *host("h", VCPU=1000))
            copy = Fleet()

            async def write(ledger: Any, name: str) -> None:
                for number in range(40):
                    await ledger.execute(claim(f"{name}{number}", "h", VCPU=1))

            async def follow() -> None:
                while head is None or copy.version < head:
                    stretch = await reader.database.read(
                        lambda connection: commits_after(connection, copy.version, 7, 2000)
                    )
                    for commit in stretch.commits:
                        copy.advance(commit.seq, decode_changes(commit.changes), commit.at)
                    await asyncio.sleep(0)

            head: int | None = None  # not known while they write
            following = asyncio.create_task(follow())
            await asyncio.gather(write(one, "a"), write(other, "b"))
            head = (await one.current()).version
            await following
            assert whole(copy) == whole(await reader.current())

    asyncio.run(check())


async def events(api: V1Api, count: int, after: int = 0) -> list[str]:
    """The first events of a stream, as text."""
    service = V1Service(
        api.ledger,
        Past(api.ledger),
        ChangeFollower(api.ledger),
        QueryBudget(api.ledger, Limits()),
        document_at,
    )
    response = falcon.asgi.Response()
    await changes.begin_stream(service, response, changes.FeedPosition(after, None))
    assert response.sse is not None
    found = [event.serialize().decode() async for event, _ in _both(response.sse, range(count))]
    assert len(service.streams) == 1
    response.sse = None
    gc.collect()
    assert not service.streams
    return found


async def _both(stream: Any, numbers: range) -> AsyncIterator[tuple[Any, int]]:
    for number in numbers:
        yield await anext(stream), number
    await stream.aclose()


def test_a_stream_without_commits_has_heartbeats(written: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "HEARTBEAT_SECONDS", 0.05)
    head = written.read("/v1/changes?limit=1")["head"]
    first, *rest = written.run(events(written, 4, head))
    assert "retry: 1000" in first
    assert rest == [": heartbeat\n\n"] * 3


def test_a_stream_that_is_overtaken_by_trimming_says_so(
    written: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "STREAMED_COMMITS", 2)

    async def trimmed() -> str:
        service = V1Service(
            written.ledger,
            Past(written.ledger),
            ChangeFollower(written.ledger),
            QueryBudget(written.ledger, Limits()),
            document_at,
        )
        response = falcon.asgi.Response()
        await changes.begin_stream(service, response, changes.FeedPosition(0, None))
        await written.ledger.trim(1, float("inf"))
        return "".join([event.serialize().decode() async for event in response.sse or ()])

    text = written.run(trimmed())
    assert text.count("event: commit") == 2
    assert "id: 2@" in text and text.index("event: gone") > text.index("id: 2@")


def restored(api: V1Api) -> None:
    """Raise the incarnation, as a restore does."""
    api.run(api.ledger.database.write(lambda connection: set_incarnation(connection, 2)))


def test_a_position_from_before_a_restore_is_refused(written: V1Api) -> None:
    page = written.read("/v1/changes?limit=2")
    uuid, _, incarnation = page["history"].rpartition(".")
    assert (len(uuid), incarnation) == (36, "1")
    assert numbers(written.read(f"/v1/changes?after=2&limit=1&history={page['history']}")) == [3]
    restored(written)
    status, text = fault_of(written.fetch(f"/v1/changes?after=2&history={page['history']}"))
    assert (status, f"has the history {uuid}.2" in text) == (410, True)
    # Without a history nothing is compared, as before there were any.
    assert written.read("/v1/changes?after=2&limit=1")["history"] == f"{uuid}.2"


def test_a_stream_does_not_go_on_in_another_history(written: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "STREAMED_COMMITS", 2)

    async def followed() -> list[str]:
        service = V1Service(
            written.ledger,
            Past(written.ledger),
            ChangeFollower(written.ledger),
            QueryBudget(written.ledger, Limits()),
            document_at,
        )
        response = falcon.asgi.Response()
        await changes.begin_stream(service, response, changes.FeedPosition(0, None))
        assert response.sse is not None
        found = [(await anext(response.sse)).serialize().decode() for _ in range(3)]
        await written.ledger.database.write(lambda connection: set_incarnation(connection, 2))
        return found + [event.serialize().decode() async for event in response.sse]

    *commits, last = written.run(followed())
    assert len(commits) == 3
    assert "event: gone" in last and "restored from a backup" in last
    # The id of the last event is what a client reconnects with.
    last_id = commits[-1].partition("id: ")[2].partition("\n")[0]
    answer = written.fetch("/v1/changes", accept="text/event-stream", last_event_id=last_id)
    assert fault_of(answer)[0] == 410


def test_a_worker_serves_only_so_many_streams(written: V1Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_STREAMS", 0)
    assert fault_of(written.fetch("/v1/changes", accept="text/event-stream"))[0] == 429
    head = written.run(written.ledger.current()).version
    assert written.fetch(f"/v1/changes?after={head}").status_code == 200
    assert fault_of(written.fetch(f"/v1/changes?after={head}&wait=1"))[0] == 429


def test_requests_that_arrive_together_get_no_more_streams_than_there_may_be(
    written: V1Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_STREAMS", 3)

    async def begin() -> tuple[int, int]:
        service = V1Service(
            written.ledger,
            Past(written.ledger),
            ChangeFollower(written.ledger),
            QueryBudget(written.ledger, Limits()),
            document_at,
        )
        responses = [falcon.asgi.Response() for _ in range(10)]
        begun = await asyncio.gather(
            *(
                changes.begin_stream(service, response, changes.FeedPosition(0, None))
                for response in responses
            ),
            return_exceptions=True,
        )
        refused = sum(isinstance(each, TooMany) for each in begun)
        return refused, sum(response.sse is not None for response in responses)

    assert written.run(begin()) == (7, 3)
