"""Placement as a run read it over HTTP: gives the same responses again, from the history of the ledger."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from roost.ledger import Held, Moment, State
from roost.ledger.past_fleet import HistoryMissing
from roost.model.assignment import Assignment
from roost.model.change import AllocationsChanged
from roost.model.record import PlacementRead
from roost.model.request import CandidateQuery
from roost.placement.candidates_on import first_candidates, page_of_candidates
from roost.placement.client.bodies import FetchedPage, needs_v1, refused_write
from roost.placement.client.http import NODES_AT_ONCE
from roost.placement.client.query import beyond_placement
from roost.placement.client.transport import ResponseMoments
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.errors import BadRequest, PlacementError, error_for
from roost.placement.http.conventions import detail_of
from roost.placement.interface import AllocationRequest, Provider, ProviderSummary
from roost.scheduler.replay.histories import FleetHistory


class Diverged(Exception):
    """A decision that is made again reads something else from placement than the recorded one."""

    def __init__(self, recorded: str, again: str) -> None:
        super().__init__(f"the run asked {recorded} then, and asks {again} now")
        self.recorded = recorded
        self.again = again


class PastPlacement:
    """Gives a run the responses that it had from placement over HTTP.

    ``told``: the reads that `roost.scheduler.gateways.recording_placement` recorded, in order. ``arrive``
    moves the node table to a version, after each response. ``held``: the consumers that held something
    before the run. No change remains afterwards.
    """

    def __init__(
        self,
        fleet: FleetHistory,
        told: Sequence[PlacementRead],
        now: float,
        arrive: Callable[[int | None], Awaitable[None]],
        held: Mapping[str, Held] = {},
    ) -> None:
        self._held = dict(held)
        self._fleet = fleet
        self._told = iter(told)
        self._now = now
        self._arrive = arrive
        self._heard: ResponseMoments = []
        self._diverged: Diverged | None = None

    def noting(self, moments: ResponseMoments) -> "PastPlacement":
        self._heard = moments
        return self

    async def candidates(
        self, query: CandidateQuery, limit: int | None = None
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]:
        told = self._next("candidates")
        fleet = await self._fleet.at(told.versions[0])
        try:
            if beyond_placement(query) is None:
                page = await first_candidates(fleet, query, limit)
            else:
                page = await page_of_candidates(fleet, query, limit, 0)
        except BadRequest as error:
            raise _reported(error) if beyond_placement(query) is None else error from error
        finally:
            await self._went_on(told)
        return page.requests, page.summaries

    async def candidate_page(
        self, query: CandidateQuery, limit: int, cursor: str | None
    ) -> FetchedPage | None:
        told = self._next("candidate_page")
        fleet = await self._fleet.at(told.versions[0])
        try:
            return await page_of_candidates(fleet, query, limit, int(cursor or "0"))
        finally:
            await self._went_on(told)

    async def knows_groups(self) -> bool:
        # The process read this once in its life. A service without groups names no versions.
        await self._went_on(self._next("knows_groups"))
        return True

    async def group_members(self, group: str) -> dict[str, list[str]] | None:
        told = self._next("group_members")
        fleet = await self._fleet.at(told.versions[0])
        members = {
            consumer: [fleet.uuid(row) for row in hosts]
            for consumer, hosts in sorted(fleet.groups.members(group).items())
        }
        await self._went_on(told)
        return members

    async def assignments(self, nodes: Sequence[str]) -> dict[str, dict[str, Assignment]] | None:
        told = self._next("assignments")
        found: dict[str, dict[str, Assignment]] = {}
        versions = told.versions[-max(1, -(-len(nodes) // NODES_AT_ONCE)) :]
        for place, version in enumerate(versions):
            fleet = await self._fleet.at(version)
            for node in nodes[place * NODES_AT_ONCE : (place + 1) * NODES_AT_ONCE]:
                found[node] = dict(sorted(fleet.assigned.on(node).items()))
        await self._went_on(told)
        return found

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        told = self._next("write_allocations")
        version = told.versions[-1]
        fleet = await self._fleet.at(version)
        after = await self._fleet.next_changes(version)
        if told.position and (after is None or len(after) < told.position):
            raise HistoryMissing(
                f"commit {version + 1} has no {told.position} changes: the ledger was restored since"
            )
        state = State(fleet, self._held.copy(), self._now)
        written: dict[str, Held | None] = {}
        try:
            for change in list(after or ())[: told.position]:
                state.apply(change)
            state.name(write.consumer for write in writes)
            write_allocations(state, writes)
            written = {write.consumer: state.held(write.consumer) for write in writes}
        except PlacementError as error:
            raise refused_write(error if any(map(needs_v1, writes)) else _reported(error)) from error
        finally:
            state.take_back(0)
            await self._went_on(told)
        now = {**self._held, **written}
        self._held = {consumer: held for consumer, held in now.items() if held is not None}
        made = {change.consumer for change in after or () if isinstance(change, AllocationsChanged)}
        if not made.issuperset(write.consumer for write in writes):
            raise HistoryMissing(
                f"commit {version + 1} does not have the claims of the run: the ledger was restored from a "
                "backup since, or its commits are of another database"
            )

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        for consumer in consumers:
            self._held.pop(consumer, None)
        await self._went_on(self._next("delete_allocations"))

    async def provider(self, uuid: str) -> Provider | None:
        told = self._next("provider")
        fleet = await self._fleet.at(told.versions[0])
        row = fleet.find_row(uuid)
        found = None if row < 0 else Provider(uuid, fleet.name(row), 0, None, uuid)
        await self._went_on(told)
        return found

    async def allocations_of(self, consumer: str) -> Held | None:
        raise self._other("allocations_of")

    async def tree(self, uuid: str) -> list[Provider]:
        raise self._other("tree")

    async def aggregates(self, provider: str) -> frozenset[str]:
        raise self._other("aggregates")

    async def traits(self, provider: str) -> frozenset[str]:
        raise self._other("traits")

    async def consumers_on(self, provider: str) -> frozenset[str]:
        raise self._other("consumers_on")

    def end(self) -> None:
        """Check that the run has made all recorded reads. Raises: `Diverged`."""
        left = next(self._told, None)
        if left is not None:
            raise Diverged(left.call, "nothing")

    def _next(self, call: str) -> PlacementRead:
        if self._diverged is not None:
            raise self._diverged
        told = next(self._told, None)
        if told is None or told.call != call:
            self._diverged = Diverged("nothing" if told is None else told.call, call)
            raise self._diverged
        return told

    def _other(self, call: str) -> Diverged:
        """Return the error for a read that only failed runs make, or runs at a service without versions."""
        self._diverged = self._diverged or Diverged("nothing", call)
        return self._diverged

    async def _went_on(self, told: PlacementRead) -> None:
        self._heard += [Moment(version, told.position) for version in told.versions]
        await self._arrive(told.node_version)


def _reported(error: PlacementError) -> PlacementError:
    """Return an error of placement as a client of the Placement API reads it."""
    return error_for(error.status, error.code, detail_of(error))
