"""Runs a workload through a whole system, one bin after another."""

import asyncio
import heapq
import random
import resource
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from roost.agent.drivers.simulated import SimulatedHost, SimulatedProvider
from roost.bench.replay.occupancy import occupancy_of
from roost.bench.replay.state import SPREAD_PERCENTILES, ReplayState, save_state
from roost.bench.replay.summary import Latency, Summary
from roost.bench.replay.workload import Bin, Host, Workload, WorkloadRequest
from roost.fleet import Fleet
from roost.fleet.utilisation import class_uses
from roost.model.aggregate import HostAggregate
from roost.model.instance import ACTIVE, BuildRequest
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.spec import RequestSpec, ServerGroup
from roost.server.all_in_one.layout import LayoutHost, SystemLayout, cell_names
from roost.server.all_in_one.system import System
from roost.state.api_database.cell_mappings import CELL0

USER = "replay"
"""The user id of all requests."""


def layout_of(workload: Workload, cells: int) -> SystemLayout:
    """Return the layout of a workload's hosts. Hosts without a cell are distributed over the cells."""
    names = cell_names(cells)
    dealt: dict[str, list[LayoutHost]] = {name: [] for name in names}
    for number, host in enumerate(workload.hosts):
        index = number if host.cell is None else host.cell
        dealt[names[index % cells]].append(_simulated(host))
    return SystemLayout({name: tuple(there) for name, there in dealt.items()})


class WorkloadReplay:
    """A run of a workload on a system, from the next bin of ``state``.

    Args:
        workload: the hosts and requests.
        system: an open system with the layout of the workload's hosts.
        state: the saved state, which is updated after each bin.
        seed: determines the uuids of instances and requests.
        speed: virtual seconds for each second of wall time; None runs as fast as possible.
    """

    def __init__(
        self,
        workload: Workload,
        system: System,
        state: ReplayState,
        seed: int,
        speed: float | None = None,
    ) -> None:
        self.state = state
        self._workload = workload
        self._system = system
        self._seed = seed
        self._speed = speed
        self._departures: list[tuple[int, str]] = []
        self._seconds = 0.0

    async def run(self, on_bin: Callable[[int], None] = lambda _: None) -> Summary:
        """Run all bins that are left; call ``on_bin`` with the number of finished bins after each.

        Raises:
            ReplayError: the state cannot be saved.
        """
        await self._system.settle()
        started = time.perf_counter()
        requests = self._requests()
        first = self.state.next_bin
        for number, bin_ in enumerate(self._workload.bins):
            arriving = [next(requests) for _ in bin_.requests]
            leaving = self._leaving(bin_.start)
            if number < first:
                self._will_depart(arriving, bin_)
                continue
            await self._pace(bin_.start - self._workload.bins[first].start, started)
            await self._depart(leaving)
            asking = await self._not_accepted(arriving) if number == first else arriving
            await self._arrive(asking, bin_, arriving)
            self._will_depart(arriving, bin_)
            self.state.next_bin = number + 1
            save_state(self._system.directory, self.state)
            on_bin(number + 1)
        self._seconds = time.perf_counter() - started
        self.state.finished = True
        save_state(self._system.directory, self.state)
        return self._summary()

    async def _pace(self, seconds: int, started: float) -> None:
        """Wait until ``seconds`` of virtual time have passed since this run started."""
        if self._speed is not None:
            due = started + seconds / self._speed
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))

    def _leaving(self, second: int) -> list[str]:
        """Remove and return the instances that depart at or before ``second``."""
        leaving = []
        while self._departures and self._departures[0][0] <= second:
            leaving.append(heapq.heappop(self._departures)[1])
        return leaving

    async def _depart(self, leaving: Sequence[str]) -> None:
        if leaving:
            await self._system.super_conductor.delete(leaving)
            await self._system.settle()
            self.state.counts.departed += len(leaving)

    async def _arrive(
        self, asking: Sequence[BuildRequest], bin_: Bin, arriving: Sequence[BuildRequest]
    ) -> None:
        """Submit ``asking``, wait until the system is settled, and count the outcomes of ``arriving``."""
        accept = self._system.super_conductor.accept
        await asyncio.gather(*(accept(request) for request in asking))
        await self._system.settle()
        counts = self.state.counts
        before = counts.placed, counts.refused, counts.failed, counts.on_alternate
        uuids = [instance for request in arriving for instance in request.instances]
        for name, cell in self._system.cells.items():
            for outcome in await cell.outcomes(uuids):
                if name == CELL0:
                    cause = _cause(outcome.reason or "")
                    counts.refusals[cause] = counts.refusals.get(cause, 0) + 1
                elif outcome.state == ACTIVE:
                    counts.placed += 1
                    counts.on_alternate += outcome.attempt > 1
                else:
                    counts.failed += 1
        fleet = await self._system.ledger.current()
        self.state.samples.add(
            bin_.start,
            {
                use.resource_class: use.used / use.capacity if use.capacity else 0.0
                for use in class_uses(fleet)
            },
            _spread(fleet),
            placed=counts.placed - before[0],
            refused=counts.refused - before[1],
            failed=counts.failed - before[2],
            on_alternate=counts.on_alternate - before[3],
            occupancy=occupancy_of(fleet),
        )

    async def _not_accepted(self, arriving: Sequence[BuildRequest]) -> list[BuildRequest]:
        """Return the requests that were not accepted before an interruption. The others are settled."""
        known = await self._system.requests.cells_of([request.instances[0] for request in arriving])
        return [request for request in arriving if request.instances[0] not in known]

    def _will_depart(self, arriving: Sequence[BuildRequest], bin_: Bin) -> None:
        for request, wanted in zip(arriving, bin_.requests, strict=True):
            for instance, at in zip(request.instances, wanted.departures, strict=True):
                if at is not None:
                    heapq.heappush(self._departures, (at, instance))

    def _requests(self) -> Iterator[BuildRequest]:
        """Yield every request in order, with uuids that depend on the seed."""
        draw = random.Random(self._seed)
        for bin_ in self._workload.bins:
            for request in bin_.requests:
                yield BuildRequest(
                    request_id=f"req-{_uuid(draw)}",
                    spec=_spec(request, draw),
                    instances=tuple(_uuid(draw) for _ in range(request.count)),
                    min_count=1,
                )

    def _summary(self) -> Summary:
        timings = self._system.gateway
        return Summary(
            workload=self._workload.name,
            hosts=self._system.layout.hosts,
            cells=len(self._system.layout.cells),
            requests=self._workload.requests,
            asked=self._workload.instances,
            placed=self.state.counts.placed,
            placed_on_alternate=self.state.counts.on_alternate,
            failed=self.state.counts.failed,
            refusals=self.state.counts.refusals,
            departures=self.state.counts.departed,
            decisions=timings.instances,
            wall_seconds=self._seconds,
            peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            peak_use={name: max(shares) for name, shares in self.state.samples.shares.items()},
            decision=Latency.of(timings.decisions),
            claim=Latency.of(timings.claims),
            seed=self._seed,
        )


