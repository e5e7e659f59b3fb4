"""The progress of a request from its acceptance until each instance is in a cell. Machines, without I/O.

The order of the steps makes a crash, or a pause of any length, harmless:

    claim in placement  ─▶  mapping: instance -> cell  ─▶  row in the cell  ─▶  the request is finished

Each step is durable before the next, and each write names owner and number of the request. A conductor that
takes a request over first makes the one before it harmless: no mapping of the earlier owner is written any
more, and in each cell that a mapping names the fence of the instance is raised, which a late insert cannot
pass. What has arrived stays. What has not is placed anew: the claim of a consumer is replaced at its
generation, so a consumer is never empty before the end of its instance.

A retry by the same owner is a takeover from itself: a write of the earlier run may still be under way.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from roost.conductor.backoff import CarryOptions
from roost.conductor.claim_release import free_claims
from roost.conductor.context import SuperConductorContext
from roost.conductor.deletions import possible_cells
from roost.model.instance import ASSIGNED, ERROR, BuildRequest, Fault, Instance
from roost.model.spec import Destination, RequestSpec
from roost.placement.errors import PlacementError
from roost.process import tracing
from roost.records.redact import without_secrets
from roost.scheduler import NoValidHost
from roost.scheduler.errors import SchedulerError
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.claim_result import ClaimVerdict, is_outage, result_of
from roost.state.api_database.build_requests import (
    FinishRequest,
    MapInstances,
    OwnedRequest,
    delete_owned,
    is_owner,
    retake_request,
    take_over_mappings,
)
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.past import note_late_claims
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import AddInstances, Arrival, settle_takeover


class Fenced(Exception):
    """Another conductor owns the request now, or it is finished: this one has nothing left to do for it."""


async def carry_through(
    context: SuperConductorContext, owned: OwnedRequest, options: CarryOptions, *, fresh: bool
) -> None:
    """Carry a request to its cells, again after every failure that may pass, until it is given up.

    ``fresh``: no conductor has carried it before. Returns also when others have taken it over. Raises the
    error that remains when the request has been given up and waiting cannot help.
    """
    with tracing.span("conductor.carry", parent=owned.request.trace or None):
        await _to_the_end(context, owned, options, fresh)


async def _to_the_end(
    context: SuperConductorContext, owned: OwnedRequest, options: CarryOptions, fresh: bool
) -> None:
    backoff = options.backoff
    failures = faults = 0
    given_up: str | None = None
    while True:
        try:
            if failures:
                owned, fresh = await _retaken(context, owned), False
            await carry(context, owned, options, fresh=fresh, given_up=given_up)
            return
        except Fenced:
            context.log("others carry the request on", {"number": owned.epoch})
            return
        except Exception as error:
            failures += 1
            outage = is_outage(error)
            result = result_of(error)
            known = outage or isinstance(error, PlacementError | SchedulerError)
            values = {"failures": failures, "error": result.reason}
            trace = None if known or failures > 1 else error
            context.log("a request failed", values, "warning", trace)
            if not outage:
                faults += 1
                if given_up is not None:
                    if result.verdict is not ClaimVerdict.RETRY or not known:
                        raise
                elif result.verdict is ClaimVerdict.FATAL or backoff.exhausted(faults):
                    given_up = f"Given up after {faults} failures: {result.reason}"
                    continue
        await context.sleep(backoff.pause(failures))


async def _retaken(context: SuperConductorContext, owned: OwnedRequest) -> OwnedRequest:
    """The request under another number of the same owner. Raises `Fenced`."""
    if not await context.write(API, retake_request(owned.key)):
        raise Fenced
    return msgspec.structs.replace(owned, epoch=owned.epoch + 1)


async def carry(
    context: SuperConductorContext,
    owned: OwnedRequest,
    options: CarryOptions,
    *,
    fresh: bool,
    given_up: str | None = None,
) -> None:
    """Carry a request to its cells once. Raises `Fenced`, and the error of a step that fails.

    ``given_up``: the reason why no host is looked for any more.
    """
    request = owned.request
    arrived: dict[str, Instance] = {}
    missing = list(request.instances)
    if not fresh:
        missing, arrived = await _settled(context, owned, options)
        request = _with_members(request, [instance.host for instance in arrived.values()])
        # An instance in cell0 has a claim only if an earlier run of this was cut off.
        buried = [uuid for uuid, instance in arrived.items() if instance.host is None]
        await _free(context, buried)
    owned = msgspec.structs.replace(owned, request=request)
    if missing and given_up is not None:
        await _bury(context, owned, missing, "", given_up, claimed=True)
    elif missing:
        await _place(context, owned, options, missing, already=len(arrived), fresh=fresh)
    if not await context.write(API, FinishRequest(owned.key)):
        raise Fenced


async def _settled(
    context: SuperConductorContext, owned: OwnedRequest, options: CarryOptions
) -> tuple[list[str], dict[str, Instance]]:
    """Make earlier owners harmless; returns the instances that are in no cell, and those that have arrived.

    Instances whose deletion is accepted are in neither: they are not placed.
    """
    found = await context.write(API, take_over_mappings(*owned.key))  # type: ignore[arg-type]
    if found is None:
        raise Fenced
    wanted = [mapping for mapping in found if not mapping.deleted]
    at = context.clock()
    named: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, cells in (await possible_cells(context, wanted)).items():
        for cell in cells:
            named[cell].append(uuid)
    arrived: dict[str, Instance] = {}
    settling = [_settle(context, cell, uuids, owned.epoch, at) for cell, uuids in named.items()]
    unmapped = {mapping.instance_uuid for mapping in wanted if mapping.cell is None}
    found_in: dict[str, str] = {}
    for cell, here in zip(named, await context.together(settling), strict=True):
        arrived.update(here)
        found_in.update(dict.fromkeys(unmapped & here.keys(), cell))
    if found_in:
        await _mapped(context, owned, found_in)
    return [mapping.instance_uuid for mapping in wanted if mapping.instance_uuid not in arrived], arrived


async def _settle(
    context: SuperConductorContext, cell: str, uuids: Sequence[str], epoch: int, at: float
) -> dict[str, Instance]:
    return await context.write(f"cell/{cell}", settle_takeover(tuple(uuids), epoch, at))


async def _place(
    context: SuperConductorContext,
    owned: OwnedRequest,
    options: CarryOptions,
    missing: Sequence[str],
    *,
    already: int,
    fresh: bool,
) -> None:
    """Have instances placed, and put them into their cells."""
    request = owned.request
    generations = {} if fresh else await _generations(context, missing)
    # A later owner may have claimed before these generations were read, and its claim would be replaced. One
    # that comes from here on changes the generations.
    if generations and not await context.read(API, is_owner(owned.key)):
        raise Fenced
    try:
        destinations = await context.scheduler.select_destinations(
            HostRequest(
                request.spec,
                tuple(missing),
                options.max_attempts - 1,
                # Instances that were deleted meanwhile are not missing.
                max(min(request.min_count - already, len(missing)), 1),
                generations,
                request_id=request.request_id,
                global_request_id=request.global_request_id,
            )
        )
    except NoValidHost as error:
        reason = f"No valid host was found: {error.reason}"
        await _bury(context, owned, missing, error.run, reason, claimed=bool(generations))
        return
    except SchedulerError as error:
        result = result_of(error)
        if result.verdict is not ClaimVerdict.FATAL:
            raise
        await _bury(context, owned, missing, "", result.reason or "", claimed=not fresh)
        return
    await _put(context, owned, destinations)
    placed = {destination.instance for destination in destinations}
    rest = [uuid for uuid in missing if uuid not in placed]
    if rest:
        reason = f"No valid host was found: {len(placed)} of {len(missing)} instances fit"
        await _bury(context, owned, rest, destinations[0].run, reason, claimed=bool(generations))


async def _put(
    context: SuperConductorContext, owned: OwnedRequest, destinations: Sequence[Destination]
) -> None:
    """Map the instances that have claims, then put them into their cells."""
    cells = {each.instance: each.selected.cell for each in destinations}
    going = await _mapped(context, owned, cells, destinations)
    spec = without_secrets(owned.request.spec)
    by_cell: defaultdict[str, list[Instance]] = defaultdict(list)
    for each in destinations:
        if each.instance in going:
            by_cell[each.selected.cell].append(_assigned(owned, spec, each))
    at = context.clock()
    await context.together([_add(context, owned, cell, new, at) for cell, new in by_cell.items()])


async def _add(
    context: SuperConductorContext,
    owned: OwnedRequest,
    cell: str,
    new: Sequence[Instance],
    at: float,
    why: Sequence[Fault] = (),
) -> None:
    """Put instances into a cell.

    An instance that its fence keeps out was deleted, or belongs to a later owner. If this process still owns
    the request, the cell knows of a deletion that the API database lacks: the deletion is accepted there.

    Raises `Fenced`.
    """
    arrivals = await context.write(f"cell/{cell}", AddInstances(tuple(new), at, tuple(why)))
    out = [uuid for uuid, arrival in arrivals.items() if arrival is Arrival.FENCED]
    if out:
        context.log("instances are no longer to arrive in the cell", {"cell": cell, "instances": out})
        if not await context.write(API, delete_owned(owned.key, tuple(out), at)):
            raise Fenced


async def _mapped(
    context: SuperConductorContext,
    owned: OwnedRequest,
    cells: Mapping[str, str],
    claimed: Sequence[Destination] = (),
) -> frozenset[str]:
    """Map instances to cells; returns those that are not deleted. Raises `Fenced`."""
    going = await context.write(API, MapInstances(*owned.key, cells))  # type: ignore[arg-type]
    if going is None:
        # The next owner replaces or frees these claims, unless they came after the request's end.
        if claimed:
            late = tuple(each.instance for each in claimed)
            await context.write(API, note_late_claims(late))
        raise Fenced
    return going


async def _bury(
    context: SuperConductorContext,
    owned: OwnedRequest,
    instances: Sequence[str],
    run: str,
    reason: str,
    *,
    claimed: bool,
) -> None:
    """Put instances that could not be placed into cell0, in error, with the reason.

    ``claimed``: they may have claims, which are freed when their end is durable.
    """
    request = owned.request
    going = await _mapped(context, owned, dict.fromkeys(instances, CELL0))
    ended = [uuid for uuid in instances if uuid in going]
    now = context.clock()
    new = [
        Instance(
            uuid=uuid,
            request_id=request.request_id,
            run=run,
            project_id=request.spec.project_id,
            user_id=request.spec.user_id,
            flavor=request.spec.flavor.name,
            state=ERROR,
            reason=reason,
            epoch=owned.epoch,
        )
        for uuid in ended
    ]
    await _add(context, owned, CELL0, new, now, [Fault(uuid, 0, None, reason, now) for uuid in ended])
    if claimed:
        await _free(context, ended)


async def _free(context: SuperConductorContext, instances: Collection[str]) -> None:
    """Free the claims of instances. Raises what placement raises, even if for one of them alone."""
    outcome = await free_claims(context, instances)
    for error in outcome.refused.values():
        raise error


async def _generations(context: SuperConductorContext, instances: Iterable[str]) -> dict[str, int]:
    """Return the generations of the instances that hold allocations."""
    held = await context.placement.holdings(tuple(instances))
    return {uuid: each.consumer.generation for uuid, each in held.items()}


def _with_members(request: BuildRequest, hosts: Sequence[str | None]) -> BuildRequest:
    """Return the request with these hosts added to those of its server group, if it has one."""
    group = request.spec.group
    if group is None:
        return request
    joined = (*group.hosts, *(host for host in hosts if host is not None))
    group = msgspec.structs.replace(group, hosts=joined)
    return msgspec.structs.replace(request, spec=msgspec.structs.replace(request.spec, group=group))


def _assigned(owned: OwnedRequest, spec: RequestSpec, destination: Destination) -> Instance:
    selected = destination.selected
    return Instance(
        uuid=destination.instance,
        request_id=owned.request.request_id,
        run=destination.run,
        project_id=spec.project_id,
        user_id=spec.user_id,
        flavor=spec.flavor.name,
        state=ASSIGNED,
        host=selected.host,
        node=selected.node,
        attempt=1,
        alternates=destination.alternates,
        spec=spec,
        selection=selected,
        epoch=owned.epoch,
    )
