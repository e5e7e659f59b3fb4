"""``/v1/select_destinations`` and ``/v1/use_alternate``: choose hosts and claim them."""

import uuid
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.model.allocation import HandedClaim
from roost.model.assignment import Assignment
from roost.model.spec import Destination, Operation
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.placement.errors import ConcurrentUpdate
from roost.placement.wire.uuids import DASHED_UUID, LONGEST_UUID, canonical_uuid
from roost.scheduler.api.refusals import BadSpec, as_http
from roost.scheduler.api.repeated import recorded, recorded_claims, standing_claims
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement
from roost.scheduler.api.wire.language import convert, language_of, without_contradiction
from roost.scheduler.errors import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest
from roost.web.request import Request, Response

MOST_INSTANCES = 1000
"""Most instances of one request. A larger count is refused."""

MOST_ALTERNATES = 100
"""Most alternates of one instance. A larger number is refused."""

LONGEST_REASON = 8192
"""Most characters of the reason of a failure. A longer one is refused."""

FLUSH_SECONDS = 5.0
"""Most seconds that the search for a run in the records waits until they are written."""

_Uuid = Annotated[str, Meta(pattern=DASHED_UUID, max_length=LONGEST_UUID)]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00]*\Z")]
_Spec = Annotated[
    dict[str, Any],
    Meta(
        description="A request spec of Roost, or Nova's RequestSpec as oslo.versionedobjects serialises it."
    ),
]
_Selection = Annotated[dict[str, Any], Meta(description="A selection, in the language of the request spec.")]
_Generation = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_ClassName = Annotated[str, Meta(pattern=r"^[A-Z0-9_]+\Z", max_length=MAX_NAME)]
_Amounts = Annotated[dict[_ClassName, Annotated[int, Meta(ge=1, le=MAX_INT)]], Meta(min_length=1)]


class WantedHandover(msgspec.Struct, forbid_unknown_fields=True):
    """All that an instance holds, which its migration takes over while the instance claims another host.

    `consumer` is the uuid of the migration, which no consumer has had. `allocations` are by provider and
    resource class, as they were read at the consumer `generation`. `assignment` is that of the selection by
    which the instance was placed.
    """

    consumer: _Uuid
    allocations: Annotated[dict[_Uuid, _Amounts], Meta(min_length=1)]
    generation: _Generation
    assignment: dict[str, Any] | None = None

    def claim(self) -> HandedClaim:
        """Return it as the scheduler takes it. Raises `BadSpec`."""
        try:
            assignment = None if self.assignment is None else convert(self.assignment, Assignment)
        except msgspec.ValidationError as error:
            raise BadSpec(f"the assignment that {self.consumer} takes over: {error}") from error
        return HandedClaim(
            {canonical_uuid(provider): amounts for provider, amounts in self.allocations.items()},
            self.generation,
            assignment,
            consumer=canonical_uuid(self.consumer),
        )


