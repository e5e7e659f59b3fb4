"""What an operator has disabled is emptied: told once when it begins, and once when it ends."""

import asyncio
from typing import Any

import httpx
import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.conductor.events.observed import SeenOutage, note_outages_now
from roost.conductor.words.drains import look_at_drains
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.drains import (
    Drain,
    find_drain_word,
    note_drains,
    read_moving_drains,
    read_open_drains,
)
from roost.state.api_database.events import events_after
from roost.state.api_database.operator_words import WordStore
from roost.state.api_database.tables import SCHEMA
from roost.state.cell_database.instance_search import count_remaining
from roost.state.cell_database.moves import read_all_moves
from roost.storage import Database
from support.conducting import HOSTS, Conductors
from support.conductor_api import ADMIN, OPERATOR, api, asked_for, hold
from support.databases import Place
from support.upgrading import upgrade_empty

EVENTS = "/v1/events"
BEFORE = "0019"
"""The last revision without drains."""


async def drains(client: httpx.AsyncClient) -> list[tuple[str, str, str | None]]:
    page = (await client.get(EVENTS, headers=ADMIN)).json()
    return [
        (each["kind"].removeprefix("drain_"), each["host"] or each["cell"], each["detail"])
        for each in page["events"]
        if each["kind"].startswith("drain_")
    ]


async def say(client: httpx.AsyncClient, path: str, enabled: bool) -> None:
    answer = await client.put(f"/v1/{path}", json={"enabled": enabled}, headers=OPERATOR)
    assert answer.is_success, answer.text


async def placed(now: Conductors, client: httpx.AsyncClient) -> tuple[str, str]:
    """A new instance that runs, and its host."""
    [uuid] = await asked_for(client, 1)
    await now.settle()
    host = (await now.instances())[uuid].host
    assert host is not None
    return uuid, host


def using(tmp_path: Any, use: Any) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await use(now, client)

    asyncio.run(run())


