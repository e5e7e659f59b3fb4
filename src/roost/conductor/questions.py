"""What conductors ask the scheduler and placement, and the services that answer in this process or over HTTP.

Machines ask the services by the names `SCHEDULER` and `PLACEMENT`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from roost.ledger import Held
from roost.machine import Call, Service, UnknownService
from roost.model.spec import Destination, RequestSpec, Selection
from roost.model.unread import UnreadKey
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.interface import Placement, Provider
from roost.process.logs import RequestIds, serving
from roost.scheduler.selection.replacement import Replacement

SCHEDULER = "scheduler"
PLACEMENT = "placement"

NO_GENERATIONS: Mapping[str, int] = MappingProxyType({})
"""All instances of a request are new."""


class SelectDestinations(Call[tuple[Destination, ...]], frozen=True, kw_only=True):
    """Asks for a claimed host for each instance, and alternates.

    As `roost.scheduler.Scheduler.select_destinations`, whose errors it raises.
    """

    spec: RequestSpec
    instances: tuple[str, ...]
    num_alternates: int
    min_count: int
    request_id: str
    global_request_id: str | None = None
    generations: Mapping[str, int] = NO_GENERATIONS


class UseAlternate(Call[Replacement], frozen=True, kw_only=True):
    """Asks for the claim of an instance to be swapped to its next alternate.

    As `roost.scheduler.Scheduler.use_alternate`, whose errors it raises.
    """

    spec: RequestSpec
    instance: str
    failed: Selection
    reason: str
    alternates: tuple[Selection, ...]
    run: str
    request_id: str


class AllocationsOf(Call[dict[str, Held]], frozen=True):
    """Asks what consumers hold, and their generations, of those that hold something.

    Raises `PlacementError`.
    """

    consumers: tuple[str, ...]


class WriteAllocations(Call[None], frozen=True):
    """Writes the allocations of consumers, all or nothing. Raises `PlacementError`."""

    writes: tuple[ConsumerWrite, ...]


class FreeConsumers(Call[None], frozen=True):
    """Frees all that consumers hold, at whatever generation. Raises `PlacementError`."""

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
    """Asks which consumers hold something of a provider. Raises `NotFound`."""

    provider: str


class TraitsOf(Call[frozenset[str]], frozen=True):
    """Asks for the traits of a provider. Raises `NotFound`."""

    provider: str


class Alternates(Protocol):
    """The use of alternates, which is all that a cell's conductor asks of a scheduler."""

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
        """Claim the next alternate of an instance in place of the host that failed it."""


class SchedulerLike(Alternates, Protocol):
    """What conductors ask of a scheduler; `roost.scheduler.Scheduler` has it."""

    async def check_request(self, spec: RequestSpec) -> tuple[UnreadKey, ...]:
        """Check that a request can be served on some hosts, and return the keys that have no effect."""

    async def select_destinations(
        self,
        spec: RequestSpec,
        count: int,
        num_alternates: int,
        *,
        instances: Sequence[str],
        min_count: int,
        request_id: str,
        global_request_id: str | None,
        generations: Mapping[str, int],
    ) -> tuple[Destination, ...]:
        """Choose and claim hosts."""


def scheduler_service(scheduler: SchedulerLike) -> Service:
    """The service that answers with a scheduler."""

    async def answer(question: Call[Any]) -> Any:
        match question:
            case SelectDestinations():
                return await scheduler.select_destinations(
                    question.spec,
                    len(question.instances),
                    question.num_alternates,
                    instances=question.instances,
                    min_count=question.min_count,
                    request_id=question.request_id,
                    global_request_id=question.global_request_id,
                    generations=question.generations,
                )
            case UseAlternate():
                return await use_alternate(scheduler, question)
        raise UnknownService(f"a scheduler is not asked for {question!r}")

    return answer


def alternates_service(alternates: Alternates) -> Service:
    """The service that answers a cell's conductor."""

    async def answer(question: Call[Any]) -> Any:
        if isinstance(question, UseAlternate):
            return await use_alternate(alternates, question)
        raise UnknownService(f"only alternates are asked for, not {question!r}")

    return answer


async def use_alternate(alternates: Alternates, question: UseAlternate) -> Replacement:
    """Answer a question; log lines meanwhile carry the id of its request."""
    with serving(RequestIds(question.request_id)):
        return await alternates.use_alternate(
            question.spec,
            question.instance,
            question.failed,
            question.reason,
            question.alternates,
            run=question.run,
            request_id=question.request_id,
        )


def placement_service(placement: Placement) -> Service:
    """The service that answers with a placement service."""

    async def answer(question: Call[Any]) -> Any:
        match question:
            case AllocationsOf(consumers):
                return await placement.holdings(consumers)
            case WriteAllocations(writes):
                return await placement.write_allocations(writes)
            case FreeConsumers(consumers):
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
        raise UnknownService(f"placement is not asked for {question!r}")

    return answer
