"""Reads Nova's RequestSpec into Roost's.

Fields that Nova derives from flavor and image (``numa_topology``, ``limits``) are derived again and not read.
Fields that no scheduler depends on are not read either.

Source: ``nova.objects.RequestSpec`` and the objects in it, Nova 34.0.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import msgspec

from roost.model.allocation import GroupPolicy
from roost.model.request import RequestGroup, all_of
from roost.model.spec import (
    Flavor,
    Image,
    NetworkMetadata,
    NumaPolicy,
    Operation,
    PciRequest,
    RequestedDestination,
    RequestedNetwork,
    RequestSpec,
    ServerGroup,
)
from roost.scheduler.api.wire.nova_object import NovaFields
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.places import CHECK_HINT

REBUILD = "rebuild"
"""The value of the hint `CHECK_HINT` by which Nova asks if an instance may stay on its host."""

_LISTED = {"hw_numa_cpus", "hw_numa_mem"}
"""Image properties that are lists in Nova, with an entry for each NUMA node of the guest."""


def request_spec_of(spec: NovaFields, operation: Operation | None) -> RequestSpec:
    """Read the request spec. ``operation``: the purpose of the host, which Nova's spec does not have.

    Raises: `BadRequestSpec`.
    """
    parameters = spec.object("request_level_params", "RequestLevelParams")
    hints = dict(_hints(spec))
    if operation is None:
        operation = "rebuild" if hints.get(CHECK_HINT) == (REBUILD,) else "create"
    networks = spec.object("requested_networks", "NetworkRequestList")
    pci_requests = _pci_requests(spec.object("pci_requests", "InstancePCIRequests"))
    return RequestSpec(
        project_id=spec.need("project_id", str),
        user_id=spec.need("user_id", str),
        flavor=_flavor(spec),
        operation=operation,
        image=_image(spec.object("image", "ImageMeta")),
        volume_backed=spec.get("is_bfv", bool) or False,
        availability_zone=spec.get("availability_zone", str),
        group=_group(spec.object("instance_group", "InstanceGroup")),
        requested_resources=tuple(
            _request_group(each, number)
            for number, each in enumerate(spec.objects("requested_resources", "RequestGroup"), 1)
        ),
        pci_requests=pci_requests,
        root_required=frozenset(parameters.texts("root_required")) if parameters else frozenset(),
        root_forbidden=frozenset(parameters.texts("root_forbidden")) if parameters else frozenset(),
        same_subtree=parameters.lists("same_subtree") if parameters else (),
        requested_networks=tuple(_networks(networks, pci_requests)) if networks else (),
        network_metadata=_metadata(spec.object("network_metadata", "NetworkMetadata")),
        requested_destination=_destination(spec.object("requested_destination", "Destination")),
        force_hosts=spec.texts("force_hosts"),
        force_nodes=spec.texts("force_nodes"),
        ignore_hosts=frozenset(spec.texts("ignore_hosts")),
        retried_hosts=frozenset(_retried(spec.object("retry", "SchedulerRetries"))),
        scheduler_hints=hints,
    )


def _flavor(spec: NovaFields) -> Flavor:
    flavor = spec.object("flavor", "Flavor")
    if flavor is None:
        raise BadRequestSpec(f"{spec.path}.flavor is missing")
    return Flavor(
        name=flavor.need("name", str),
        vcpus=flavor.need("vcpus", int),
        memory_mb=flavor.need("memory_mb", int),
        disk_gb=flavor.get("root_gb", int) or 0,
        extra_specs={
            key: str(value)
            for key, value in (flavor.get("extra_specs", dict) or {}).items()
            if value is not None
        },
        ephemeral_gb=flavor.get("ephemeral_gb", int) or 0,
        swap_mb=flavor.get("swap", int) or 0,
    )


def _image(image: NovaFields | None) -> Image | None:
    if image is None:
        return None
    properties = image.object("properties", "ImageMetaProps")
    return Image(
        id=image.get("id", str),
        disk_format=image.get("disk_format", str),
        properties=dict(_properties(properties.all())) if properties else {},
    )


def _properties(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the properties as texts, as an image has them."""
    for name, value in properties.items():
        if value is None:
            continue
        if name in ("traits_required", "traits_forbidden"):
            for trait in value if isinstance(value, list) else [value]:
                yield f"trait:{trait}", name.removeprefix("traits_")
        elif name in _LISTED and isinstance(value, list):
            for number, each in enumerate(value):
                yield f"{name}.{number}", ",".join(map(str, each)) if isinstance(each, list) else str(each)
        elif isinstance(value, list | dict):
            yield name, msgspec.json.encode(value).decode()
        else:
            yield name, str(value)