def test_a_host_is_emptied(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        uuid, host = await placed(now, client)
        await say(client, f"hosts/{host}", False)
        for _ in range(2):
            await now.step()
            assert await drains(client) == [("begun", host, "1 instance is there")]
        await say(client, f"hosts/{host}", False)
        await now.step()
        assert len(await drains(client)) == 1, "said again, it goes on"
        assert (await client.delete(f"/v1/instances/{uuid}")).is_success
        await now.settle()
        for _ in range(2):
            await now.step()
            assert (await drains(client))[1:] == [("ended", host, "nothing is there any more")]
        await say(client, f"hosts/{host}", True)
        await now.step()
        assert len(await drains(client)) == 2
        await say(client, f"hosts/{host}", False)
        await now.step()
        assert (await drains(client))[2:] == [("ended", host, "nothing is there any more")], "a later word"

    using(tmp_path, use)


def test_a_host_is_enabled_before_it_is_empty(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        _, host = await placed(now, client)
        await say(client, f"hosts/{host}", False)
        await now.step()
        await say(client, f"hosts/{host}", True)
        await now.step()
        ended = ("ended", host, "it was enabled before it was empty")
        assert (await drains(client))[1:] == [ended]

    using(tmp_path, use)


def test_nodes_and_cells_are_emptied_too(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        uuid, host = await placed(now, client)
        cell = (await now.cell_of(uuid)).name
        await say(client, f"hosts/{host}/nodes/node-{host}", False)
        await say(client, f"cells/{cell}", False)
        await now.step()
        assert sorted(await drains(client)) == [
            ("begun", host, "1 instance is there"),
            ("begun", cell, "1 instance is there"),
        ]
        subjects = (Subject(cell), Subject(cell, host, f"node-{host}"), Subject(cell, host, "other"))
        left = await now.cells[cell].read(count_remaining(subjects))
        assert left.instances == dict.fromkeys(subjects[:2], 1)

    using(tmp_path, use)


def test_what_is_on_its_way_is_waited_for(tmp_path, monkeypatch) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        go = hold(now, monkeypatch)
        await asked_for(client, 1)
        await say(client, "hosts/a", False)
        await now.super.step()
        assert await drains(client) == [], "a request that was accepted before may come to the host"
        go.set()
        await now.settle()
        await now.step()
        assert [each[0] for each in await drains(client)][-1] == "ended"

    using(tmp_path, use)


def test_an_instance_that_moves_from_a_failed_build_is_waited_for(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        [uuid] = await asked_for(client, 1)
        await now.arrive()
        await now.build("abcde")
        failed = (await now.instances())[uuid]
        assert failed.state == "failed"
        other = next(host for host in ("a", "b", "d", "e") if host != failed.host)
        cell = "cell1" if other in "ab" else "cell2"
        in_its_cell = (await now.cell_of(uuid)).name == cell
        await say(client, f"hosts/{other}", False)
        await now.super.step()
        assert (await drains(client) == []) == in_its_cell
        await now.settle()
        await now.step()
        assert [each[0] for each in await drains(client)] == ["ended"]

    using(tmp_path, use)


def test_two_processes_tell_a_drain_once_and_a_later_word_wins(place: Place) -> None:
    subject = Subject("cell1", "a")

    async def run() -> None:
        first, second = (Database(place.at(number)) for number in range(2))
        upgrade_empty(SCHEMA, first)
        store = WordStore(first)

        async def told() -> list[tuple[str, str | None]]:
            found = await second.read(events_after(None, 99))
            assert found is not None
            return [(each.kind, each.detail) for each in found.events]

        await store.say([SaidWord(subject, False, "fan", 1.0)])
        [drain] = await second.read(read_open_drains())
        work = note_drains(((drain, 3),), 2.0)
        await asyncio.gather(first.write(work), second.write(work))
        [begun] = await second.read(read_open_drains())
        assert begun == Drain(subject, drain.version, 1.0, begun=True)
        await store.say([SaidWord(subject, False, "disk", 3.0)])
        [again] = await second.read(read_open_drains())
        assert (again.begun, again.version > drain.version) == (True, True), "it goes on"
        await first.write(note_drains(((drain, 0),), 4.0))
        await store.say([SaidWord(subject, True, None, 5.0)])
        assert await second.read(read_open_drains()) == []
        await store.say([SaidWord(subject, False, "fan", 6.0)])
        [later] = await second.read(read_open_drains())
        assert not later.begun
        end = note_drains(((later, 0),), 7.0)
        await asyncio.gather(first.write(end), second.write(end))
        assert await second.read(read_open_drains()) == []
        assert await told() == [
            ("host_disabled", "fan"),
            ("drain_begun", "3 instances are there"),
            ("host_disabled", "disk"),
            ("drain_ended", "it was enabled before it was empty"),
            ("host_enabled", None),
            ("host_disabled", "fan"),
            ("drain_ended", "nothing is there any more"),
        ]
        for database in (first, second):
            await database.close()

    asyncio.run(run())


def test_drains_of_a_cell_that_is_away_wait(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        await say(client, "hosts/a", False)
        context = now.super._context
        await look_at_drains(context, ("cell2",))
        assert await drains(client) == []
        await look_at_drains(context, ("cell1",))
        assert len(await drains(client)) == 1

    using(tmp_path, use)


def test_words_of_a_database_of_before_are_drained_from_the_upgrade_on(place: Place) -> None:
    engine = sa.create_engine(place.url)
    with engine.begin() as connection:
        revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", BEFORE)]
        with Operations.context(MigrationContext.configure(connection)):
            for revision in reversed(revisions):
                revision.module.upgrade()
        for statement in (
            "CREATE TABLE conductor_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
            f"INSERT INTO conductor_schema VALUES ('{BEFORE}')",
            "INSERT INTO operator_words VALUES ('c', 'a', '', false, 'fan', 1.0, 7)",
            "INSERT INTO cell_mappings VALUES ('c', 'cell_c', NULL)",
        ):
            connection.execute(sa.text(statement))
    engine.dispose()

    async def run() -> None:
        database = Database(place.url)
        SCHEMA.upgrade(database)
        subject = Subject("c", "a")
        drains = await database.read(read_open_drains())
        assert drains == [Drain(subject, 7, 1.0, begun=False)]
        await database.write(note_drains(((drains[0], 0),), 2.0))
        await database.write(note_outages_now((SeenOutage("c", True, 3.0, "gone"),)))
        found = await database.read(events_after(None, 9))
        assert found is not None
        assert [each.kind for each in found.events] == ["drain_ended", "cell_down"]
        await database.close()

    asyncio.run(run())


def test_a_drain_with_moves_shows_its_progress_and_is_paused(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        uuid, host = await placed(now, client)
        path, node = f"/v1/hosts/{host}", f"node-{host}"

        async def put(path: str, **body: Any) -> httpx.Response:
            return await client.put(path, json=body, headers=OPERATOR)

        async def progress(path: str) -> dict[str, Any]:
            answer = await client.get(f"{path}/drain", headers=ADMIN)
            assert answer.is_success, answer.text
            shown: dict[str, Any] = answer.json()
            return shown

        def numbers(shown: dict[str, Any]) -> list[int]:
            return [shown[each] for each in ("left", "waiting", "moving", "moved", "stuck")]

        shown = await progress(path)
        assert (shown["enabled"], shown["move"], numbers(shown)) == (True, False, [1, 1, 0, 0, 0])
        assert (await put(path, enabled=False, move=True)).is_success
        shown = await progress(path)
        assert (shown["enabled"], shown["move"], shown["held_back_by"]) == (False, True, 0)
        await now.step()
        for each in (path, f"{path}/nodes/{node}"):
            assert numbers(await progress(each)) == [1, 0, 1, 0, 0]
        cell = await now.cell_of(uuid)
        [move] = (await cell.read(read_all_moves())).values()
        assert (move.instance, move.by.user_id) == (uuid, "drain")
        await now.step()
        assert len(await cell.read(read_all_moves())) == 1
        assert (await put(path, enabled=False)).is_success
        assert not (await progress(path))["move"], "said again without it, the drain is paused"
        assert (await put(path, enabled=False, move=True, live=True)).is_success
        assert (await progress(path))["live"]
        assert (await put(path, enabled=False, move=True)).is_success
        assert not (await progress(path))["live"]
        assert (await put(path, enabled=False)).is_success
        assert (await put(f"{path}/nodes/{node}", enabled=False, move=True)).is_success
        assert (await progress(f"{path}/nodes/{node}"))["move"]
        name = cell.name
        for wrong in (path, f"/v1/cells/{name}"):
            assert (await put(wrong, enabled=True, move=True)).status_code == 400
            assert (await put(wrong, enabled=False, live=True)).status_code == 400
        assert (await put(f"/v1/cells/{name}", enabled=False, move=True, live=True)).status_code == 400
        assert (await client.get(f"{path}/nodes/other/drain", headers=ADMIN)).status_code == 404
        assert (await client.get(f"{path}/drain")).status_code == 403

    using(tmp_path, use)


def test_what_cannot_move_is_named(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient) -> None:
        uuid, host = await placed(now, client)
        cell = await now.cell_of(uuid)
        for other in HOSTS:
            if HOSTS[other] == cell.name and other != host:
                await say(client, f"hosts/{other}", False)
        await now.feed.refresh()
        await client.put(f"/v1/hosts/{host}", json={"enabled": False, "move": True}, headers=OPERATOR)
        for _ in range(4):
            await now.step()
        shown = (await client.get(f"/v1/hosts/{host}/drain", headers=ADMIN)).json()
        [named] = shown["staying"]
        assert (named["instance"], named["state"], named["tries"], shown["stuck"]) == (uuid, "active", 1, 1)
        assert "No valid host" in named["reason"]
        assert len(await cell.read(read_all_moves())) == 1, "it is tried again after a pause"

    using(tmp_path, use)


def test_the_time_since_which_a_subject_is_disabled_outlasts_later_words(place: Place) -> None:
    subject = Subject("cell1", "a")

    async def run() -> None:
        database = Database(place.url)
        upgrade_empty(SCHEMA, database)
        store = WordStore(database)
        found = []
        for at, enabled, moves in (
            (1.0, False, True),
            (2.0, False, False),
            (3.0, True, False),
            (4.0, False, True),
        ):
            await store.say([SaidWord(subject, enabled, None, at, moves)])
            word = await database.read(find_drain_word(subject))
            drains = await database.read(read_moving_drains())
            found.append((word.enabled, word.moves, word.since, [each.subject for each in drains]))
        assert found == [
            (False, True, 1.0, [subject]),
            (False, False, 1.0, []),
            (True, False, 0.0, []),
            (False, True, 4.0, [subject]),
        ]
        await store.withdraw("cell1", "a")
        assert await database.read(read_moving_drains()) == []
        await database.close()

    asyncio.run(run())
