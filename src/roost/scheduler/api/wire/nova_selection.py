"""Nova's Selection objects, from and to Roost's selections.

Nova's Selection has no weight and no assignment. It names a cell by a uuid, see
`roost.scheduler.nodes.cells`.

Source: ``nova.objects.Selection`` and ``nova.objects.SchedulerLimits``, Nova 34.0.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from roost.model.spec import Selection
from roost.scheduler.api.wire.nova_object import NovaFields, nova_object
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.cells import uuid_of_cell

_LIMITS: Final = ("numa_topology", "vcpu", "disk_gb", "memory_mb")

CLAIMED_AT: Final = "1.36"
"""The microversion at which Nova's conductors claim an alternate. They do not send the consumer type that
versions from 1.38 on require."""


class _Amounts(msgspec.Struct, forbid_unknown_fields=True):
    resources: dict[str, int]


class _AllocationRequest(msgspec.Struct):
    allocations: dict[str, _Amounts]
    mappings: dict[str, list[str]] = {}


def nova_selection(selection: Selection, nodename: str) -> dict[str, Any]:
    """Return a selection as Nova has it. ``nodename``: the name of its node."""
    request = {
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in selection.allocations.items()
        },
        "mappings": selection.mappings,
    }
    return nova_object(
        "Selection",
        "1.1",
        {
            "compute_node_uuid": selection.node,
            "service_host": selection.host,
            "nodename": nodename,
            "cell_uuid": uuid_of_cell(selection.cell),
            "limits": _limits(selection.limits),
            "allocation_request": msgspec.json.encode(request).decode(),
            "allocation_request_version": CLAIMED_AT,
            "availability_zone": selection.zone,
        },
    )


def legacy_selection(selection: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Selection as the dict that callers got who asked for no objects."""
    values = selection["nova_object.data"]
    limits = values["limits"]["nova_object.data"]
    return {
        "host": values["service_host"],
        "nodename": values["nodename"],
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
    }


def selection_of(data: Mapping[str, Any]) -> Selection:
    """Read a selection from an earlier response. Raises: `BadRequestSpec`."""
    fields = NovaFields(data, "Selection", "selection")
    try:
        text = fields.need("allocation_request", str)
        request = msgspec.json.decode(text, type=_AllocationRequest)
    except msgspec.DecodeError as error:
        raise BadRequestSpec(f"selection.allocation_request: {error}") from error
    return Selection(
        host=fields.need("service_host", str),
        node=fields.need("compute_node_uuid", str),
        cell=fields.need("cell_uuid", str),
        allocations={provider: each.resources for provider, each in request.allocations.items()},
        mappings=request.mappings,
        weight=0.0,
        zone=fields.get("availability_zone", str),
        allocation_request_version=fields.get("allocation_request_version", str) or "1.39",
    )


def _limits(limits: Mapping[str, object]) -> dict[str, Any]:
    values: dict[str, object] = {name: limits.get(name) for name in _LIMITS}
    numa = limits.get("numa_topology")
    if isinstance(numa, Mapping):
        values["numa_topology"] = _numa_limits(numa)
    return nova_object("SchedulerLimits", "1.0", values)


def _numa_limits(limits: Mapping[str, object]) -> dict[str, Any]:
    values = {
        name: limits[name] for name in ("cpu_allocation_ratio", "ram_allocation_ratio") if name in limits
    }
    network = limits.get("network_metadata")
    if isinstance(network, Mapping):
        values["network_metadata"] = nova_object("NetworkMetadata", "1.0", network)
    return nova_object("NUMATopologyLimits", "1.1", values)
