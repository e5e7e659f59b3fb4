"""Assignments in the ledger: the parts of the nodes' hardware that consumers have."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.fleet import Fleet
from roost.model.assignment import Assignment, digest_of_all
from roost.model.vocabulary import MAX_INT
from roost.placement.moments import VERSION
from roost.placement.v1.service import V1Service
from roost.placement.wire.uuids import DASHED_UUID, LONGEST_UUID, canonical_uuid, is_uuid_like
from roost.web.errors import BadRequest
from roost.web.request import Request, Response

MOST_NODES = 200
"""Nodes that one request may name. A request with more is refused."""

_CONSUMER = 20
"""Units of work of a consumer's assignment that is listed."""

_PARTS = 5
"""CPUs and devices of an assignment that are listed for one unit of work."""

_MOST_PARTS = 4096
_Uuid = Annotated[str, Meta(pattern=DASHED_UUID, max_length=LONGEST_UUID)]
_Number = Annotated[int, Meta(ge=0, le=MAX_INT)]
_Numbers = Annotated[tuple[_Number, ...], Meta(max_length=_MOST_PARTS)]
_Text = Annotated[str, Meta(max_length=4096, pattern=r"^[^\x00]*\Z")]


class WantedNumaCell(msgspec.Struct, forbid_unknown_fields=True):
    """One NUMA cell of a guest, and the part of a host cell that it has.

    `pinned` has pairs: a CPU of the guest, the host's CPU. `reserved` are host CPUs for emulator threads,
    `withheld` siblings that stay idle. `memory_mb` is in MiB, in pages of `page_size_kb` KiB.
    """

    guest: _Number
    host: _Number
    shared: _Number = 0
    pinned: Annotated[tuple[tuple[_Number, _Number], ...], Meta(max_length=_MOST_PARTS)] = ()
    reserved: _Numbers = ()
    withheld: _Numbers = ()
    memory_mb: _Number = 0
    page_size_kb: _Number | None = None


class WantedDevices(msgspec.Struct, forbid_unknown_fields=True):
    """PCI devices of one pool, for one PCI request."""

    request: _Text
    pool: _Text
    count: Annotated[int, Meta(ge=1, le=MAX_INT)]
    addresses: Annotated[tuple[_Text, ...], Meta(max_length=_MOST_PARTS)] = ()


class WantedAssignment(msgspec.Struct, forbid_unknown_fields=True):
    """The assignment of a consumer: its part of the hardware of one node. `node` is the node's root provider.

    No other consumer may have a CPU or PCI address of which this one has exclusive use. `beside` is the
    digest of the assignments on the node that this one was fitted beside: if they have changed, the request
    is refused with the code `placement.assignment.changed`. If it is left out, that is not checked.
    """

    node: _Uuid
    cells: Annotated[tuple[WantedNumaCell, ...], Meta(max_length=_MOST_PARTS)] = ()
    devices: Annotated[tuple[WantedDevices, ...], Meta(max_length=_MOST_PARTS)] = ()
    beside: Annotated[str, Meta(max_length=255)] | None = None

    def assignment(self) -> Assignment:
        """Return the assignment as a value of the model."""
        data = msgspec.to_builtins(self)
        del data["beside"]
        return msgspec.convert({**data, "node": canonical_uuid(self.node)}, Assignment)


class AssignmentsQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The nodes that a client asks about."""

    nodes: Annotated[
        str,
        Meta(
            min_length=1,
            description=f"The uuids of root providers, with commas between; {MOST_NODES} at most.",
        ),
    ]


class ShownNodeAssignments(msgspec.Struct, forbid_unknown_fields=True):
    """The assignments on a node: consumer -> assignment. `digest` is what a claim names as `beside`."""

    digest: str
    consumers: Mapping[str, Assignment]


class ShownAssignments(msgspec.Struct, forbid_unknown_fields=True):
    """The assignments on each node that was asked about, at a version of the ledger."""

    version: Annotated[int, Meta(ge=0)]
    nodes: Mapping[str, ShownNodeAssignments]


async def list_assignments(service: V1Service, req: Request, resp: Response) -> msgspec.Raw:
    """List which CPUs, pages and PCI devices of some nodes consumers were assigned.

    What is used on a node is what the node reports, and the assignments of consumers that its report does not
    contain yet. A node that does not exist has no assignments.
    """
    texts = req.query.nodes.split(",")
    wrong = next((text for text in texts if not is_uuid_like(text)), None)
    if wrong is not None:
        raise BadRequest(f"nodes must be uuids with commas between. Got: {wrong[:80]}")
    nodes = [canonical_uuid(text) for text in texts]
    if len(nodes) > MOST_NODES:
        raise BadRequest(f"nodes has {len(nodes)} uuids: ask about {MOST_NODES} at most at once.")

    def check(fleet: Fleet) -> None:
        resp.set_header(VERSION, str(fleet.version))

    def compute(fleet: Fleet) -> bytes:
        shown = {}
        for node in nodes:
            assigned = fleet.assigned.on(node)
            fleet.meter.spend(1 + sum(_CONSUMER + _parts(each) // _PARTS for each in assigned.values()))
            shown[node] = ShownNodeAssignments(digest_of_all(assigned), dict(sorted(assigned.items())))
        return msgspec.json.encode(ShownAssignments(fleet.version, shown))

    return msgspec.Raw(await service.queries.answer(("assignments", *nodes), check, compute))


def _parts(assignment: Assignment) -> int:
    """Return the number of CPUs and devices that an assignment names."""
    cells = sum(len(each.pinned) + len(each.reserved) + len(each.withheld) for each in assignment.cells)
    return cells + sum(len(each.addresses) for each in assignment.devices)
