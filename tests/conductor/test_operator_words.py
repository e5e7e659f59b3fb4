"""An operator's word counts when it is answered: in every scheduler, for every cell, whatever a cell does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.registry import HostRegistry
from roost.conductor.instances.types import InstancesQuery
from roost.conductor.instances.views import InstanceViews
from roost.ledger import Ledger
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.node import NodeReport
from roost.model.operator_word import Subject
from roost.model.spec import Flavor, RequestedDestination, RequestSpec, Selection
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.errors import NoAlternate, WordsInTheWay
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.feed import NodeFeed
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from roost.state.api_database.build_requests import AcceptRequest
from roost.state.api_database.operator_words import WordStore
from roost.state.cell_database.disabled import enable_host, read_flags
from support.conducting import HOSTS, NOW, Conductors, Memory, conducting, request


class Cloud:
    """Two schedulers, each with a ledger and a node table of its own. Nobody refreshes the tables."""

    def __init__(self, conductors: Conductors, second: Scheduler) -> None:
        self.conductors = conductors
        self.schedulers = (conductors.scheduler, second)
        self.alternates: tuple[Selection, ...] = ()
        api, cells, watch = conductors.ledger.database, conductors.cells, conductors.super.watch
        self.hosts = HostRegistry(api, cells, conductors.placement, watch, conductors.words)
        self.cells = CellRegistry(api, cells, watch, conductors.words)
        self.made = 0

    async def place(self, scheduler: int = 0, **spec: Any) -> str:
        """The host of one small instance."""
        return (await self.placed(scheduler, **spec)).host

    async def placed(self, scheduler: int = 0, alternates: int = 0, **spec: Any) -> Selection:
        """The selection of one small instance, whose claim is freed again by the next call."""
        if self.made:
            await self.conductors.placement.delete_allocations([f"p{self.made}"])
        self.made += 1
        [found] = await self.schedulers[scheduler].select_destinations(
            HostRequest(wanted(**spec), (f"p{self.made}",), alternates)
        )
        self.alternates = found.alternates
        return found.selected

    async def reached(self, **spec: Any) -> set[str]:
        """The hosts that requests for each host by its name reach, in either scheduler."""
        found = set()
        for scheduler in range(2):
            for host in HOSTS:
                there = RequestedDestination(host=host)
                try:
                    found.add(await self.place(scheduler, requested_destination=there, **spec))
                except NoValidHost:
                    continue
        return found


def wanted(**spec: Any) -> RequestSpec:
    return RequestSpec(project_id="project", user_id="user", flavor=Flavor("small", 1, 0), **spec)


@asynccontextmanager
async def cloud(directory: Path) -> AsyncIterator[Cloud]:
    async with conducting(directory) as conductors:
        ledger = await Ledger.open(conductors.ledger.database, lambda: NOW)
        table = NodeTable()
        feed = NodeFeed(conductors.cells.values(), table, source=WordStore(conductors.ledger.database))
        await feed.refresh()
        second = Scheduler(
            LocalGateway(ledger, HostPools(table)), Memory(), clock=lambda: NOW, words=feed.words
        )
        try:
            yield Cloud(conductors, second)
        finally:
            await ledger.close()


def stand_still(conductors: Conductors, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No work on a cell's database ends from now on, until its caller gives up."""

    async def never(work: object) -> None:
        await asyncio.Event().wait()

    for name in ("read", "write"):
        monkeypatch.setattr(conductors.cells[cell], name, never)


def test_disabled_host_gets_nothing_from_the_answer_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            assert await made.reached() == {*HOSTS}
            for host in "ad":
                said = await made.hosts.enable(host, False, "fan")
                assert said.described is not None
                assert (said.described.enabled, said.described.reason) == (False, "fan")
                assert await made.reached() == {*HOSTS} - {host}
                await made.hosts.enable(host, True)
                assert await made.reached() == {*HOSTS}, "it is used at once"

    asyncio.run(run())


