"""The segments of a request's networks and ports, read from Neutron, which Nova's RequestSpec does not have.

Nova's scheduler reads them itself where ``[scheduler] query_placement_for_routed_network_aggregates`` is set.
Source: ``routed_networks_filter`` of ``nova.scheduler.request_filter``, Nova 34.0.

A port with an address stays on the segment of its subnet; a network, or a port without an address, may be on
any segment that a subnet of the network has. Nova's second filter by networks, for ports that a SmartNIC
serves, needs no Neutron: the request's PCI requests tell.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from roost.model.errors import OperatorError
from roost.model.spec import RequestedNetwork, RequestSpec
from roost.process.option_source import Source
from roost.scheduler.errors import SchedulerError
from roost.scheduler.options import SchedulerOptions
from roost.web.auth.json_service import JsonService, ServiceAway, ServiceRefused

NETWORK_SERVICE: Final = ("neutron", "network", "the network service")
"""The group of the configuration, the type in the catalogue, and the name of the service."""

CACHED_SECONDS: Final = 60.0
"""Seconds after which the segments of a network or a subnet are read again."""

MOST_CACHED: Final = 4096
"""Networks and subnets whose segments are kept. Further ones end the oldest."""

ANSWER_SECONDS: Final = 10.0
"""Seconds in which the networks of one request must be read."""


class NetworksUnknown(SchedulerError):
    """The networks of a request cannot be read: Neutron does not answer, or knows no such network or port."""


class _Address(msgspec.Struct):
    subnet_id: str


class _Port(msgspec.Struct):
    network_id: str
    fixed_ips: list[_Address] = []


class _OnePort(msgspec.Struct):
    port: _Port


class _Subnet(msgspec.Struct):
    """A subnet; ``segment_id`` is None, or missing, if its network is not routed."""

    id: str = ""
    segment_id: str | None = None


class _OneSubnet(msgspec.Struct):
    subnet: _Subnet


class _Link(msgspec.Struct):
    rel: str


class _Subnets(msgspec.Struct):
    """A page of subnets. There is a next one if a link says so."""

    subnets: list[_Subnet]
    links: list[_Link] = msgspec.field(name="subnets_links", default_factory=list)


class NovaNetworks:
    """Fills the segments of networks into request specs. Close it at the end.

    ``service``: Neutron; None: the option is off, and nothing is read. ``monotonic``: a clock, in seconds.
    """

    def __init__(
        self,
        service: JsonService | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._service = service
        self._monotonic = monotonic
        self._answer_seconds = answer_seconds
        self._cached: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    @classmethod
    def configured(cls, source: Source, options: SchedulerOptions) -> "NovaNetworks":
        """Return the networks by the options of ``[neutron]``.

        Raises: `OperatorError` if segments are wanted and the group has no ``auth_type``.
        """
        if not options.request_filters.query_placement_for_routed_network_aggregates:
            return cls(None)
        service = JsonService.configured(source, *NETWORK_SERVICE)
        if service is None:
            raise OperatorError(
                "[scheduler] query_placement_for_routed_network_aggregates needs Neutron: [neutron] has no "
                "auth_type"
            )
        return cls(service)

    async def close(self) -> None:
        """Close all connections."""
        if self._service is not None:
            await self._service.close()

    async def filled(self, spec: RequestSpec) -> RequestSpec:
        """Return the spec with the segments of its networks and ports.

        Raises: `NetworksUnknown`.
        """
        if self._service is None or not spec.requested_networks:
            return spec
        try:
            async with asyncio.timeout(self._answer_seconds):
                networks = await asyncio.gather(
                    *(self._filled(self._service, each) for each in spec.requested_networks)
                )
        except TimeoutError as error:
            text = f"{NETWORK_SERVICE[2]} gives no answer in {self._answer_seconds:g} s"
            raise NetworksUnknown(text) from error
        except (ServiceAway, ServiceRefused) as error:
            raise NetworksUnknown(str(error)) from error
        except msgspec.ValidationError as error:
            raise NetworksUnknown(f"the answer of {NETWORK_SERVICE[2]} cannot be read: {error}") from error
        return replace(spec, requested_networks=tuple(networks))

    async def _filled(self, service: JsonService, wanted: RequestedNetwork) -> RequestedNetwork:
        network = wanted.network_id
        if wanted.port_id is not None:
            answer = await service.ask("GET", f"/v2.0/ports/{_quoted(wanted.port_id)}")
            port = msgspec.convert(answer, _OnePort).port
            if port.fixed_ips:
                # The other addresses of a port are on the same segment.
                subnet = port.fixed_ips[0].subnet_id
                return replace(wanted, segments=await self._cached_or(subnet, _of_subnet(service, subnet)))
            network = port.network_id
        if network is None:
            return wanted
        return replace(wanted, segments=await self._cached_or(network, _of_network(service, network)))

    async def _cached_or(self, uuid: str, read: Callable[[], Awaitable[tuple[str, ...]]]) -> tuple[str, ...]:
        """Return the segments of a network or a subnet, read now unless they were a moment ago."""
        now = self._monotonic()
        cached = self._cached.get(uuid)
        if cached is not None and now - cached[0] < CACHED_SECONDS:
            return cached[1]
        found = await read()
        self._cached.pop(uuid, None)
        self._cached[uuid] = now, found
        if len(self._cached) > MOST_CACHED:
            self._cached.popitem(last=False)
        return found


def _of_subnet(service: JsonService, subnet: str) -> Callable[[], Awaitable[tuple[str, ...]]]:
    async def read() -> tuple[str, ...]:
        answer = await service.ask("GET", f"/v2.0/subnets/{_quoted(subnet)}")
        segment = msgspec.convert(answer, _OneSubnet).subnet.segment_id
        return () if segment is None else (segment,)

    return read


def _of_network(service: JsonService, network: str) -> Callable[[], Awaitable[tuple[str, ...]]]:
    async def read() -> tuple[str, ...]:
        subnets: list[_Subnet] = []
        query = {"network_id": network}
        while True:
            page = msgspec.convert(await service.ask("GET", "/v2.0/subnets", query=query), _Subnets)
            subnets += page.subnets
            if not page.subnets or not any(link.rel == "next" for link in page.links):
                break
            query["marker"] = page.subnets[-1].id
        return tuple(dict.fromkeys(each.segment_id for each in subnets if each.segment_id is not None))

    return read


def _quoted(uuid: str) -> str:
    return quote(uuid, safe="")
