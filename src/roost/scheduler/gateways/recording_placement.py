"""Wraps the placement client for one run, and records the ledger version of each response.

Roost's placement names with each response the state it was made on. Together with the versions of the node
table in between, a decision over HTTP depends on nothing else, and the record of the run has them (see ADR
16).
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from roost.ledger import Held
from roost.model.assignment import Assignment
from roost.model.record import PlacementRead
from roost.model.request import CandidateQuery
from roost.placement.client.bodies import FetchedPage
from roost.placement.client.transport import ResponseMoments
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.interface import AllocationRequest, Provider, ProviderSummary
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest

T = TypeVar("T")


class RunPlacement(Protocol):
    """The calls of a run to placement; `roost.placement.client.HttpPlacement` has the contracts."""

    async def candidates(
        self, query: CandidateQuery, limit: int | None = None
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]: ...

    async def candidate_page(
        self, query: CandidateQuery, limit: int, cursor: str | None
    ) -> FetchedPage | None: ...

    async def knows_groups(self) -> bool: ...

    async def group_members(self, group: str) -> dict[str, list[str]] | None: ...

    async def assignments(self, nodes: Sequence[str]) -> dict[str, dict[str, Assignment]] | None: ...

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None: ...

    async def delete_allocations(self, consumers: Sequence[str]) -> None: ...

    async def allocations_of(self, consumer: str) -> Held | None: ...

    async def provider(self, uuid: str) -> Provider | None: ...

    async def tree(self, uuid: str) -> list[Provider]: ...

    async def aggregates(self, provider: str) -> frozenset[str]: ...

    async def traits(self, provider: str) -> frozenset[str]: ...

    async def consumers_on(self, provider: str) -> frozenset[str]: ...


class PlacementOverHttp(RunPlacement, Protocol):
    """A placement service whose responses name the versions that they were made on, if it is Roost's."""

    def noting(self, moments: ResponseMoments) -> RunPlacement: ...


class RecordingPlacement:
    """Calls placement for one run, and records its reads (`RunPlacement`).

    Each record has the version of placement's state and the version of the node table with which the run
    continues, so the heartbeats are read before it.
    """

    def __init__(self, placement: PlacementOverHttp, request: SchedulingRequest, table: NodeTable) -> None:
        self._heard: ResponseMoments = []
        self._placement = placement.noting(self._heard)
        self._oldest = request.oldest_heartbeat
        self._table = table
        self._reads: list[PlacementRead] = []
        self.complete = not request.options.host_list_seconds
        table.seen_since(self._oldest)
        self.began_at = table.version

    @property
    def reads(self) -> tuple[PlacementRead, ...]:
        """The reads of the run; empty if they are not all that it was decided on.

        That is the case with a service that names no version, and with answers that are cached from run to
        run.
        """
        return tuple(self._reads) if self.complete else ()

    @property
    def judged_on(self) -> int | None:
        """The version that the last claim was judged on, None if that is not known."""
        return self._reads[-1].versions[-1] if self._reads and self._reads[-1].versions else None

    async def candidates(
        self, query: CandidateQuery, limit: int | None = None
    ) -> tuple[list[AllocationRequest], dict[str, ProviderSummary]]:
        return await self._noted("candidates", self._placement.candidates(query, limit))

    async def candidate_page(
        self, query: CandidateQuery, limit: int, cursor: str | None
    ) -> FetchedPage | None:
        return await self._noted("candidate_page", self._placement.candidate_page(query, limit, cursor))

    async def knows_groups(self) -> bool:
        return await self._noted("knows_groups", self._placement.knows_groups())

    async def group_members(self, group: str) -> dict[str, list[str]] | None:
        return await self._noted("group_members", self._placement.group_members(group))

    async def assignments(self, nodes: Sequence[str]) -> dict[str, dict[str, Assignment]] | None:
        return await self._noted("assignments", self._placement.assignments(nodes))

    async def write_allocations(self, writes: Sequence[ConsumerWrite]) -> None:
        await self._noted("write_allocations", self._placement.write_allocations(writes))

    async def delete_allocations(self, consumers: Sequence[str]) -> None:
        await self._noted("delete_allocations", self._placement.delete_allocations(consumers))

    async def allocations_of(self, consumer: str) -> Held | None:
        return await self._noted("allocations_of", self._placement.allocations_of(consumer))

    async def provider(self, uuid: str) -> Provider | None:
        return await self._noted("provider", self._placement.provider(uuid))

    async def tree(self, uuid: str) -> list[Provider]:
        return await self._noted("tree", self._placement.tree(uuid))

    async def aggregates(self, provider: str) -> frozenset[str]:
        return await self._noted("aggregates", self._placement.aggregates(provider))

    async def traits(self, provider: str) -> frozenset[str]:
        return await self._noted("traits", self._placement.traits(provider))

    async def consumers_on(self, provider: str) -> frozenset[str]:
        return await self._noted("consumers_on", self._placement.consumers_on(provider))

    async def _noted(self, call: str, answer: Awaitable[T]) -> T:
        first = len(self._heard)
        try:
            return await answer
        finally:
            moments = self._heard[first:]
            known = [each for each in moments if each is not None]
            self.complete = self.complete and len(known) == len(moments)
            self._table.seen_since(self._oldest)
            position = known[-1].position if known else 0
            versions = tuple(each.version for each in known)
            self._reads.append(PlacementRead(call, versions, position, self._table.version))