class WantedDestinations(msgspec.Struct, forbid_unknown_fields=True):
    """A request for hosts for `count` equal instances.

    `instances` are their uuids, which are made up if they are left out. The default of both comes from Nova's
    RequestSpec, else it is one instance. If fewer than `min_count` can be placed (by default `count`), none
    is. `num_alternates` alternates are found for each. `generations` are those of the instances that hold
    something already: their holdings count as free for them, and are replaced. `handed` has all that moving
    instances hold: it counts as used, and one write hands it to the migration and claims the host for the
    instance. `of_instances` has, by consumer, those instances whose consumers in `instances` have other uuids
    than they, for the records. `operation` is the purpose of the host, if the request spec does not have it,
    as Nova's does not. `request_id` is that of the user's request, for the records, by default the one of
    this request.

    `run` is the id of the run. If the response was lost, the same request may be sent again with this id and
    `repeated`. The response is then that of the run, from memory or the records. If the run is unknown, the
    request is decided under a new id. A 409 with the code `placement.concurrent_update` then means that an
    instance holds something: free it before you ask under another id. Such a request names its `instances`.

    A request with the header Idempotency-Key needs no `run` to be sent again. If it names no `instances`,
    their uuids are derived from the key.
    """

    request_spec: _Spec
    count: Annotated[int, Meta(ge=1, le=MOST_INSTANCES)] | None = None
    instances: Annotated[tuple[_Uuid, ...], Meta(min_length=1, max_length=MOST_INSTANCES)] | None = None
    num_alternates: Annotated[int, Meta(ge=0, le=MOST_ALTERNATES)] = 0
    min_count: Annotated[int, Meta(ge=1, le=MOST_INSTANCES)] | None = None
    operation: Operation | None = None
    request_id: _Name | None = None
    generations: dict[str, _Generation] = {}
    handed: dict[str, WantedHandover] = {}
    of_instances: dict[str, _Uuid] = {}
    run: _Uuid | None = None
    repeated: bool = False

    def __post_init__(self) -> None:
        if self.instances is not None:
            if len({canonical_uuid(each) for each in self.instances}) != len(self.instances):
                raise ValueError("instances names one instance twice")
            if self.count not in (None, len(self.instances)):
                raise ValueError(f"count is {self.count}, and instances has {len(self.instances)} uuids")
        if not self.generations.keys() <= set(self.instances or ()):
            raise ValueError("generations names an instance that instances does not")
        if not self.handed.keys() <= set(self.instances or ()):
            raise ValueError("handed names an instance that instances does not")
        if not self.of_instances.keys() <= set(self.instances or ()):
            raise ValueError("of_instances names a consumer that instances does not")


class WantedAlternate(msgspec.Struct, forbid_unknown_fields=True):
    """A request for another host for one instance: the claim on `failed` is swapped to an alternate.

    `alternates` are those that are left, best first. `reason` says why the host failed. `run` is the id of
    the run that chose the hosts, `request_id` that of the user's request. `attempt` is the number of the
    attempt that failed, from 1; Nova's selections do not have it. `held_by` is the consumer that holds the
    present host for an instance that moves, such as its migration: in a server group it counts as the
    instance itself. `of_instance` is the instance, if its consumer, which `instance` has, is another uuid.
    """

    request_spec: _Spec
    instance: _Uuid
    failed: _Selection
    alternates: Annotated[tuple[_Selection, ...], Meta(max_length=MOST_ALTERNATES)]
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]
    run: _Name
    attempt: Annotated[int, Meta(ge=1)] = 1
    operation: Operation | None = None
    request_id: _Name | None = None
    held_by: _Uuid | None = None
    of_instance: _Uuid | None = None


def same_request(wanted: WantedDestinations) -> WantedDestinations:
    """Return the part of a request for hosts that is the same when the request is sent again."""
    return msgspec.structs.replace(wanted, repeated=False)


