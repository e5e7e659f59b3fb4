"""``/v1/scheduler/check``, ``explain`` and ``what-if``: what a request would get; nothing is claimed."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from roost.model.reasons import MOST_MOVES, Reasons
from roost.model.spec import Operation, UnreadKey
from roost.model.visibility import seen, seen_by_project
from roost.model.vocabulary import MAX_NAME
from roost.model.what_if import MoreHosts, Scenario, WhatIf
from roost.scheduler.api.refusals import as_http
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.api.wire.answers import CheckedRequest
from roost.scheduler.api.wire.language import language_of
from roost.scheduler.maintenance.live_fleet import WantedPlan
from roost.scheduler.maintenance.plan import MaintenancePlan
from roost.web.errors import BadRequest, Unavailable
from roost.web.request import Request, Response


class ToCheck(msgspec.Struct, forbid_unknown_fields=True):
    """A request for hosts, in the language of Roost or of Nova."""

    request_spec: dict[str, Any]
    operation: Operation | None = None


async def check(service: SchedulerService, req: Request, resp: Response) -> CheckedRequest:
    """Check that a request can be served on some hosts, and list its keys that have no effect.

    A request that can never be served, or with a key that can only be a mistake, is refused. Free room is not
    checked: nothing is claimed, and nothing is recorded.
    """
    wanted: ToCheck = req.body
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        spec = language.read_spec(wanted.request_spec, wanted.operation).spec
        await service.refresh()
        return CheckedRequest(await service.scheduler.check_request(spec))


MOST_EXPLAINED = 100
"""Most instances of an explained request."""


class ToExplain(msgspec.Struct, forbid_unknown_fields=True):
    """A request for hosts for `count` equal instances, in the language of Roost or of Nova.

    `moves`: if it does not fit, up to so many instances are looked for that could move so that it does.
    """

    request_spec: dict[str, Any]
    count: Annotated[int, Meta(ge=1, le=MOST_EXPLAINED)] = 1
    moves: Annotated[int, Meta(ge=0, le=MOST_MOVES)] = 0
    operation: Operation | None = None


class ExplainedRequest(Reasons, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome that a request would have, with reasons. `warnings` are its keys that have no effect."""

    warnings: tuple[UnreadKey, ...] = ()


@seen_by_project(ExplainedRequest)
def _explained(found: ExplainedRequest) -> ExplainedRequest:
    fields = {name: getattr(found, name) for name in Reasons.__struct_fields__}
    return ExplainedRequest(**msgspec.structs.asdict(seen(Reasons(**fields))), warnings=found.warnings)


async def explain(service: SchedulerService, req: Request, resp: Response) -> ExplainedRequest:
    """Explain the outcome of a request: hosts left by each step, near misses, changes that make it fit.

    The request is really decided, on a copy of the state: nothing is claimed, and nothing is recorded. For a
    request that fits, the response has the weights of the best hosts. Moves are looked for where the
    scheduler has the ledger and the cells' databases; `move_search` is missing otherwise.
    """
    wanted: ToExplain = req.body
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        asked = language.read_spec(wanted.request_spec, wanted.operation)
        await service.refresh()
        warnings = () if asked.of_nova else await service.scheduler.check_request(asked.spec)
        reasons = await service.scheduler.explain(asked.spec, wanted.count, wanted.moves)
    if reasons is None:
        raise Unavailable(
            "The request cannot be explained now: too many wait, or hosts come from the cells' databases."
        )
    return ExplainedRequest(**msgspec.structs.asdict(reasons), warnings=warnings)


async def plan_maintenance(service: SchedulerService, req: Request, resp: Response) -> MaintenancePlan:
    """Plan how hosts are emptied in few groups, each into all the others. Nothing is claimed or changed.

    `guests` are all instances of the cloud, each with the `node` that it is on, what it holds, and the index
    of the request in `specs` by which it would move.
    """
    wanted: WantedPlan = req.body
    if strange := [each.uuid for each in wanted.guests if not 0 <= each.spec < len(wanted.specs)]:
        raise BadRequest(f"instance {strange[0]} has a request that is not in specs")
    with as_http(req.viewer):
        await service.refresh()
        found = await service.scheduler.plan_maintenance(wanted)
    if found is None:
        raise Unavailable(
            "The maintenance cannot be planned now: another one is being planned, it takes too long, or this "
            "scheduler has no ledger."
        )
    return found


MOST_SUPPOSED = 10_000
"""Most instances that are placed."""
MOST_NAMES = 1_000
"""Most hosts that a request drains, by name."""
MOST_KINDS = 10
"""Most hosts that serve as models of added ones."""
MOST_LEFT_OUT = 100
"""Most constraints that a request is decided without."""
MOST_ADDED = 1_000
"""Most added hosts of one kind."""

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class AddedHostsBody(msgspec.Struct, forbid_unknown_fields=True):
    """`number` additional hosts that are empty copies of the host `like`."""

    like: _Name
    number: Annotated[int, Meta(ge=1, le=MOST_ADDED)] = 1


class Supposed(msgspec.Struct, forbid_unknown_fields=True):
    """A request, in the language of Roost or of Nova, of which up to `limit` instances are placed.

    Hosts of `drained` are not used, hosts of `added` are there in addition. A name is that of a compute
    service (all of its nodes), that of a node, or the uuid of a node's root provider. `without` are
    constraints that are left out of the request, by the names that explanations have for them.
    """

    request_spec: dict[str, Any]
    limit: Annotated[int, Meta(ge=1, le=MOST_SUPPOSED)] = 1_000
    drained: Annotated[tuple[_Name, ...], Meta(max_length=MOST_NAMES)] = ()
    added: Annotated[tuple[AddedHostsBody, ...], Meta(max_length=MOST_KINDS)] = ()
    without: Annotated[tuple[_Name, ...], Meta(max_length=MOST_LEFT_OUT)] = ()
    operation: Operation | None = None


async def what_if(service: SchedulerService, req: Request, resp: Response) -> WhatIf:
    """Count the further instances of a request that fit, with their hosts and the reasons against one more.

    The instances are really placed one after another, on a copy of the state, with hosts drained and added
    as requested: nothing is claimed, and nothing is recorded.
    """
    wanted: Supposed = req.body
    added = tuple(MoreHosts(each.like, each.number) for each in wanted.added)
    scenario = Scenario(wanted.drained, added, wanted.without)
    with as_http(req.viewer):
        language = language_of(wanted.request_spec, service.scheduler.table)
        asked = language.read_spec(wanted.request_spec, wanted.operation)
        await service.refresh()
        warnings = () if asked.of_nova else await service.scheduler.check_request(asked.spec)
        found = await service.scheduler.what_if(asked.spec, wanted.limit, scenario)
    if found is None and service.ledger is None:
        raise Unavailable(
            "Instances are placed on a copy of the ledger, and this scheduler reaches placement over HTTP: "
            "ask one that has the ledger."
        )
    if found is None:
        raise Unavailable(
            "The question cannot be answered now: too many wait, or hosts come from the cells' databases."
        )
    return msgspec.structs.replace(found, warnings=warnings)
