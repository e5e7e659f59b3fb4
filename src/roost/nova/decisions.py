"""`NovaDecisions`: decides Nova's calls by the scheduler, and answers them as nova-scheduler does.

An instance of a call usually holds nothing. If it does, the claim is refused as a conflict, and the facts of
the instance tell which of three cases it is:

    its host is being evacuated, and it holds of that host ─▶ claimed beside what it holds
    no host has it, and it holds what this request asks for ─▶ the call came twice: the same answer, no claim
    anything else                                           ─▶ AllocationUpdateFailed: somebody has moved it

The facts are read only then, so that they cost usual calls nothing.

A caller gets no error but `NovaRefusal`: several of Nova's conductors leave an instance stuck on any other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, Protocol

import msgspec
import structlog

from roost.ledger import Held, LedgerError
from roost.model.allocation import KeptAllocations, total
from roost.model.spec import Destination, RequestSpec
from roost.nova.calls import NovaRefusal, SelectCall, no_valid_host
from roost.nova.instance_facts import InstanceFacts, InstanceSource, UnfinishedMigration
from roost.nova.networks import NetworksUnknown
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate, PlacementError
from roost.placement.interface import Placement
from roost.process.metrics import nova_bridge as metrics
from roost.records import RecordQueue
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.api.refusals import public_reason
from roost.scheduler.api.repeated import ClaimedBefore, recorded_claims, standing_claims
from roost.scheduler.api.wire.language import NovaLanguage
from roost.scheduler.api.wire.nova_selection import legacy_selection
from roost.scheduler.errors import BadRequestSpec, PlacementUnavailable, SchedulerError
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.pool.host_pool import OFFERED
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.claim_result import is_outage
from roost.storage import StorageError

PLACEMENT_AWAY = "Placement or a database does not answer the scheduler."
"""The reason of a refusal for want of a service, as Nova's users see it."""

NETWORKS_UNKNOWN = "The networks of the request cannot be read."
"""The reason of a refusal because of Neutron, as Nova's users see it."""

NOT_ENOUGH_HOSTS = "There are not enough hosts available."
"""Nova's own reason of a refusal, except where placement offers no host: then it gives none."""

BAD_REQUEST = "The request cannot be placed as it is."
"""The reason of a refusal of a request spec, as Nova's users see it."""

FAULT = "The scheduler could not decide the request."
"""The reason of a refusal by a fault, as Nova's users see it."""

RECORD_PAUSES = (0.25, 0.5, 1.0)
"""Seconds between the searches for the record of an earlier run, which another process may be writing."""

FLUSH_SECONDS = 5.0
"""Most seconds that the search for an earlier run in the records waits until they are written."""

_MOVED = "the instance holds allocations that this request does not explain: they may have been moved"

_log = structlog.get_logger()


class AnswerOptions(msgspec.Struct, frozen=True):
    """The options of answers.

    ``max_attempts``: hosts for each instance, alternates included. ``public_reasons``: refusals say why.
    ``default_zone``: the zone of hosts without one.
    """

    max_attempts: int = 3
    public_reasons: bool = True
    default_zone: str = "nova"


class KeptHosts(Protocol):
    """Keeps the node table up to date, as `roost.nova.feed.NovaFeed` does."""

    @property
    def changes(self) -> int:
        """A number that rises with each change of hosts that a decision may depend on."""

    async def look(self) -> None:
        """Take in what operators have said, as before each decision."""

    async def renew(self) -> None:
        """Bring the table up to date at once, as before a refusal."""


