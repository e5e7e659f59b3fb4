"""Attempts end in the records as Nova's databases say that they ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.model.record import ABANDONED, BUILT, FAILED, PENDING, Attempt, Run
from roost.model.spec import Destination, Selection
from roost.nova import attempts as attempts_module
from roost.nova.attempt_ends import BUILD_STEP, DELETED, GIVEN_UP, NO_TRACE, RESCHEDULED
from roost.nova.attempts import NovaAttempts
from roost.nova.database.cells import NovaCells
from roost.nova.database.tables import instance_mappings
from roost.records import RecordQueue, Retention, Search
from roost.records.sql import SqlRecords
from roost.storage import Database, DatabaseUnavailable
from support.nova_clouds import EPOCH, NovaCloud, cell_uuid, node_uuid
from support.nova_traces import action, buried, fault, instance_uuid, mapped, placed, requested

Ends = list[tuple[str, str, str | None]]


class Followed:
    """A cloud, and attempts that are followed in it. ``now``: seconds since the epoch."""

    def __init__(self, cloud: NovaCloud, folder: Path) -> None:
        self.cloud = cloud
        self.now = 1000.0
        self.api = Database(cloud.urls["api"], read_only=True, deferred=True)
        self.cells = NovaCells(self.api, None)
        self.folder = folder
        self.records = self.queue()
        self.attempts = NovaAttempts(self.cells, self.records, lambda: self.now)

    def queue(self) -> RecordQueue:
        return RecordQueue(SqlRecords(Database(f"sqlite:///{self.folder / 'records.db'}"), Retention()))

    async def restart(self) -> None:
        """Another process with the same records."""
        await self.records.close()
        self.records = self.queue()
        self.attempts = NovaAttempts(self.cells, self.records, lambda: self.now)

    async def claimed(self, name: str, host: str = "a", *alternates: str, request: str = "req-1") -> None:
        """A run has claimed a host for an instance. An alternate may be ``host/node``."""
        found = instance_uuid(name)
        run = f"run-{name}"

        def selection(host: str, ordinal: int) -> Selection:
            name, _, node = host.partition("/")
            return Selection(name, node_uuid(node or name), cell_uuid("cell1"), {}, {}, 1.5, ordinal=ordinal)

        destination = Destination(
            run, found, selection(host, 1), tuple(selection(each, 0) for each in alternates)
        )
        self.records.put(
            [
                Run(
                    id=run,
                    request_id=request,
                    project_id="p",
                    user_id="u",
                    instances=(found,),
                    spec={},
                    started_at=self.now,
                    finished_at=self.now,
                    version=None,
                    destinations=(destination,),
                )
            ],
            [
                Attempt(
                    run=run,
                    request_id=request,
                    instance=found,
                    ordinal=1,
                    at=self.now,
                    host=host,
                    cell=cell_uuid("cell1"),
                    weight=1.5,
                    result=PENDING,
                    node=node_uuid(host),
                )
            ],
        )

    async def ends(self, name: str, *, look: bool = True) -> Ends:
        """The attempts of an instance in the records, after a look."""
        if look:
            self.now += 10.0
            await self.attempts.look()
        assert await self.records.flush(10.0)
        backend = self.records.backend
        assert isinstance(backend, SqlRecords)
        found = await backend.find(Search(instance=instance_uuid(name)))
        return [(each.host, each.result, each.reason) for one in found for each in one.attempts]


@asynccontextmanager
async def followed(folder: Path) -> AsyncIterator[Followed]:
    cloud = NovaCloud(folder, "cell0", "cell1")
    made = Followed(cloud, folder)
    await made.cells.refresh()
    try:
        yield made
    finally:
        await made.records.close()
        await made.cells.close()
        await made.api.close()
        cloud.close()


def on(folder: Path, work: Callable[[Followed], Awaitable[None]]) -> None:
    async def run() -> None:
        async with followed(folder) as now:
            await work(now)

    asyncio.run(run())


def built_by(cloud: NovaCloud, name: str, *hosts: str, result: str = "Success") -> None:
    """The hosts have begun to build one after the other. As in Nova, only the first event gets a result."""
    events = [(BUILD_STEP, host, result if place == 0 else None) for place, host in enumerate(hosts)]
    action(cloud, "cell1", name, "create", *events)


def test_boot_is_built_once_the_instance_runs(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        requested(now.cloud, "one")
        await now.claimed("one", "a", "b")
        assert await now.ends("one") == [("a", PENDING, None)]
        placed(now.cloud, "one", "cell1", None, vm_state="building", task_state="scheduling")
        built_by(now.cloud, "one", "a")
        assert await now.ends("one") == [("a", PENDING, None)]
        placed(now.cloud, "one", "cell1", "a", vm_state="active", task_state=None, launched_at=EPOCH)
        assert await now.ends("one") == [("a", BUILT, None)]
        assert now.attempts.open == 0

    on(tmp_path, work)


def test_boot_on_an_alternate_has_an_attempt_there(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("one", "a", "b", "c")
        placed(now.cloud, "one", "cell1", "c", launched_at=EPOCH)
        built_by(now.cloud, "one", "a", "b", "c")
        fault(now.cloud, "cell1", "one", "b", "no  disk\nleft")
        fault(now.cloud, "cell1", "one", "a", "of another day", at=-60.0)
        assert await now.ends("one") == [
            ("a", FAILED, RESCHEDULED),
            ("b", FAILED, "no disk left"),
            ("c", BUILT, None),
        ]
        assert await now.ends("one") == await now.ends("one", look=False)

    on(tmp_path, work)


def test_boot_on_one_of_several_nodes_of_a_host_is_on_the_claimed_node(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("one", "a", "a/a2", "b")
        placed(now.cloud, "one", "cell1", "a", launched_at=EPOCH)
        built_by(now.cloud, "one", "a")
        # A database keeps the node of the open attempt; a file of records gets what is put.
        put: list[Attempt] = []
        now.records.followers.append(lambda runs, attempts: put.extend(attempts))
        assert await now.ends("one") == [("a", BUILT, None)]
        assert [(each.node, each.result) for each in put] == [(node_uuid("a"), BUILT)]

    on(tmp_path, work)


def test_boot_that_failed_everywhere_has_the_faults_text(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("one", "a", "b")
        await now.claimed("two", "a")
        await now.claimed("mute", "a")
        for name in ("one", "two", "mute"):
            placed(now.cloud, name, "cell1", None, vm_state="error")
        built_by(now.cloud, "one", "a", "b")
        fault(now.cloud, "cell1", "one", "conductor", "Exceeded maximum number of retries. Last: no disk")
        built_by(now.cloud, "two", "a", result="Error")
        fault(now.cloud, "cell1", "two", "a", "Build of instance aborted")
        built_by(now.cloud, "mute", "a")
        assert await now.ends("one") == [
            ("a", FAILED, RESCHEDULED),
            ("b", FAILED, "Exceeded maximum number of retries. Last: no disk"),
        ]
        assert await now.ends("two") == [("a", FAILED, "Build of instance aborted")]
        assert await now.ends("mute") == [("a", FAILED, GIVEN_UP)]

    on(tmp_path, work)


def test_instance_that_was_built_and_then_moved_or_deleted_was_built(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        for name in ("moved", "deleted", "never"):
            await now.claimed(name, "a", "b")
            built_by(now.cloud, name, "a")
        placed(now.cloud, "moved", "cell1", "b", launched_at=EPOCH)
        placed(now.cloud, "deleted", "cell1", "a", launched_at=EPOCH, vm_state="deleted", deleted=7)
        placed(now.cloud, "never", "cell1", "a", vm_state="building", task_state="deleting", deleted=8)
        assert await now.ends("moved") == [("a", BUILT, None)]
        assert await now.ends("deleted") == [("a", BUILT, None)]
        assert await now.ends("never") == [("a", ABANDONED, DELETED)]

    on(tmp_path, work)


def test_boot_that_came_into_no_cell_is_abandoned(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        for name in ("buried", "gone", "mapped"):
            await now.claimed(name)
            requested(now.cloud, name)
        buried(now.cloud, "buried")
        fault(now.cloud, "cell0", "buried", "conductor", "Timed out waiting for a reply")
        mapped(now.cloud, "gone", "cell0")
        now.cloud.write("api", *_forgotten("gone"))
        mapped(now.cloud, "mapped", "cell1")
        reason = "Nova gave the boot up: Timed out waiting for a reply"
        assert await now.ends("buried") == [("a", ABANDONED, reason)]
        assert await now.ends("gone") == [("a", ABANDONED, NO_TRACE)]
        assert await now.ends("mapped") == [("a", PENDING, None)]

    on(tmp_path, work)


def _forgotten(name: str) -> list[Any]:
    return [instance_mappings.delete().where(instance_mappings.c.instance_uuid == instance_uuid(name))]


@pytest.mark.parametrize(
    ("kind", "events", "values", "ends"),
    [
        (
            "resize",
            [("compute_prep_resize", "a", "Success"), ("compute_finish_resize", "a", "Success")],
            {"host": "a", "vm_state": "resized"},
            [("a", BUILT, None)],
        ),
        # It was reverted before the look.
        (
            "resize",
            [("compute_prep_resize", "a", "Success"), ("compute_finish_resize", "a", "Success")],
            {"host": "source"},
            [("a", BUILT, None)],
        ),
        (
            "migrate",
            [
                ("compute_prep_resize", "a", "Success"),
                ("compute_prep_resize", "b", None),
                ("compute_finish_resize", "b", "Success"),
            ],
            {"host": "b", "vm_state": "resized"},
            [("a", FAILED, RESCHEDULED), ("b", BUILT, None)],
        ),
        (
            "resize",
            [("cold_migrate", "conductor", "Success"), ("compute_prep_resize", "a", "Error")],
            {"host": "source"},
            [("a", FAILED, "no space")],
        ),
        # To the same host: the row says nothing.
        (
            "resize",
            [("cold_migrate", "conductor", "Error")],
            {"host": "a"},
            [("a", FAILED, GIVEN_UP)],
        ),
        (
            "evacuate",
            [("rebuild_server", "conductor", "Success"), ("compute_rebuild_instance", "a", "Success")],
            {"host": "a"},
            [("a", BUILT, None)],
        ),
        ("live-migration", [], {"host": "a"}, [("a", BUILT, None)]),
        (
            "live-migration",
            [("compute_rollback_live_migration_at_destination", "a", "Success")],
            {"host": "source"},
            [("a", FAILED, GIVEN_UP)],
        ),
        ("unshelve", [], {"host": None, "task_state": "unshelving"}, [("a", PENDING, None)]),
        (
            "unshelve",
            [("compute_unshelve_instance", "a", "Error")],
            {"host": None},
            [("a", FAILED, "no space")],
        ),
    ],
)
def test_moves_end_by_the_events_of_their_own_action(
    tmp_path: Path, kind: str, events: list[Any], values: dict[str, Any], ends: Ends
) -> None:
    async def work(now: Followed) -> None:
        placed(now.cloud, "one", "cell1", launched_at=EPOCH, **values)
        built_by(now.cloud, "one", "a")
        await now.claimed("one", "a", "b", request="req-2")
        action(now.cloud, "cell1", "one", kind, *events, request="req-2", details="no space")
        assert await now.ends("one") == ends

    on(tmp_path, work)


def test_attempt_without_its_action_ends_by_success_alone(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        for name, host in (("there", "a"), ("elsewhere", "source")):
            placed(now.cloud, name, "cell1", host, launched_at=EPOCH)
            await now.claimed(name, request="req-9")
        assert await now.ends("there") == [("a", BUILT, None)]
        assert await now.ends("elsewhere") == [("a", PENDING, None)]

    on(tmp_path, work)


def test_another_process_finds_open_attempts_in_the_records(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("old")
        now.now += 2 * attempts_module.FOLLOWED_SECONDS
        await now.claimed("one", "a", "b")
        await now.restart()
        now.now += attempts_module.SEARCH_SECONDS
        await now.attempts.search()
        assert now.attempts.open == 0
        now.now += 1.0
        await now.attempts.search()
        assert now.attempts.open == 1
        for name in ("one", "old"):
            placed(now.cloud, name, "cell1", "b", launched_at=EPOCH)
            built_by(now.cloud, name, "a", "b")
        assert await now.ends("one") == [("a", FAILED, RESCHEDULED), ("b", BUILT, None)]
        assert await now.ends("old") == [("a", PENDING, None)]

    on(tmp_path, work)


def test_attempts_in_memory_are_bounded_and_grow_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(now: Followed) -> None:
        monkeypatch.setattr(attempts_module, "MOST_OPEN", 2)
        for name in ("one", "two", "three"):
            requested(now.cloud, name)
            await now.claimed(name)
        assert now.attempts.open == 2
        now.now += attempts_module.FOLLOWED_SECONDS
        await now.ends("one")
        assert now.attempts.open == 0

    on(tmp_path, work)


def test_cell_that_does_not_answer_leaves_its_attempts_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("one")
        placed(now.cloud, "one", "cell1", "a", launched_at=EPOCH)
        built_by(now.cloud, "one", "a")

        async def lost(*_: object, **__: object) -> object:
            raise DatabaseUnavailable("gone")

        database = now.cells.cells[cell_uuid("cell1")].database
        with monkeypatch.context() as patched:
            patched.setattr(database, "read", lost)
            assert await now.ends("one") == [("a", PENDING, None)]
        assert await now.ends("one") == [("a", BUILT, None)]

    on(tmp_path, work)


def test_attempt_that_ends_otherwise_is_followed_no_more(tmp_path: Path) -> None:
    async def work(now: Followed) -> None:
        await now.claimed("one")
        assert await now.records.flush(10.0)
        [found] = await now.records.backend.last(1)
        [attempt] = found.attempts
        now.records.put([], [msgspec.structs.replace(attempt, result=FAILED, reason="x", finished_at=2.0)])
        assert now.attempts.open == 0

    on(tmp_path, work)
