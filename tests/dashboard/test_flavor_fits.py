"""The filter by flavor: hosts that it keeps are exactly those that a real claim succeeds on."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.dashboard.fleet.flavor_fits import KEPT_SECONDS, FlavorFits
from roost.dashboard.fleet.hosts import FleetHosts
from roost.ledger import Ledger
from roost.model.spec import Flavor, RequestSpec
from roost.placement.commands.allocations import DeleteAllocations
from roost.records import Retention
from roost.records.backend import open_sql_records
from roost.scheduler import NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import GPU, NOW, Cloud, Kept, clouds, filled, flat, report, spec, uuid_of
from support.fleet_pages import fleet_pages
from support.mixed_clouds import mixed_cloud

OPTIONS = SchedulerOptions()


def fits_of(
    ledger: Ledger, table: NodeTable, *flavors: Flavor, seconds: list[float] | None = None
) -> FlavorFits:
    async def known() -> Sequence[Flavor]:
        return flavors

    clock = iter(range(0, 10**9, 1000)).__next__ if seconds is None else lambda: seconds[0]
    return FlavorFits(ledger, table, OPTIONS, known, lambda: NOW, clock)


async def claimable(ledger: Ledger, table: NodeTable, flavor: Flavor) -> list[bool]:
    """Whether a claim on each host succeeds, by the index in the table; each is taken back."""
    scheduler = Scheduler(LocalGateway(ledger, HostPools(table, OPTIONS)), Kept(), lambda: NOW)
    found = [False] * table.size
    for index in table.indexes():
        wanted = RequestSpec(
            project_id="",
            user_id="",
            flavor=flavor,
            # A requested host would keep out shared disks, which are not in its tree.
            ignore_hosts=frozenset({*table.hosts} - {table.hosts[index]}),
        )
        instance = uuid_of(0xABC)
        try:
            await scheduler.select_destinations(HostRequest(wanted, (instance,)))
        except NoValidHost:
            continue
        found[index] = True
        await ledger.execute(DeleteAllocations(instance))
        table.release(instance)
    return found


EXTRA = st.sampled_from(
    [
        {},
        {},
        {"trait:CUSTOM_FAST": "required"},
        {"trait:CUSTOM_RED": "forbidden"},
        {f"resources1:{GPU}": "1"},
        {f"resources1:{GPU}": "2", "trait1:CUSTOM_RED": "required"},
        {f"resources1:{GPU}": "1", f"resources2:{GPU}": "1", "group_policy": "isolate"},
        {"resources:DISK_GB": "0"},
    ]
)


@settings(max_examples=40)
@given(clouds(), st.integers(1, 6), st.sampled_from([512, 2048, 4096]), st.sampled_from([0, 10, 40]), EXTRA)
def test_a_flavor_fits_where_a_claim_succeeds_on_trees_and_shared_disks(
    cloud: Cloud, vcpus: int, memory_mb: int, disk_gb: int, extra: dict[str, str]
) -> None:
    flavor = Flavor("wanted", vcpus, memory_mb, disk_gb, extra)

    async def main(folder: Path) -> None:
        async with filled(folder / "roost.db", cloud) as ledger:
            table = cloud.table()
            fits = fits_of(ledger, table, flavor)
            assert await fits.prepare("wanted") is None
            found = fits.fits(await ledger.current(), "wanted").tolist()
            assert found == await claimable(ledger, table, flavor)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


def test_the_map_and_its_groups_keep_the_hosts_that_a_flavor_fits_on(tmp_path: Path) -> None:
    async def main() -> None:
        cloud = mixed_cloud()
        async with fleet_pages(tmp_path, cloud) as pages:
            service = pages.service
            assert service.ledger is not None
            table = service.table
            wanted = await claimable(service.ledger, table, Flavor("4,3072,0", 4, 3072))
            now = await pages.now()
            kept = [wanted[index] for index in now.layout.nodes.tolist()]
            assert 0 < sum(kept) < len(kept)
            answer = await pages.get("/ui/map/levels?class=VCPU&flavor=4,3072,0")
            assert [byte != 35 for byte in answer.content] == kept
            view = await pages.view("/ui/map?class=VCPU&flavor=4,3072,0")
            assert view["hosts"] == sum(kept) and view["misfit"] is None
            page = await pages.page("/ui/map?class=VCPU&flavor=4,3072,0")
            assert 'value="4,3072,0"' in page

    asyncio.run(main())


def test_flavors_of_recent_decisions_are_known_by_name(tmp_path: Path) -> None:
    async def main() -> None:
        records = await open_sql_records(f"sqlite:///{tmp_path / 'own.db'}", Retention())
        async with filled(tmp_path / "first.db", flat(2)) as ledger:
            from roost.records import RecordQueue

            queue = RecordQueue(records)
            scheduler = Scheduler(
                LocalGateway(ledger, HostPools(flat(2).table(), OPTIONS)), queue, lambda: NOW
            )
            for vcpus in (1, 2):
                await scheduler.select_destinations(HostRequest(spec(vcpus=vcpus), (uuid_of(0x700 + vcpus),)))
            await queue.flush()
        assert await records.flavors(100) == [Flavor("small", 2, 1024, 10)]
        assert await records.flavors(0) == []
        await queue.close()

    asyncio.run(main())


def test_a_flavor_that_is_not_known_or_can_fit_nowhere_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(2)) as pages:
            view = await pages.view("/ui/map?flavor=m1.none")
            assert view["hosts"] == 0 and "no recent decision" in view["misfit"].lower()
            assert "4,8192,20" in await pages.page("/ui/map?flavor=m1.none")
        async with filled(tmp_path / "other.db", flat(2)) as ledger:
            table = flat(2).table()
            odd = Flavor("odd", 1, 1, 1, {"resources:CUSTOM_NOTHING": "1"})
            fits = fits_of(ledger, table, odd)
            reason = await fits.prepare("odd")
            assert reason is not None and "CUSTOM_NOTHING" in reason
            assert not fits.fits(await ledger.current(), "odd").any()

    asyncio.run(main())


def test_hosts_are_found_again_after_a_commit_but_not_all_the_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with filled(tmp_path / "roost.db", flat(2)) as ledger:
            table = flat(2).table()
            seconds = [0.0]
            fits = fits_of(ledger, table, seconds=seconds)
            await fits.prepare("8,1024,0")
            first = fits.fits(await ledger.current(), "8,1024,0")
            assert first.tolist() == [True, True]
            from roost.placement.commands.allocations import WriteAllocations
            from support.clouds import holding

            await ledger.execute(WriteAllocations((holding(uuid_of(0x55), {uuid_of(0): {"VCPU": 1}}),)))
            assert fits.fits(await ledger.current(), "8,1024,0").tolist() == [False, True]
            # States change without a commit, and are seen after a while.
            table.set_up("host1", False)
            assert fits.fits(await ledger.current(), "8,1024,0").tolist() == [False, True]
            seconds[0] += KEPT_SECONDS
            assert fits.fits(await ledger.current(), "8,1024,0").tolist() == [False, False]
            table.update([report("new", uuid_of(0))])
            assert len(fits.fits(await ledger.current(), "8,1024,0")) == table.size

    asyncio.run(main())


@pytest.mark.parametrize("text", ["4,", "4", "-1,5", "4,5,6,7", "99999999999,1", "a,b", ""])
def test_amounts_are_two_or_three_numbers(tmp_path: Path, text: str) -> None:
    async def main() -> None:
        async with filled(tmp_path / "roost.db", flat(1)) as ledger:
            fits = fits_of(ledger, flat(1).table())
            assert await fits.prepare(text) is not None

    asyncio.run(main())


def test_without_a_ledger_the_page_says_that_it_does_not_know(tmp_path: Path) -> None:
    async def main() -> None:
        async with fleet_pages(tmp_path, flat(2), over_http=True) as pages:
            view = await pages.view("/ui/map?flavor=1,1")
            assert view["hosts"] == 0 and "over HTTP" in view["misfit"]

    asyncio.run(main())


def test_hosts_have_no_fits_without_a_finder() -> None:
    hosts = FleetHosts(
        None, NodeTable(), default_zone="nova", rack_key="rack", down_seconds=60, clock=lambda: NOW
    )

    async def main() -> None:
        now = await hosts.now(flavor="1,1")
        assert hosts.fitting(now, "1,1").tolist() == [] and await hosts.flavors() == []

    asyncio.run(main())