def _group(group: NovaFields | None) -> ServerGroup | None:
    if group is None:
        return None
    policies = group.texts("policies")
    policy = group.get("policy", str) or (policies[0] if policies else None)
    if policy not in get_args(GroupPolicy):
        raise BadRequestSpec(f"{group.path}.policy is {policy!r}, which is no policy of server groups")
    rules = group.get("_rules", dict) or group.get("rules", dict) or {}
    most = str(rules.get("max_server_per_host", 1))
    if not most.isdecimal():
        raise BadRequestSpec(
            f"{group.path}: max_server_per_host is {most[:40]!r}, and must be a whole number"
        )
    return ServerGroup(
        uuid=group.need("uuid", str),
        policy=cast(GroupPolicy, policy),
        hosts=group.texts("hosts"),
        max_server_per_host=int(most),
        members=group.texts("members"),
    )


def _request_group(group: NovaFields, number: int) -> RequestGroup:
    """Read a requested group; its suffix is the id of its requester, else its number."""
    if group.get("use_same_provider", bool) is False:
        raise BadRequestSpec(
            f"{group.path}: use_same_provider is false: only the flavor's own group may be so"
        )
    return RequestGroup(
        resources=msgspec.convert(group.get("resources", dict) or {}, dict[str, int]),
        suffix=group.get("requester_id", str) or f"_{number}",
        required=all_of(*group.texts("required_traits")),
        forbidden=frozenset(group.texts("forbidden_traits")),
        member_of=group.lists("aggregates"),
        forbidden_aggregates=frozenset(group.texts("forbidden_aggregates")),
        in_tree=group.get("in_tree", str),
    )


def _pci_requests(requests: NovaFields | None) -> tuple[PciRequest, ...]:
    if requests is None:
        return ()
    return tuple(
        PciRequest(
            id=each.get("request_id", str) or f"pci{number}",
            count=each.get("count", int) or 1,
            specs=tuple(msgspec.convert(each.get("spec", list) or [], list[dict[str, str | None]])),
            alias=each.get("alias_name", str),
            numa_policy=cast(NumaPolicy | None, _numa_policy(each)),
            requester_id=each.get("requester_id", str),
        )
        for number, each in enumerate(requests.objects("requests", "InstancePCIRequest"), 1)
    )


def _numa_policy(request: NovaFields) -> str | None:
    policy = request.get("numa_policy", str)
    if policy is not None and policy not in get_args(NumaPolicy):
        raise BadRequestSpec(f"{request.path}.numa_policy is {policy!r}")
    return policy


def _networks(networks: NovaFields, pci_requests: Sequence[PciRequest]) -> Iterator[RequestedNetwork]:
    """Read the networks and ports.

    Nova reads from Neutron which ports a SmartNIC serves. The PCI request of such a port, which Nova's API
    made from the same answer, has it as well.
    """
    by_smartnic = {
        request.requester_id
        for request in pci_requests
        if any((tags.get("remote_managed") or "").lower() == "true" for tags in request.specs)
    }
    for each in networks.objects("objects", "NetworkRequest"):
        network, port = each.get("network_id", str), each.get("port_id", str)
        if network is not None or port is not None:
            remote = port is not None and port in by_smartnic
            yield RequestedNetwork(network_id=network, port_id=port, remote_managed=remote)


def _metadata(metadata: NovaFields | None) -> NetworkMetadata | None:
    if metadata is None:
        return None
    physnets = frozenset(metadata.texts("physnets"))
    return NetworkMetadata(physnets=physnets, tunneled=metadata.get("tunneled", bool) or False)


def _destination(destination: NovaFields | None) -> RequestedDestination | None:
    if destination is None:
        return None
    cell = destination.object("cell", "CellMapping")
    return RequestedDestination(
        host=destination.get("host", str),
        node=destination.get("node", str),
        cell=None if cell is None else cell.get("name", str) or None,
        cell_uuid=None if cell is None else cell.get("uuid", str) or None,
        aggregates=tuple(frozenset(each.split(",")) for each in destination.texts("aggregates")),
        forbidden_aggregates=frozenset(destination.texts("forbidden_aggregates")),
        allow_cross_cell_move=destination.get("allow_cross_cell_move", bool) or False,
    )


def _retried(retry: NovaFields | None) -> Iterator[str]:
    hosts = None if retry is None else retry.object("hosts", "ComputeNodeList")
    for each in [] if hosts is None else hosts.objects("objects", "ComputeNode"):
        host = each.get("host", str)
        if host is not None:
            yield host


def _hints(spec: NovaFields) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, values in (spec.get("scheduler_hints", dict) or {}).items():
        listed = values if isinstance(values, list) else [values]
        yield key, tuple(map(str, listed))
