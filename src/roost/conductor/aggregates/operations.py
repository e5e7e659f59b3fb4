"""The operations of host aggregates, their handlers and policy rules."""

from typing import Final, Protocol

from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.types import (
    AggregatePage,
    AggregatesQuery,
    ChangedMembers,
    ReplacedAggregate,
    ShownAggregate,
    WantedAggregate,
    listed,
    shown,
)
from roost.conductor.requester import requester_of
from roost.model.aggregate import Aggregate
from roost.web.errors import Conflict
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import Rule
from roost.web.query import Query
from roost.web.request import Request, Response


class AggregateService(Protocol):
    """The part of the conductor's service that the handlers need."""

    @property
    def aggregates(self) -> HostAggregates: ...


async def create_aggregate(service: AggregateService, req: Request, resp: Response) -> ShownAggregate:
    """Make a host aggregate without members."""
    wanted: WantedAggregate = req.body
    made = await service.aggregates.create(
        wanted.name, wanted.metadata, lambda made: req.keyed(shown(made, {})), requester_of(req)
    )
    return shown(made, {})


async def list_aggregates(service: AggregateService, req: Request, resp: Response) -> AggregatePage:
    """List host aggregates by page, without their members."""
    query: AggregatesQuery = req.query
    found = await service.aggregates.store.page(query.limit + 1, query.marker or "", query.name)
    page = [listed(*each) for each in found[: query.limit]]
    return AggregatePage(page, page[-1].uuid if len(found) > query.limit else None)


async def show_aggregate(
    service: AggregateService, req: Request, resp: Response, uuid: str
) -> ShownAggregate:
    """Show a host aggregate with its members."""
    return await _shown(service, await service.aggregates.store.find(uuid))


async def replace_aggregate(
    service: AggregateService, req: Request, resp: Response, uuid: str
) -> ShownAggregate:
    """Replace name and metadata of a host aggregate that is at the generation of the body."""
    new: ReplacedAggregate = req.body
    by = requester_of(req)
    replaced = await service.aggregates.replace(uuid, new.name, new.metadata, new.generation, by)
    return await _shown(service, replaced)


async def change_members(
    service: AggregateService, req: Request, resp: Response, uuid: str
) -> ShownAggregate:
    """Add compute nodes to a host aggregate and remove others from it, all or none.

    A node that is a member already stays one, and a node that is none is not removed.
    """
    members: ChangedMembers = req.body
    changed = await service.aggregates.change_members(uuid, members.add, members.remove, requester_of(req))
    return await _shown(service, changed)


async def delete_aggregate(service: AggregateService, req: Request, resp: Response, uuid: str) -> None:
    """Delete a host aggregate that has no members."""
    await service.aggregates.delete(uuid, requester_of(req))


async def _shown(service: AggregateService, aggregate: Aggregate) -> ShownAggregate:
    return shown(aggregate, await service.aggregates.names(aggregate.members))


PATH: Final = "/v1/aggregates"
_ONE: Final = f"{PATH}/{{uuid}}"

AGGREGATE_RULES: Final = {
    f"conductor:aggregates:{verb}": "role:admin"
    for verb in ("create", "list", "show", "update", "members", "delete")
}
"""The policy rules as they are without a policy file: aggregates are for administrators, as in Nova."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:aggregates:{verb}")


AGGREGATE_OPERATIONS: Final = (
    Operation(
        "POST",
        PATH,
        _rule("create"),
        create_aggregate,
        body=WantedAggregate,
        takes=(),  # curl -d says that its data is a form
        answer=ShownAggregate,
        status=201,
        raises=(Conflict,),
        creates=Creation(),
    ),
    Operation(
        "GET", PATH, _rule("list"), list_aggregates, query=Query(AggregatesQuery), answer=AggregatePage
    ),
    Operation("GET", _ONE, _rule("show"), show_aggregate, answer=ShownAggregate),
    Operation(
        "PUT",
        _ONE,
        _rule("update"),
        replace_aggregate,
        body=ReplacedAggregate,
        takes=(),
        answer=ShownAggregate,
        raises=(Conflict,),
    ),
    Operation(
        "POST",
        f"{_ONE}/members",
        _rule("members"),
        change_members,
        body=ChangedMembers,
        takes=(),
        answer=ShownAggregate,
        raises=(Conflict,),
    ),
    Operation(
        "DELETE",
        _ONE,
        _rule("delete"),
        delete_aggregate,
        status=204,
        provides=(),
        raises=(Conflict,),
    ),
)
