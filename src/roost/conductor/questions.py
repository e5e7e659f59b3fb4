"""Calls of conductors to the scheduler and placement, and the services that answer them in this process.

The scheduler and the placement that a service wraps may be clients over HTTP. Machines call the services by
the names `SCHEDULER` and `PLACEMENT`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from roost.ledger import Held
from roost.model.spec import Destination, RequestSpec, Selection
from roost.model.unread import UnreadKey
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.interface import Placement, Provider
from roost.process.context import Call, Service, UnknownService
from roost.process.logs import RequestIds, serving
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import Replacement

SCHEDULER = "scheduler"
PLACEMENT = "placement"


class SelectDestinations(Call[tuple[Destination, ...]], frozen=True):
    """Asks for a host for each instance, with its claim made, and for alternates.

    See `roost.scheduler.Scheduler.select_destinations`, whose errors it raises.
    """

    request: HostRequest


class ClaimAlternate(Call[Replacement], frozen=True, kw_only=True):
    """Asks for the claim of an instance to be swapped to its next alternate.

    See `roost.scheduler.Scheduler.use_alternate`, whose errors it raises.
    """

    spec: RequestSpec
    instance: str
    failed: Selection
    reason: str
    alternates: tuple[Selection, ...]
    run: str
    request_id: str


class AllocationsOf(Call[dict[str, Held]], frozen=True):
    """Asks for the allocations and generations of consumers; consumers that hold nothing are left out.

    Raises `PlacementError`.
    """

    consumers: tuple[str, ...]


class WriteConsumers(Call[None], frozen=True):
    """Writes the allocations of consumers, all or nothing. Raises `PlacementError`."""

    writes: tuple[ConsumerWrite, ...]


class FreeClaims(Call[None], frozen=True):
    """Frees all allocations of consumers, at any generation. Raises `PlacementError`."""

    consumers: tuple[str, ...]


class ProviderRoots(Call[dict[str, str]], frozen=True):
    """Asks for all providers, each with the root of its tree. Raises `PlacementError`."""


class TreeOf(Call[list[Provider]], frozen=True):
    """Asks for the providers of the tree of a provider; none if it is unknown. Raises `PlacementError`."""

    provider: str


class ProvidersIn(Call[frozenset[str]], frozen=True):
    """Asks for the providers in an aggregate. Raises `PlacementError`."""

    aggregate: str


class ConsumersOn(Call[frozenset[str]], frozen=True):
    """Asks for the consumers with allocations of a provider. Raises `NotFound`."""

    provider: str


class TraitsOf(Call[frozenset[str]], frozen=True):
    """Asks for the traits of a provider. Raises `NotFound`."""

    provider: str


class AlternateScheduler(Protocol):
    """A scheduler as a cell's conductor needs it: it only claims alternates."""

    async def use_alternate(
        self,
        spec: RequestSpec,
        instance: str,
        failed: Selection,
        reason: str,
        alternates: Sequence[Selection],
        *,
        run: str,
        request_id: str,
    ) -> Replacement:
        """Claim the next alternate of an instance in place of the host on which its build failed."""


class SchedulerLike(AlternateScheduler, Protocol):
    """A scheduler as conductors need it, such as `roost.scheduler.Scheduler`."""

    async def check_request(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """Check that a request can be served on some hosts, and return the keys that have no effect."""

    async def select_destinations(self, request: HostRequest) -> tuple[Destination, ...]:
        """Choose and claim hosts."""


def scheduler_service(scheduler: SchedulerLike) -> Service:
    """Return the service that answers a super conductor's calls with a scheduler."""

    async def answer(call: Call[Any]) -> Any:
        match call:
            case SelectDestinations(request):
                return await scheduler.select_destinations(request)
            case ClaimAlternate():
                return await use_alternate(scheduler, call)
        raise UnknownService(f"a scheduler is not asked for {call!r}")

    return answer


def alternates_service(alternates: AlternateScheduler) -> Service:
    """Return the service that answers the calls of a cell's conductor."""

    async def answer(call: Call[Any]) -> Any:
        if isinstance(call, ClaimAlternate):
            return await use_alternate(alternates, call)
        raise UnknownService(f"only alternates are asked for, not {call!r}")

    return answer


async def use_alternate(alternates: AlternateScheduler, call: ClaimAlternate) -> Replacement:
    """Answer a call; log lines meanwhile carry the id of its request."""
    with serving(RequestIds(call.request_id)):
        return await alternates.use_alternate(
            call.spec,
            call.instance,
            call.failed,
            call.reason,
            call.alternates,
            run=call.run,
            request_id=call.request_id,
        )


def placement_service(placement: Placement) -> Service:
    """Return the service that answers calls to placement."""

    async def answer(call: Call[Any]) -> Any:
        match call:
            case AllocationsOf(consumers):
                return await placement.holdings(consumers)
            case WriteConsumers(writes):
                return await placement.write_allocations(writes)
            case FreeClaims(consumers):
                return await placement.delete_allocations(consumers)
            case ProviderRoots():
                return await placement.provider_roots()
            case TreeOf(provider):
                return await placement.tree(provider)
            case ProvidersIn(aggregate):
                return await placement.providers_in_aggregate(aggregate)
            case ConsumersOn(provider):
                return await placement.consumers_on(provider)
            case TraitsOf(provider):
                return await placement.traits(provider)
        raise UnknownService(f"placement is not asked for {call!r}")

    return answer