async def select_destinations(service: SchedulerService, req: Request, resp: Response) -> ShownDestinations:
    """Choose hosts for equal instances and claim them in placement.

    Each destination has the selected host, which is claimed, and alternates in the same cell, which are not.
    The response to a request that finds no hosts names the run, the number of hosts that each step left, and
    the reasons.
    """
    wanted: WantedDestinations = req.body
    # A conductor of a version before warnings names its run, has no key, and refuses answers with a field it
    # does not know. Schedulers are upgraded before conductors.
    warn = wanted.run is None or req.idempotency_key is not None
    with as_http(req.viewer, warn=warn):
        language = language_of(wanted.request_spec, service.scheduler.table)
        asked = language.read_spec(wanted.request_spec, wanted.operation)
        instances = wanted.instances or (asked.instances if wanted.count is None else None)
        count = len(instances) if instances is not None else wanted.count or asked.count
        if count > MOST_INSTANCES:
            raise BadSpec(f"{count} instances are asked for, at most {MOST_INSTANCES} may be")
        if wanted.min_count is not None and wanted.min_count > count:
            raise BadSpec(f"min_count {wanted.min_count} is more than count {count}")
        key = req.idempotency_key
        names = None if instances is None else tuple(map(canonical_uuid, instances))
        is_named_by_key = names is None and wanted.run is None and key is not None
        if is_named_by_key and key is not None:
            names = tuple(key.uuid(str(number)) for number in range(count))

        request = without_contradiction(
            HostRequest(
                asked.spec,
                tuple(str(uuid.uuid4()) for _ in range(count)) if names is None else names,
                wanted.num_alternates,
                wanted.min_count or count,
                generations={canonical_uuid(each): number for each, number in wanted.generations.items()},
                request_id=wanted.request_id or req.request_id,
                global_request_id=req.observation.ids.of_caller,
                strict=not asked.of_nova,
                of_nova=asked.of_nova,
                handed={canonical_uuid(each): handed.claim() for each, handed in wanted.handed.items()},
                of_instances={
                    canonical_uuid(each): canonical_uuid(of) for each, of in wanted.of_instances.items()
                },
            )
        )
        if is_named_by_key:
            found = await _claimed_once(service, request)
        elif wanted.run is None:
            found = await _decided(service, request)
        elif names is None:
            raise BadSpec("a request that names its run names its instances")
        else:
            found = await _once(service, request, canonical_uuid(wanted.run), wanted.repeated)
    shown = language.show_destinations(found)
    if warn and not asked.of_nova:
        shown.warnings = service.scheduler.unread(asked.spec)
    return shown


async def _decided(service: SchedulerService, request: HostRequest) -> tuple[Destination, ...]:
    await service.refresh()
    return await service.scheduler.select_destinations(request)


async def _claimed_once(service: SchedulerService, request: HostRequest) -> tuple[Destination, ...]:
    """Return the outcome of a request whose consumers are derived from its key. Its claims are made once."""
    names = request.instances
    try:
        return await _decided(service, request)
    except (ConcurrentUpdate, NoValidHost):
        # The same request, sent before, may hold these claims already, or have taken the last room itself.
        held = {} if service.placement is None else await service.placement.holdings(names)
        if service.placement is None or not held:
            raise
        await service.records.flush(FLUSH_SECONDS)
        known = await recorded_claims(service.records.backend, names)
        if known is not None:
            return known
        zone = service.options.default_availability_zone
        in_order = {name: held[name] for name in names if name in held}
        return await standing_claims(
            service.placement, service.scheduler.table, request.spec, in_order, request.min_count, zone
        )


async def _once(
    service: SchedulerService, request: HostRequest, run: str, repeated: bool
) -> tuple[Destination, ...]:
    """Return the outcome of a run that the caller named; see `roost.scheduler.api.repeated`."""

    async def found() -> tuple[Destination, ...]:
        if not repeated:
            return await _decided(service, msgspec.structs.replace(request, run=run))
        known = await recorded(service.records.backend, run, request.instances)
        return await _decided(service, request) if known is None else known

    return await service.repeats.once(run, found)


async def use_alternate(service: SchedulerService, req: Request, resp: Response) -> ShownReplacement:
    """Claim the next alternate of an instance in place of the host that failed it.

    Each alternate is judged again on the present state. The swap is one write: the instance holds something
    at any time. The call may be repeated: if the claim was moved already, that alternate is the response.
    """
    wanted: WantedAlternate = req.body
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        spec = language.read_spec(wanted.request_spec, wanted.operation).spec
        failed = language.read_selection(wanted.failed)
        if not failed.ordinal:
            failed = msgspec.structs.replace(failed, ordinal=wanted.attempt)
        await service.refresh()
        request = AlternateRequest(
            spec,
            canonical_uuid(wanted.instance),
            failed,
            tuple(language.read_selection(each) for each in wanted.alternates),
            reason=wanted.reason,
            run=wanted.run,
            request_id=wanted.request_id or req.request_id,
            held_by="" if wanted.held_by is None else canonical_uuid(wanted.held_by),
            of_instance="" if wanted.of_instance is None else canonical_uuid(wanted.of_instance),
        )
        found = await service.scheduler.use_alternate(request)
    return language.show_replacement(found)
