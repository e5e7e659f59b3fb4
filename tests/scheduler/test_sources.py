"""Hosts from placement, the cells' databases, or a list that is some seconds old: the same decisions."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from roost.model.inventory import Inventory
from roost.model.node import NodeInstance, NodeReport
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.candidates.reported_gateway import ReportedGateway
from roost.scheduler.candidates.source_choice import PLACEMENT_SERVICE_VERSION, SwitchingGateway
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from support.clouds import NOW, Cloud, Kept, Provider, filled, over_http, report, spec, uuid_of

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def machine(number: int, vcpus: int, gib: int, used: int = 0, ratio: float = 1.0, reserved: int = 0) -> Any:
    """A host with 10 GiB of disk for each GiB of memory: as placement has it, and as it reports."""
    memory, disk = gib * 1024, gib * 10
    sizes = {"VCPU": (vcpus, ratio), "MEMORY_MB": (memory, 1.0), "DISK_GB": (disk, ratio)}
    inventories = {
        name: Inventory(total, reserved if name == "VCPU" else 0, 1, total, 1, ratio_of)
        for name, (total, ratio_of) in sizes.items()
    }
    uses = {"VCPU": used, "MEMORY_MB": used * 512, "DISK_GB": used * 5} if used else {}
    reported = report(
        f"host{number}",
        uuid_of(number),
        vcpus=vcpus,
        vcpus_used=used,
        reserved_vcpus=reserved,
        memory_mb=memory,
        free_ram_mb=memory - used * 512,
        disk_gb=disk,
        free_disk_mb=(disk - used * 5) * 1024,
        cpu_allocation_ratio=ratio,
        ram_allocation_ratio=1.0,
        disk_allocation_ratio=ratio,
    )
    return Provider(uuid_of(number), inventories, used=uses), reported


@st.composite
def machines(draw: st.DrawFn) -> Cloud:
    made = [
        machine(
            number,
            draw(st.integers(2, 8)),
            draw(st.integers(1, 4)),
            draw(st.integers(0, 1)),
            draw(st.sampled_from([1.0, 1.5, 4.0])),
            draw(st.integers(0, 1)),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return Cloud([each for each, _ in made], [each for _, each in made])


FILTERS = ("ComputeFilter", "AvailabilityZoneFilter")
WEIGHERS = ("CPUWeigher",)
REQUESTS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from([256, 1024]), st.integers(0, 12), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


def pools(cloud: Cloud, seconds: float = 0.0) -> HostPools:
    options = SchedulerOptions(filters=FILTERS, weighers=WEIGHERS, host_list_seconds=seconds)
    return HostPools(cloud.table(), options)


async def decided(gateway: Gateway, requests: Any) -> list[Any]:
    scheduler = Scheduler(gateway, Kept(), lambda: NOW, monotonic=lambda: 0.0)
    found: list[Any] = []
    for number, (vcpus, memory, disk, count) in enumerate(requests):
        names = [uuid_of(0xA000 + number * 16 + each) for each in range(count)]
        try:
            placed = await scheduler.select_destinations(
                HostRequest(spec(vcpus, memory, disk), tuple(names), 1, min_count=1)
            )
        except NoValidHost:
            found.append(None)
        else:
            found.append(
                [(one.selected.host, one.selected.allocations, len(one.alternates)) for one in placed]
            )
    return found


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(machines(), REQUESTS)
def test_same_decisions_on_cpu_memory_and_disk(empty_database: Path, cloud: Cloud, requests: Any) -> None:
    async def compare(folder: Path) -> None:
        async with filled(folder / "local.db", cloud, empty_database) as ledger:
            expected = await decided(LocalGateway(ledger, pools(cloud)), requests)
        assert await decided(ReportedGateway(pools(cloud)), requests) == expected
        async with (
            filled(folder / "http.db", cloud, empty_database) as ledger,
            over_http(ledger) as placement,
        ):
            assert await decided(HttpGateway(placement, pools(cloud, 60.0)), requests) == expected

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        asyncio.run(compare(Path(folder)))


# All nodes of the cells' databases


class Never:
    """A gateway that must not be asked."""

    def __init__(self, pools: HostPools) -> None:
        self.pools = pools

    async def decide(self, *arguments: Any) -> Any:
        raise AssertionError("placement was asked")

    use_alternate = decide


def scheduler_of(gateway: Gateway) -> Scheduler:
    return Scheduler(gateway, Kept(), lambda: NOW)


def reported(*reports: NodeReport) -> ReportedGateway:
    return ReportedGateway(HostPools(NodeTable(reports)))


def old(number: int, **more: Any) -> NodeReport:
    facts = {"service_version": PLACEMENT_SERVICE_VERSION - 1, **more}
    return msgspec.structs.replace(machine(number, 4, 4)[1], **facts)


async def hosts_of(scheduler: Scheduler, count: int = 1, **more: Any) -> list[str]:
    placed = await scheduler.select_destinations(HostRequest.new(spec(**more), count))
    return [each.selected.host for each in placed]


def test_old_computes_are_scheduled_without_placement_with_one_warning_on_the_way_in_and_out() -> None:
    class Placement(Never):
        async def decide(self, *arguments: Any) -> Any:
            raise NoValidHost("run", "placement was asked", (), ())

    gateway = reported(old(0), msgspec.structs.replace(old(1), service_version=70))
    table = gateway.pools.table
    scheduler = scheduler_of(SwitchingGateway(Placement(gateway.pools), gateway))

    async def run() -> None:
        with capture_logs() as logs:
            for _ in range(3):
                assert await hosts_of(scheduler)
            assert [log["event"] for log in logs] == [
                "hosts come from the cells' databases: computes are older than placement"
            ]
            assert (logs[0]["nodes"], logs[0]["oldest_service_version"]) == (1, 15)
            table.update([msgspec.structs.replace(old(0), service_version=PLACEMENT_SERVICE_VERSION)])
            for _ in range(3):
                with pytest.raises(NoValidHost, match="placement was asked"):
                    await hosts_of(scheduler)
            assert [log["event"] for log in logs[1:]] == [
                "hosts come from placement again: no compute is older than it"
            ]

    asyncio.run(run())


def test_computes_that_report_no_version_count_as_new() -> None:
    gateway = reported(old(0, service_version=0))
    scheduler = scheduler_of(SwitchingGateway(gateway, Never(gateway.pools)))
    assert asyncio.run(hosts_of(scheduler)) == ["host0"]


def test_decisions_between_two_reports_do_not_overbook() -> None:
    gateway = reported(old(0), old(1))
    table, scheduler = gateway.pools.table, scheduler_of(gateway)

    async def run() -> None:
        placed = await scheduler.select_destinations(HostRequest.new(spec(4), 2))
        assert sorted(each.selected.host for each in placed) == ["host0", "host1"]
        with pytest.raises(NoValidHost, match="no node reports room for VCPU=4"):
            await hosts_of(scheduler, vcpus=4)
        # The host reports the instance, and that it uses less than was asked for.
        one = placed[0]
        there = old(int(one.selected.host[-1]), instances={one.instance: NodeInstance()}, vcpus_used=0)
        table.update([there])
        assert await hosts_of(scheduler, vcpus=4) == [one.selected.host]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"required_traits": frozenset({"CUSTOM_FAST"})}, "nodes report no traits: CUSTOM_FAST are required"),
        (
            {"extra_specs": {"resources:VGPU": "1"}},
            "where nodes report VCPU, MEMORY_MB, DISK_GB, and not VGPU",
        ),
        ({"vcpus": 5}, "no node reports room for VCPU=5"),
    ],
)
def test_refusal_says_what_nodes_do_not_report(wish: dict[str, Any], text: str) -> None:
    scheduler = scheduler_of(reported(old(0, cpu_allocation_ratio=9.0)))
    with pytest.raises(NoValidHost, match=text):
        asyncio.run(hosts_of(scheduler, **wish))


def test_alternate_is_used_without_a_claim() -> None:
    gateway = reported(old(0), old(1), old(2))
    table, scheduler = gateway.pools.table, scheduler_of(gateway)

    async def run() -> None:
        [placed] = await scheduler.select_destinations(HostRequest.new(spec(4), 1, 2))
        assert placed.selected.generation is None, "nothing is claimed"
        table.update([msgspec.structs.replace(old(1), enabled=False)])
        found = await scheduler.use_alternate(
            AlternateRequest(
                spec(4),
                placed.instance,
                placed.selected,
                placed.alternates,
                reason="no IP",
                run="r",
                request_id="q",
            )
        )
        assert found.selected is not None
        assert found.selected.host == "host2"
        assert [each.refusal for each in found.tries] == ["the host is disabled", None]
        assert await hosts_of(scheduler, vcpus=4) == ["host0"], "the failed host is free again"

    asyncio.run(run())


# Placement is being filled


@pytest.mark.parametrize("over", ["ledger", "http"])
def test_refusal_says_that_placement_is_being_filled(tmp_path: Path, empty_database: Path, over: str) -> None:
    cloud = Cloud([], [old(number, service_version=0) for number in range(3)])

    async def run() -> None:
        async with (
            filled(tmp_path / "roost.db", cloud, empty_database) as ledger,
            over_http(ledger) as client,
        ):
            hosts = HostPools(cloud.table())
            gateway: Gateway = LocalGateway(ledger, hosts) if over == "ledger" else HttpGateway(client, hosts)
            text = "placement is being filled: 3 of 3 .* that report have no provider there"
            with pytest.raises(NoValidHost, match=text):
                await hosts_of(scheduler_of(gateway))

    asyncio.run(run())