def test_word_on_a_host_waits_for_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            for cell in ("cell1", "cell2"):
                stand_still(made.conductors, cell, monkeypatch)
            await made.conductors.words.say(Subject("cell2", "d"), False, "fan")
            assert await made.reached() == {*HOSTS} - {"d"}

    asyncio.run(run())


def test_nodes_and_cells_are_taken_away_and_given_back_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            node = await made.hosts.enable_node("b", "node-b", False, "disk")
            assert node.word is not None
            assert node.word.reason == "disk"
            assert await made.reached() == {*HOSTS} - {"b"}
            await made.cells.enable("cell2", False, "power")
            assert await made.reached() == {"a", "c"}
            assert (await made.hosts.enable_node("b", "node-b", True)).word is None
            await made.cells.enable("cell2", True)
            assert await made.reached() == {*HOSTS}

    asyncio.run(run())


def test_zones_count_at_once_also_without_the_mirror(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            aggregates = made.conductors.aggregates
            zone = await aggregates.create("zone", {AVAILABILITY_ZONE: "az1"})
            await aggregates.change_members(zone.uuid, ["a", "d"], [])
            for scheduler in made.schedulers:
                await scheduler.check_request(wanted(availability_zone="az1"))
            assert await made.reached(availability_zone="az1") == {"a", "d"}
            # A zone is left while nothing is there.
            await made.conductors.placement.delete_allocations([f"p{made.made}"])
            await aggregates.change_members(zone.uuid, ["e"], ["a"])
            assert await made.reached(availability_zone="az1") == {"d", "e"}
            await aggregates.change_members(zone.uuid, [], ["d", "e"])
            assert await made.reached(availability_zone="az1") == set()

    asyncio.run(run())


def test_flag_of_an_earlier_version_counts_until_the_next_word(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            cell = made.conductors.cells["cell1"]
            await cell.write(enable_host("a", False, "before the upgrade", NOW))
            await made.conductors.feed.refresh()
            with pytest.raises(NoValidHost):
                await made.place(requested_destination=RequestedDestination(host="a"))
            await made.hosts.enable("a", True)
            assert await made.place(requested_destination=RequestedDestination(host="a")) == "a"
            assert await cell.read(read_flags("cell1")) == frozenset(), "the flag follows"
            await made.hosts.enable("a", False, "fan")
            await made.conductors.words.mirror.heal()
            assert await cell.read(read_flags("cell1")) == {Subject("cell1", "a")}

    asyncio.run(run())


def test_trait_of_a_disabled_host_goes_with_the_word(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            await made.hosts.enable("a", False)
            # As its agent does once it has heard.
            await made.conductors.placement.set_traits("node-a", [DISABLED_TRAIT])
            await made.hosts.enable("a", True)
            assert await made.place(requested_destination=RequestedDestination(host="a")) == "a"

    asyncio.run(run())


def test_alternate_that_was_disabled_is_passed_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            for scheduler in range(2):
                failed = await made.placed(scheduler, 4)
                alternates = made.alternates
                assert alternates
                for each in alternates:
                    await made.hosts.enable(each.host, False)
                with pytest.raises(NoAlternate) as caught:
                    await made.schedulers[scheduler].use_alternate(
                        AlternateRequest(
                            wanted(),
                            f"p{made.made}",
                            failed,
                            tuple(alternates),
                            reason="no IP",
                            run="run",
                            request_id="req",
                        )
                    )
                assert {each.refusal for each in caught.value.tries} == {"the host is disabled"}
                for each in alternates:
                    await made.hosts.enable(each.host, True)

    asyncio.run(run())


def test_removed_host_begins_anew(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            words = made.conductors.words
            await words.say(Subject("cell1", "a"), False, "old")
            await words.say(Subject("cell1", "a", "node-a"), False, "old")
            assert await made.reached() == {*HOSTS} - {"a"}
            await words.store.withdraw("cell1", "a")
            await words.announce()
            assert await made.reached() == {*HOSTS}

    asyncio.run(run())


def test_word_that_the_feed_takes_in_is_one_that_came_during_a_run(tmp_path: Path) -> None:
    """Where claims are not conditional on words, a run that misses it keeps a host that was taken away."""

    async def run() -> None:
        async with cloud(tmp_path) as made:
            feed = made.conductors.feed
            before = feed.words.taken
            await made.hosts.enable("a", False)
            await feed.refresh()
            await feed.words.look()
            assert feed.words.concern(before, [Subject("cell1", "a", "node-a")])
            assert not feed.words.concern(before, [Subject("cell1", "b", "node-b")])

    asyncio.run(run())


def test_word_on_a_host_that_is_gone_flags_nothing_else_in_its_cell(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            words = made.conductors.words
            # As between the steps of the removal of a host.
            await words.say(Subject("cell1", "gone"), False, "it is being removed")
            await words.say(Subject("cell1", "gone", "node-gone"), False, "disk")
            await words.mirror.heal()
            assert await made.conductors.cells["cell1"].read(read_flags("cell1")) == frozenset()
            await made.conductors.feed.refresh()
            assert await made.reached() == {*HOSTS}

    asyncio.run(run())


def test_nothing_is_read_while_nobody_says_anything(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            reads: list[int | None] = []
            store = made.conductors.words.store
            changes: Callable[..., Any] = store.changes

            async def counted(after: int | None = None) -> Any:
                reads.append(after)
                return await changes(after)

            store.changes = counted  # type: ignore[method-assign]
            for _ in range(5):
                await made.place()
            assert not reads
            await made.hosts.enable("a", False)
            for _ in range(5):
                await made.place()
            assert len(reads) == 1
            assert reads != [None], "only what is new is read"

    asyncio.run(run())


def test_run_into_which_operators_speak_each_time_fails_to_be_tried_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            scheduler = made.schedulers[0]
            derive = scheduler._reader.derived

            async def interrupted(*arguments: Any, **named: Any) -> Any:
                derived = await derive(*arguments, **named)
                await made.conductors.words.announce()
                return derived

            scheduler._reader.derived = interrupted  # type: ignore[method-assign]
            with pytest.raises(WordsInTheWay):
                await made.place()
            assert await made.conductors.used() == 0

    asyncio.run(run())


def test_new_node_of_a_disabled_host_is_disabled(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            await made.hosts.enable("a", False)
            await made.place()
            cell = made.conductors.cells["cell1"]
            await cell.heartbeat([NodeReport(host="a", nodename="a2", node="node-a2", cell="cell1")])
            await made.conductors.feed.refresh()
            table = made.schedulers[0].table
            index = table.index_of_node("node-a2")
            assert index is not None
            assert not table.enabled[index]

    asyncio.run(run())


def test_drained_host_is_empty_only_when_no_claim_is_on_its_way(tmp_path: Path) -> None:
    async def run() -> None:
        async with cloud(tmp_path) as made:
            now = made.conductors
            views = InstanceViews(now.requests, now.cells, now.placement)
            there = RequestedDestination(host="a")
            await now.ledger.database.write(
                AcceptRequest(request(requested_destination=there), NOW, "somebody")
            )
            await made.schedulers[1].select_destinations(
                HostRequest(wanted(requested_destination=there), ("i0",))
            )
            await made.hosts.enable("a", False)
            page = await views.page(InstancesQuery(host="a"), None)
            assert [(each.uuid, each.state) for each in page.instances] == [("i0", "scheduling")]
            assert not (await views.page(InstancesQuery(host="b"), None)).instances
            await now.placement.delete_allocations(["i0"])
            assert not (await views.page(InstancesQuery(host="a"), None)).instances

    asyncio.run(run())
