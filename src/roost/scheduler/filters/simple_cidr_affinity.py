"""Hosts whose address is in a network that hints name."""

import ipaddress
from collections.abc import Hashable

from roost.fleet.columns import Bools
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.base_classes import hint
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

DEFAULT_CIDR = "/24"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SimpleCIDRAffinityFilter:
    """The host's address is in the network of the scheduler hints ``build_near_host_ip`` and ``cidr``
    (``/24`` by default). An empty ``cidr`` means the address alone. A host without a reported address is
    excluded. Source: Nova's filter of this name."""

    name = "SimpleCIDRAffinityFilter"
    reads = (Key("hint", "build_near_host_ip"), Key("hint", "cidr"))
    looks_at = Looks.REPORT

    def no_effect(self, name: str, spec: RequestSpec, table: NodeTable) -> str | None:
        if name == "cidr" and not spec.scheduler_hints.get("build_near_host_ip"):
            return "it goes with the hint build_near_host_ip, which is missing"
        return None

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return _network(request)

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        network = _network(request)
        if network is None:
            return None
        return hosts.table.host_ip.judged(lambda address: _is_in(address, network), hosts.index) > 0


def _network(request: SchedulingRequest) -> Network | None:
    near = hint(request, "build_near_host_ip")
    if not near:
        return None
    cidr = hint(request, "cidr")
    text = near + (DEFAULT_CIDR if cidr is None else cidr)
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise BadRequestSpec(
            f"scheduler hints build_near_host_ip and cidr: {text!r} is no network"
        ) from error


def _is_in(address: str | None, network: Network) -> bool:
    try:
        return address is not None and ipaddress.ip_address(address) in network
    except ValueError:
        return False


PLUGIN = SimpleCIDRAffinityFilter