class NovaDecisions:
    """Decides calls of Nova; see `roost.nova.calls.DecideCall`.

    ``feed`` keeps the scheduler's node table. ``checked``: the scheduler's gateway itself takes in what
    operators say, before each run. ``filled`` returns a request spec with what the scheduler needs to know of
    its networks.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        placement: Placement,
        records: RecordQueue,
        instances: InstanceSource,
        options: AnswerOptions,
        feed: KeptHosts,
        *,
        checked: bool,
        filled: Callable[[RequestSpec], Awaitable[RequestSpec]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._placement = placement
        self._records = records
        self._instances = instances
        self._options = options
        self._feed = feed
        self._checked = checked
        self._filled = filled
        self._sleep = sleep
        self._language = NovaLanguage(scheduler.table)

    async def __call__(self, call: SelectCall) -> list[Any]:
        """Decide a call. Raises `NovaRefusal`."""
        started, outcome = perf_counter(), "failed"
        try:
            shown = self._shown(call, await self._decided(call))
            outcome = "placed"
            return shown
        except NoValidHost as error:
            outcome = "no_valid_host"
            words = public_reason(error) if self._options.public_reasons else _novas_words(error)
            raise no_valid_host(words) from error
        except (BadRequestSpec, ValueError) as error:
            outcome = "bad_request"
            self._log(call, error)
            raise no_valid_host(BAD_REQUEST) from error
        except NovaRefusal as refusal:
            outcome = "conflict"
            self._log(call, refusal)
            raise
        except NetworksUnknown as error:
            outcome = "unavailable"
            self._log(call, error)
            raise no_valid_host(NETWORKS_UNKNOWN) from error
        except (SchedulerError, PlacementError, LedgerError, StorageError) as error:
            away = isinstance(error, PlacementUnavailable | LedgerError | StorageError) or is_outage(error)
            outcome = "unavailable" if away else "failed"
            self._log(call, error)
            raise no_valid_host(PLACEMENT_AWAY if away else FAULT) from error
        finally:
            metrics.NOVA_CALLS.labels(outcome).inc()
            metrics.NOVA_CALL_DURATION.observe(perf_counter() - started)

    def _log(self, call: SelectCall, error: Exception) -> None:
        _log.warning(
            "a call of Nova is refused",
            instances=call.instances,
            request_id=call.request_id,
            error=str(error),
        )

    async def _decided(self, call: SelectCall) -> tuple[Destination, ...]:
        asked = self._language.read_spec(call.spec)
        spec = await self._filled(asked.spec)
        if not self._checked:
            await self._feed.look()
        request = HostRequest(
            spec,
            call.instances,
            self._options.max_attempts - 1 if call.alternates and call.objects else 0,
            request_id=call.request_id,
            global_request_id=call.global_request_id,
            held_by=await self._holders(call.instances) if spec.group is not None else {},
            of_nova=True,
        )
        try:
            return await self._selected(request)
        except ConcurrentUpdate as error:
            return await self._beside(request, error)

    async def _selected(self, request: HostRequest) -> tuple[Destination, ...]:
        """Decide a request, once more if Nova's databases say something new when no host is left.

        nova-scheduler reads all hosts for each request; the feed may be some seconds behind. Both runs are in
        the records.
        """
        before = self._feed.changes
        try:
            return await self._scheduler.select_destinations(request)
        except NoValidHost:
            await self._feed.renew()
            if self._feed.changes == before:
                raise
        return await self._scheduler.select_destinations(request)

    async def _holders(self, instances: Sequence[str]) -> Mapping[str, str]:
        """Return the migration that holds the claim of an instance on the host that it leaves, if one does.

        Several instances of a call are new ones.
        """
        if len(instances) > 1:
            return {}
        try:
            facts = await self._instances.facts(instances[0])
        except StorageError as error:
            # Most requests are boots, which other cells can serve. A move may be refused for want of it.
            _log.warning("the migration of an instance cannot be read", error=str(error))
            return {}
        return {} if facts is None or facts.holder is None else {instances[0]: facts.holder}

    async def _beside(self, request: HostRequest, conflict: ConcurrentUpdate) -> tuple[Destination, ...]:
        """Decide a request of which an instance holds something already."""
        held = await self._placement.holdings(request.instances)
        if not held:
            # Somebody else has made and freed a claim meanwhile.
            raise _moved(request.instances) from conflict
        facts = {name: await self._instances.facts(name) for name in held}
        if all(each is None or each.host is None for each in facts.values()):
            return await self._answered(request, await self._again(request, held, facts), held, facts)
        if len(request.instances) == 1:
            [instance] = request.instances
            evacuation = None if (fact := facts[instance]) is None else fact.evacuation
            if evacuation is not None:
                return await self._evacuated(request, held, facts, evacuation)
        raise _moved(held) from conflict

    async def _again(
        self, request: HostRequest, held: Mapping[str, Held], facts: Mapping[str, InstanceFacts | None]
    ) -> tuple[Destination, ...]:
        """Return the destinations of the same call, which was decided before.

        An instance in no cell is booted, and that is asked for once: its claim is that of this call even if
        no record says so. An instance in a cell may hold the claim of an earlier request, such as an unshelve
        to another zone.
        """
        known = await self._recorded(request)
        if known is not None and all(_holds_only(held.get(each.instance), each) for each in known):
            return known
        if any(each is not None for each in facts.values()):
            raise _moved(held)
        amounts = await self._scheduler.amounts(request.spec)
        if len(held) < len(request.instances) or any(
            total(each.allocations.values()) not in amounts for each in held.values()
        ):
            raise _moved(held)
        try:
            return await standing_claims(
                self._placement,
                self._scheduler.table,
                request.spec,
                {name: held[name] for name in request.instances},
                request.min_count,
                self._options.default_zone,
            )
        except ClaimedBefore as error:
            raise _moved(held) from error

    async def _evacuated(
        self,
        request: HostRequest,
        holdings: Mapping[str, Held],
        facts: Mapping[str, InstanceFacts | None],
        evacuation: UnfinishedMigration,
    ) -> tuple[Destination, ...]:
        """Claim a host beside the one that an instance leaves, unless the same call has done so before."""
        [instance] = request.instances
        held = holdings[instance]
        table = self._scheduler.table
        source = {table.nodes[index] for index in table.indexes_of_host(evacuation.source_host)}
        found = [await self._placement.provider(each) for each in held.allocations]
        roots = {each.root for each in found if each is not None}
        hosts = {root for root in roots if table.index_of_node(root) is not None}
        if hosts and hosts <= source:
            beside = msgspec.structs.replace(request, beside={instance: _kept(held)})
            try:
                return await self._selected(beside)
            except ConcurrentUpdate:
                raise _moved([instance]) from None
        known = await self._recorded(request)
        if known is not None and known[0].selected.node in hosts - source and _holds(held, known[0]):
            return await self._answered(request, known, holdings, facts)
        raise _moved([instance])

    async def _answered(
        self,
        request: HostRequest,
        found: tuple[Destination, ...],
        held: Mapping[str, Held],
        facts: Mapping[str, InstanceFacts | None],
    ) -> tuple[Destination, ...]:
        """Return destinations that are claimed already, for instances that hold something.

        Allocations of an instance that is in a cell are written again as they are. An audit that has found
        that nobody answered for them frees nothing then: their generation is another one.
        """
        writes = tuple(
            ConsumerWrite(
                consumer=name,
                allocations=each.allocations,
                project_id=each.consumer.project_id,
                user_id=each.consumer.user_id,
                generation=each.consumer.generation,
            )
            for name, each in held.items()
            if facts[name] is not None
        )
        if writes:
            try:
                await self._placement.write_allocations(writes)
            except ConcurrentUpdate as error:
                raise _moved(held) from error
        table = self._scheduler.table
        for each in found:
            # The decision that met the conflict has ended what the earlier one counted for the instance.
            index = table.index_of_node(each.selected.node)
            if index is not None:
                table.claim(each.instance, index, *taken_by(request.spec), each.selected.assignment)
        return found

    async def _recorded(self, request: HostRequest) -> tuple[Destination, ...] | None:
        """Return the destinations of an earlier run of the same request; None if there is none.

        Another scheduler may have claimed a moment ago, and its record is under way.
        """
        await self._records.flush(FLUSH_SECONDS)
        for pause in (*RECORD_PAUSES, None):
            found = await recorded_claims(self._records.backend, request.instances, request.request_id)
            if found is not None or pause is None:
                return found
            await self._sleep(pause)
        return None

    def _shown(self, call: SelectCall, found: tuple[Destination, ...]) -> list[Any]:
        selections = self._language.selections(found)
        if call.objects:
            return selections
        return [legacy_selection(each[0]) for each in selections]


def _novas_words(error: NoValidHost) -> str:
    none_offered = any(step.name == OFFERED and step.left == 0 for step in error.steps)
    return "" if none_offered else NOT_ENOUGH_HOSTS


def _kept(held: Held) -> KeptAllocations:
    return KeptAllocations(held.allocations, held.consumer.generation, held.consumer.assignment)


def _moved(instances: Iterable[str]) -> NovaRefusal:
    return NovaRefusal("AllocationUpdateFailed", consumer_uuid=", ".join(instances), error=_MOVED)


def _holds_only(held: Held | None, destination: Destination) -> bool:
    return held is not None and held.allocations == destination.selected.allocations


def _holds(held: Held, destination: Destination) -> bool:
    """Return whether the claim of a destination is part of what is held."""
    return all(
        held.allocations.get(provider, {}).get(name, 0) >= amount
        for provider, amounts in destination.selected.allocations.items()
        for name, amount in amounts.items()
    )
