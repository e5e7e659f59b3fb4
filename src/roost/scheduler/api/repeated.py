"""Requests for hosts that are sent again, because the response to the first was lost.

A client without a response cannot tell if its request has claimed anything. So it names the run, and sends
the same request again; a process that knows the run gives the response of the first request. A process knows
its own runs that ended last, and those under way, which a lost connection does not end. Another process finds
the run in the records. An unknown run is decided under a new id: if the first run has claimed something, that
is a conflict of consumers, and the client has to free the claims first.

The consumers of a request with a key are derived from the key, unless it names instances itself. So if these
consumers hold something, the same request has claimed it, and its answer was lost: with the process, or
because the database did not answer in time. The claims are not made again. The answer comes from the records;
if they do not have it, it is made of the consumers' allocations, without alternates.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar

import structlog

from roost.ledger import Held
from roost.model.record import Run
from roost.model.spec import Destination, RequestSpec, Selection
from roost.placement.interface import Placement
from roost.records import RecordsError, Search, SearchableRecords
from roost.records.records import Records
from roost.scheduler import NoValidHost
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import new_run_id
from roost.scheduler.run_records import as_claimed
from roost.scheduler.selection.outcome import zone_of
from roost.web.errors import Conflict

MOST_KEPT = 1_000
"""Most runs whose response a process keeps. Beyond, the runs that were requested first are dropped."""

Found = tuple[Destination, ...]

_log = structlog.get_logger()


class Repeats:
    """The runs of this process with an id from the client, under way or ended."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._runs: OrderedDict[str, asyncio.Task[Found]] = OrderedDict()

    async def once(self, run: str, decide: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        """Return the outcome of a run; ``decide`` is called only if this process does not know the run.

        Raises: as ``decide``. A run that decided nothing is not kept.
        """
        task = self._runs.get(run)
        if task is None:
            task = self._runs[run] = asyncio.create_task(decide())
            task.add_done_callback(lambda ended: self._ended(run, ended))
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)
        return await asyncio.shield(task)

    def _ended(self, run: str, task: "asyncio.Task[Found]") -> None:
        decided = not task.cancelled() and isinstance(task.exception(), NoValidHost | None)
        if not decided and self._runs.get(run) is task:
            del self._runs[run]


async def recorded(records: Records, run: str, instances: tuple[str, ...]) -> Found | None:
    """Return the outcome of a run by the records; None if they do not have it, or it decided nothing.

    Raises: `NoValidHost` if the run was refused.
    """
    if not isinstance(records, SearchableRecords):
        return None
    try:
        found = await records.find(Search(run=run), 1)
    except RecordsError as error:
        _log.warning("whether a run is recorded cannot be read", run=run, error=str(error))
        return None
    if not found:
        return None
    known, _ = as_claimed(found[0].run)
    if known.instances != instances:
        return None
    if known.destinations:
        return known.destinations
    if known.refusal is None or not known.steps:
        return None
    reason = known.refusal if known.reasons is None else known.reasons.sentence
    raise NoValidHost(known.id, reason, known.steps, (), known.reasons)


_UNSUFFIXED = ""

_OF_GROUPS = re.compile(r"(resources|trait|member_of|in_tree)[^:]+:|pci_passthrough:|accel:")
"""Extra specs that ask for request groups beside the unsuffixed one."""


class ClaimedBefore(Conflict):
    """The request with this key has claimed hosts, and its answer is lost.

    The text names the consumers: free them, and use a new key.
    """

    code: ClassVar[str] = "scheduler.claimed_before"


async def recorded_claims(
    records: Records, instances: tuple[str, ...], request_id: str | None = None
) -> tuple[Destination, ...] | None:
    """Return the destinations of the run that placed these instances; None if the last runs have none.

    ``request_id``: of the user's request that the run must be of; None: of any.
    """
    if not isinstance(records, SearchableRecords):
        return None
    try:
        found = await records.find(Search(instance=instances[0]))
    except RecordsError as error:
        _log.warning("whether a run is recorded cannot be read", error=str(error))
        return None
    placed = (
        each.run
        for each in found
        if each.run.instances == instances and _claims(each.run) and request_id in (None, each.run.request_id)
    )
    return next((run.destinations for run in placed), None)


def _claims(run: Run) -> bool:
    """Return whether a run claimed: destinations of shadow mode, and of rebuilds, have no generation."""
    return any(each.selected.generation is not None for each in run.destinations)


async def standing_claims(
    placement: Placement,
    table: NodeTable,
    spec: RequestSpec,
    held: Mapping[str, Held],
    least: int,
    zone: str,
) -> tuple[Destination, ...]:
    """Return the destinations of the instances that hold allocations, made of these.

    ``held``: the allocations by instance. ``least``: the number of instances that must hold some. ``zone``:
    the zone of hosts without one.

    Raises:
        ClaimedBefore: fewer instances hold something, or the request group that an allocation serves is
            ambiguous.
    """
    roots = await _roots(placement, {provider for each in held.values() for provider in each.allocations})
    run, found = new_run_id(), []
    has_groups = bool(spec.requested_resources) or any(map(_OF_GROUPS.match, spec.flavor.extra_specs))
    for instance, of_instance in held.items():
        allocations, consumer = of_instance.allocations, of_instance.consumer
        indexes = (table.index_of_node(roots.get(provider, provider)) for provider in allocations)
        places = {index for index in indexes if index is not None}
        if len(places) == 1 and not has_groups:
            [index] = places
            selection = Selection(
                host=table.hosts[index],
                node=table.nodes[index],
                cell=table.cells[table.cell.item(index)],
                allocations=allocations,
                mappings={_UNSUFFIXED: sorted(allocations)},
                weight=0.0,
                zone=zone_of(table, index, zone),
                assignment=consumer.assignment,
                generation=consumer.generation,
            )
            found.append(Destination(run, instance, selection))
    if len(found) < max(least, len(held)):
        raise ClaimedBefore(
            f"the request with this Idempotency-Key has claimed for {', '.join(held)}, and its answer is not "
            "known any more: free these consumers, and send the request with a new key"
        )
    return tuple(found)


async def _roots(placement: Placement, providers: set[str]) -> dict[str, str]:
    """Return the root of each provider that exists."""
    known = [await placement.provider(uuid) for uuid in sorted(providers)]
    return {each.uuid: each.root for each in known if each is not None}
