"""Server groups in the ledger: ``POST /v1/allocations`` with their conditions, ``GET /v1/groups/{group}``."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from roost.fleet import Fleet
from roost.model.allocation import GroupClaim, GroupPolicy
from roost.model.vocabulary import MAX_INT
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.moments import VERSION, headers_of
from roost.placement.v1.assignments import WantedAssignment
from roost.placement.v1.service import V1Service
from roost.placement.wire.uuids import DASHED_UUID, LONGEST_UUID, canonical_uuid
from roost.web.request import Request, Response

_MEMBER = 4
"""Units of work of a member that is listed."""

_Text = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00]*\Z")]
_Uuid = Annotated[str, Meta(pattern=DASHED_UUID, max_length=LONGEST_UUID)]
_ClassName = Annotated[str, Meta(pattern=r"^[A-Z0-9_]+\Z")]
_Amounts = Annotated[dict[_ClassName, Annotated[int, Meta(ge=1, le=MAX_INT)]], Meta(min_length=1)]


class WantedCondition(msgspec.Struct, forbid_unknown_fields=True):
    """The server group that a consumer becomes a member of, and the condition of its claim.

    `affinity`: the hosts of the claim have a member already, unless the consumer is the first one.
    `anti-affinity`: after the claim no host of it has more than `max_server_per_host` members. The soft
    policies refuse nothing. `held_by` is a consumer that holds the present host for the one of the claim, as
    Nova's migrations do for an instance that moves: as a member it does not count against it.
    """

    uuid: _Text
    policy: GroupPolicy
    max_server_per_host: Annotated[int, Meta(ge=1, le=MAX_INT)] = 1
    held_by: _Uuid | None = None

    def claim(self) -> GroupClaim:
        """Return the condition as commands take it."""
        holder = None if self.held_by is None else canonical_uuid(self.held_by)
        return GroupClaim(self.uuid, self.policy, self.max_server_per_host, holder)


class WantedAllocation(msgspec.Struct, forbid_unknown_fields=True):
    """The amounts of one provider by resource class."""

    resources: _Amounts


class WantedAllocations(msgspec.Struct, forbid_unknown_fields=True):
    """All allocations of a consumer, as in Placement's API at 1.39, its server group and its assignment.

    Without any allocations the consumer is deleted. `consumer_generation` is the present one, null for a
    consumer that must not exist yet; if it is left out, it is not checked. Without `group` the consumer keeps
    its group. Without `assignment` it keeps its assignment, as long as it has allocations in the tree of the
    assignment's node; null removes the assignment.
    """

    allocations: dict[_Uuid, WantedAllocation]
    project_id: _Text
    user_id: _Text
    consumer_generation: int | UnsetType | None = UNSET
    consumer_type: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[A-Z0-9_]+\Z")] | None = None
    group: WantedCondition | None = None
    assignment: WantedAssignment | UnsetType | None = UNSET

    def write(self, consumer: str) -> ConsumerWrite:
        """Return the write of a consumer."""
        group, wanted = self.group, self.assignment
        return ConsumerWrite(
            consumer=canonical_uuid(consumer),
            allocations={canonical_uuid(uuid): each.resources for uuid, each in self.allocations.items()},
            project_id=self.project_id,
            user_id=self.user_id,
            consumer_type=self.consumer_type,
            generation=self.consumer_generation,
            group=None if group is None else group.claim(),
            assignment=wanted.assignment() if isinstance(wanted, WantedAssignment) else wanted,
            beside=wanted.beside if isinstance(wanted, WantedAssignment) else None,
        )


SeveralAllocations = Annotated[dict[_Uuid, WantedAllocations], Meta(min_length=1)]
"""The allocations of each consumer by its uuid."""


class ShownMembers(msgspec.Struct, forbid_unknown_fields=True):
    """The members of a server group at a version of the ledger: consumer -> uuids of its hosts.

    A host is the root provider of a tree that the consumer has allocations from.
    """

    version: Annotated[int, Meta(ge=0)]
    members: Mapping[str, list[str]]


async def write_allocations(service: V1Service, req: Request, resp: Response) -> None:
    """Write the allocations of several consumers, all of them or none, with the conditions of server groups.

    A claim whose condition is not met is a 409 with the code `placement.server_group.refused`. The condition
    is judged on the state that the claim is committed on, so that no two claims at the same moment break it.
    An assignment with a CPU or device of another consumer is a 409 with the code
    `placement.assignment.refused`.
    """
    body: dict[str, WantedAllocations] = req.body
    writes = tuple(each.write(consumer) for consumer, each in body.items())
    resp.set_headers(headers_of(await service.ledger.execute(WriteAllocations(writes))))


async def show_members(service: V1Service, req: Request, resp: Response, group: str) -> msgspec.Raw:
    """Show the consumers that are members of a server group; none for a group that nobody is in."""

    def check(fleet: Fleet) -> None:
        resp.set_header(VERSION, str(fleet.version))

    def compute(fleet: Fleet) -> bytes:
        fleet.meter.spend(_MEMBER * fleet.groups.size(group))
        members = {
            consumer: [fleet.uuid(row) for row in hosts]
            for consumer, hosts in sorted(fleet.groups.members(group).items())
        }
        return msgspec.json.encode(ShownMembers(fleet.version, members))

    return msgspec.Raw(await service.queries.answer(("members", group), check, compute))
