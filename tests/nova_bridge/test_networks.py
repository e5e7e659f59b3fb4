"""Segments of networks and ports, read from a small Neutron on loopback by the options of nova.conf."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.model.spec import RequestedNetwork, RequestSpec
from roost.nova.networks import CACHED_SECONDS, NetworksUnknown, NovaNetworks
from roost.process.option_source import Source
from roost.scheduler import NoValidHost, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.options import RequestFilterOptions
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.scheduler import Scheduler
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import AGGREGATES, NOW, Cloud, Kept, Provider, filled, report, spec, uuid_of
from support.neutron import Neutron

ROUTED = SchedulerOptions(
    request_filters=RequestFilterOptions(query_placement_for_routed_network_aggregates=True)
)
PORT = RequestedNetwork(port_id="port")
NETWORK = RequestedNetwork(network_id="net")


@pytest.fixture
def neutron() -> Iterator[Neutron]:
    made = Neutron()
    yield made
    made.close()


def configuration(folder: Path, url: str) -> Source:
    file = folder / "nova.conf"
    file.write_text(f"[neutron]\nauth_type = none\nendpoint_override = {url}\n")
    return Source((str(file),))


@pytest.fixture
def source(tmp_path: Path, neutron: Neutron) -> Source:
    return configuration(tmp_path, neutron.url)


def run(
    source: Source,
    work: Callable[[NovaNetworks], Awaitable[None]],
    options: SchedulerOptions = ROUTED,
) -> None:
    async def main() -> None:
        networks = NovaNetworks.configured(source, options)
        try:
            await work(networks)
        finally:
            await networks.close()

    asyncio.run(main())


async def segments(networks: NovaNetworks, *wanted: RequestedNetwork) -> list[tuple[str, ...]]:
    found = await networks.filled(spec(requested_networks=wanted))
    assert [msgspec.structs.replace(each, segments=()) for each in found.requested_networks] == list(wanted)
    return [each.segments for each in found.requested_networks]


def test_a_network_may_be_on_any_segment_that_a_subnet_of_it_has(source: Source, neutron: Neutron) -> None:
    for segment in ("s1", "s2", "s1", None):
        neutron.subnet("net", segment)
    neutron.subnet("other", "s3")

    async def work(networks: NovaNetworks) -> None:
        assert await segments(networks, NETWORK) == [("s1", "s2")]

    run(source, work)


def test_subnets_come_on_pages(source: Source, neutron: Neutron) -> None:
    neutron.page = 2
    for number in range(5):
        neutron.subnet("net", f"s{number}")

    async def work(networks: NovaNetworks) -> None:
        assert await segments(networks, NETWORK) == [tuple(f"s{number}" for number in range(5))]
        assert len(neutron.asked) == 3

    run(source, work)


@pytest.mark.parametrize(("addressed", "expected"), [(True, ("s2",)), (False, ("s1", "s2"))])
def test_a_port_with_an_address_is_on_the_segment_of_its_subnet(
    source: Source, neutron: Neutron, addressed: bool, expected: tuple[str, ...]
) -> None:
    neutron.subnet("net", "s1")
    second = neutron.subnet("net", "s2")
    neutron.port("port", "net", *([second] if addressed else []))

    async def work(networks: NovaNetworks) -> None:
        assert await segments(networks, PORT) == [expected]

    run(source, work)


def test_a_network_that_is_not_routed_has_no_segments(source: Source, neutron: Neutron) -> None:
    subnet = neutron.subnet("net", None)
    neutron.port("port", "net", subnet)

    async def work(networks: NovaNetworks) -> None:
        assert await segments(networks, NETWORK, PORT) == [(), ()]

    run(source, work)


def test_networks_are_read_again_after_a_while_and_ports_each_time(source: Source, neutron: Neutron) -> None:
    passed = 0.0
    subnet = neutron.subnet("net", "s1", "subnet")
    neutron.port("port", "net", subnet)

    async def work(networks: NovaNetworks) -> None:
        nonlocal passed
        assert await segments(networks, PORT, NETWORK) == [("s1",), ("s1",)]
        neutron.asked.clear()
        passed = CACHED_SECONDS - 1
        neutron.subnet("net", "s2")
        assert await segments(networks, PORT, NETWORK) == [("s1",), ("s1",)]
        assert neutron.asked == ["/v2.0/ports/port"]
        passed = CACHED_SECONDS
        assert await segments(networks, PORT, NETWORK) == [("s1",), ("s1", "s2")]
        assert sorted(neutron.asked) == [
            "/v2.0/ports/port", "/v2.0/ports/port", "/v2.0/subnets", "/v2.0/subnets/subnet",
        ]  # fmt: skip

    async def main() -> None:
        configured = NovaNetworks.configured(source, ROUTED)
        networks = NovaNetworks(configured._service, monotonic=lambda: passed)
        await work(networks)
        await networks.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("wanted", "text"),
    [(PORT, "the network service: Ports could not be found"), (NETWORK, "cannot be read")],
)
def test_a_port_that_is_gone_and_a_foreign_answer_are_errors(
    source: Source, neutron: Neutron, wanted: RequestedNetwork, text: str
) -> None:
    if wanted is NETWORK:
        neutron.broken = b'{"subnets": 5}'

    async def work(networks: NovaNetworks) -> None:
        with pytest.raises(NetworksUnknown, match=text):
            await segments(networks, wanted)

    run(source, work)


def test_a_neutron_that_is_away_is_an_error_and_back_it_answers(tmp_path: Path) -> None:
    neutron = Neutron()
    source = configuration(tmp_path, neutron.url)
    neutron.close()

    async def work(networks: NovaNetworks) -> None:
        with pytest.raises(NetworksUnknown, match="the network service does not answer"):
            await segments(networks, NETWORK)
        # Without networks there is nothing to ask.
        assert await networks.filled(spec()) == spec()

    run(source, work)


def test_a_neutron_that_never_answers_is_an_error(source: Source) -> None:
    class Silent:
        async def ask(self, *_: object, **__: object) -> None:
            await asyncio.sleep(60)

    async def main() -> None:
        networks = NovaNetworks(Silent(), answer_seconds=0.01)  # type: ignore[arg-type]
        with pytest.raises(NetworksUnknown, match=r"gives no answer in 0\.01 s"):
            await segments(networks, NETWORK)

    asyncio.run(main())


def test_without_the_option_nothing_is_asked(source: Source, neutron: Neutron) -> None:
    async def work(networks: NovaNetworks) -> None:
        assert await segments(networks, NETWORK, PORT) == [(), ()]
        assert neutron.asked == []

    run(source, work, SchedulerOptions())
    run(Source(), work, SchedulerOptions())


def test_the_option_without_a_neutron_is_an_error_of_the_configuration() -> None:
    with pytest.raises(OperatorError, match=r"\[neutron\] has no auth_type"):
        NovaNetworks.configured(Source(), ROUTED)


def test_the_segments_of_a_port_choose_the_host(source: Source, neutron: Neutron, tmp_path: Path) -> None:
    """To the end: the segment is a provider, and its aggregate has the hosts that it reaches."""
    segment = uuid_of(0x51)
    providers = [Provider(segment, {}, None, frozenset(), frozenset(AGGREGATES[1:2]))]
    inventories = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(99)}
    for number, aggregate in enumerate(AGGREGATES[:3]):
        providers.append(
            Provider(uuid_of(number), dict(inventories), None, frozenset(), frozenset({aggregate}))
        )
    cloud = Cloud(providers, [report(f"host{number}", uuid_of(number)) for number in range(3)])
    neutron.port("port", "net", neutron.subnet("net", segment))
    wanted = spec(requested_networks=(PORT,))

    async def work(networks: NovaNetworks) -> None:
        async with filled(tmp_path / "roost.db", cloud) as ledger:
            scheduler = Scheduler(LocalGateway(ledger, HostPools(cloud.table(), ROUTED)), Kept(), lambda: NOW)

            async def hosts(of: RequestSpec) -> list[str]:
                found = await scheduler.select_destinations(HostRequest.new(of, 1, 5))
                return [each.host for each in (found[0].selected, *found[0].alternates)]

            assert len(await hosts(wanted)) == 3
            full = await networks.filled(wanted)
            assert await hosts(full) == ["host1"]
            with pytest.raises(NoValidHost):
                await hosts(msgspec.structs.replace(full, ignore_hosts=frozenset({"host1"})))

    run(source, work)
