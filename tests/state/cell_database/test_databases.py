"""A cell and the conductor's tables do the same on every database."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    GONE,
    BuildRequest,
    BuildResult,
    Fault,
    Instance,
    Requester,
)
from roost.model.node import NodeReport
from roost.model.spec import Flavor, RequestSpec, Selection
from roost.model.text import clean_text
from roost.state.api_database.build_requests import (
    AcceptRequest,
    FinishRequest,
    MapInstances,
    RequestKey,
    find_free_requests,
    take_requests,
)
from roost.state.api_database.cell_mappings import at_urls, mapped_cells
from roost.state.api_database.mappings import DeleteMapped, forget_instances, page_of_mappings
from roost.state.api_database.past import AcceptedDeletion, KnownInstance, find_known, prune_past_mappings
from roost.state.api_database.request_reads import Requests
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.history import prune_past, read_history
from roost.state.cell_database.nodes import read_signs
from roost.storage import Database
from support.databases import Place
from support.driven_cell import DrivenCell
from support.upgrading import upgrade_empty

LONG = "x" * 100_000
"""More than MariaDB's TEXT holds."""


def using(place: Place, use: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(place.url)
        upgrade_empty(SCHEMA, database)
        upgrade_empty(CONDUCTOR, database)
        try:
            await use(database)
        finally:
            await database.close()

    asyncio.run(run())


def instance(uuid: str, state: str = ASSIGNED, host: str | None = "host-1") -> Instance:
    return Instance(
        uuid=uuid,
        request_id="request",
        run="run",
        project_id="project",
        user_id="user",
        flavor="m1.small",
        state=state,
        host=host,
        node=None if host is None else f"node of {host}",
        attempt=1,
        alternates=(),
        reason=None,
    )


def test_instances_go_their_way(place):
    async def use(database: Database) -> None:
        cell = DrivenCell("cell1", database, lambda: 5.0)
        await cell.add([instance("a"), instance("A"), instance("b"), instance("c", ERROR, None)])
        await cell.add([instance("a", ERROR)])
        assert (await cell.find(["a", "none"])) == {"a": instance("a")}
        assert await cell.unsettled() == 3
        failed = BuildResult("A", "host-1", 1, LONG)
        for _ in range(2):
            await cell.report([BuildResult("a", "host-1", 1), failed])
        assert [each.state for each in (await cell.find(["a", "A"])).values()].count(ACTIVE) == 1
        assert (await cell.find(["A"]))["A"].state == FAILED
        assert await cell.faults_of("A") == [Fault("A", 1, "host-1", clean_text(LONG), 5.0)]
        assert await cell.faults_of("a") == []
        selection = Selection("host-2", "node of host-2", "cell1", {}, {}, 1.0)
        await cell.reassign("A", 1, selection, [selection] * 5)
        moved = (await cell.find(["A"]))["A"]
        assert (moved.host, moved.attempt, moved.state, len(moved.alternates)) == ("host-2", 2, ASSIGNED, 5)
        await cell.report([BuildResult("A", "host-2", 2, "no")])
        await cell.abandon("A", 2, LONG)
        await cell.give_up(["A"])
        assert (await cell.find(["A"]))["A"].reason == clean_text(LONG)
        await cell.delete(["a", "c"])
        assert {each.uuid for each in await cell.in_state(DELETING, host="host-1")} == {"a"}
        await cell.destroyed([instance("a")])
        assert {each.uuid for each in await cell.in_state(DESTROYED)} == {"a", "c"}
        await cell.forget(["a", "c", "b"])
        assert {each.uuid for each in await cell.every("request")} == {"A", "b"}
        for uuid, states in (
            ("a", [ASSIGNED, ACTIVE, DELETING, DESTROYED, GONE]),
            ("A", [ASSIGNED, FAILED, ASSIGNED, FAILED, ABANDONED, ERROR]),
            ("c", [ERROR, DELETING, DESTROYED, GONE]),
        ):
            history = await cell.read(read_history(uuid))
            assert history is not None
            assert [each.state for each in history.transitions] == states
            assert history.complete
        assert await cell.write(prune_past(5.0)) == 0
        assert await cell.write(prune_past(6.0)) == 2
        assert await cell.read(read_history("c")) is None

    using(place, use)


def test_hosts_report(place):
    async def use(database: Database) -> None:
        cell = DrivenCell("cell1", database)
        first = NodeReport(host="host-1", node="n1", cell="cell1", metrics={"cpu.percent": 0.5})
        second = NodeReport(host="Host-1", node="n2", cell="cell1", failed_builds=3)
        await cell.heartbeat([first, second])
        later = msgspec.structs.replace(first, enabled=False)
        await cell.heartbeat([later])
        await cell.heartbeat([later])
        assert sorted(await cell.nodes(), key=lambda each: each.node) == [later, second]
        assert (await cell.read(read_signs())).revisions == {"n1": 2, "n2": 1}

    using(place, use)


def test_requests_wait_until_they_are_finished(place):
    async def use(database: Database) -> None:
        times = iter([2.0, 1.0, 3.0])
        requests = Requests(database)
        spec = RequestSpec(project_id="p", user_id="u", flavor=Flavor("f", 1, 1, 1, {"key": LONG}))
        made = [
            BuildRequest(request_id=name, spec=spec, instances=(f"i{name}",), min_count=1)
            for name in ("one", "ONE")
        ]
        for request in (*made, made[0]):
            await database.write(AcceptRequest(request, next(times), "A"))
        assert [each async for each in requests.waiting()] == made[::-1]
        for url in ("here", "there", "there"):
            await requests.map_cells({"cell1": url, "Cell1": url})
        mapped = database.read_now(mapped_cells)
        assert set(mapped.values()) == set(at_urls({"cell1": "there", "Cell1": "there"}))
        [free] = [key for key in await database.read(find_free_requests("B", 10)) if key.request_id == "one"]
        [owned] = (await database.write(take_requests((free,), "B"))).owned
        assert await database.write(MapInstances("one", "A", 1, {"ione": "cell1"})) is None
        assert await database.write(MapInstances(*owned.key, {"ione": "Cell1"})) == {"ione"}
        assert not await database.write(FinishRequest(RequestKey("one", "A", 1)))
        assert await database.write(FinishRequest(owned.key))
        assert [each async for each in requests.waiting()] == made[1:]
        assert await requests.cells_of(["ione", "iONE", "none"]) == {"ione": "Cell1"}
        await database.write(DeleteMapped(("ione",), 1.0, "B", Requester("uma", "q", "req-2")))
        await database.write(forget_instances(("ione",), 9.0))
        assert [each.instance_uuid for each in await requests.page(page_of_mappings(most=9))] == ["iONE"]
        assert await database.read(find_known("ione")) == KnownInstance(
            uuid="ione",
            cell="Cell1",
            request_id="one",
            project_id="p",
            user_id="u",
            accepted_at=2.0,
            deletion=AcceptedDeletion(1.0, Requester("uma", "q", "req-2")),
            ended_at=9.0,
        )
        present = await database.read(find_known("iONE"))
        assert present is not None
        assert (present.accepted_at, present.deletion, present.ended_at) == (1.0, None, None)
        assert await database.write(prune_past_mappings(9.0)) == 0
        assert await database.write(prune_past_mappings(10.0)) == 1
        assert await database.read(find_known("ione")) is None

    using(place, use)