def _simulated(host: Host) -> LayoutHost:
    shape = host.shape
    return LayoutHost(
        SimulatedHost(
            name=host.name,
            inventory={name: Inventory(total) for name, total in shape.resources.items()},
            children=tuple(
                SimulatedProvider(
                    child.suffix,
                    {name: Inventory(total) for name, total in child.resources.items()},
                    child.traits,
                )
                for child in shape.children
            ),
            traits=shape.traits,
        ),
        tuple(
            HostAggregate(provider_uuid(f"aggregate {part.name}"), part.name, part.metadata)
            for part in host.aggregates
        ),
    )


def _spec(request: WorkloadRequest, draw: random.Random) -> RequestSpec:
    group = None
    if request.group_policy is not None:
        group = ServerGroup(_uuid(draw), request.group_policy)
    return RequestSpec(
        project_id=request.project_id,
        user_id=USER,
        flavor=request.flavor,
        availability_zone=request.availability_zone,
        group=group,
        requested_resources=request.requested_resources,
        required_traits=request.required_traits,
    )


def _uuid(draw: random.Random) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))


def _spread(fleet: Fleet) -> dict[str, tuple[float, ...]]:
    """Return the share in use on the hosts at `SPREAD_PERCENTILES` of each resource class."""
    roots = np.unique(fleet.roots(fleet.rows()))
    spread = {}
    for name in sorted(fleet.inventoried_classes()):
        capacity, used = fleet.tree_totals(name, roots)
        there = capacity > 0
        shares = used[there] / capacity[there] if there.any() else np.zeros(1)
        spread[name] = tuple(np.percentile(shares, SPREAD_PERCENTILES).tolist())
    return spread


def _cause(reason: str) -> str:
    """Return a reason without its numbers, so that equal reasons can be counted."""
    if " instances fit" in reason:
        return "fewer hosts than instances"
    return reason.removeprefix("No valid host was found: ")
