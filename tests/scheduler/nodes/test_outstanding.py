"""What claims take counts until a report contains it, and comes back when the attempt fails."""

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.assignment import AssignedCell, Assignment, digest
from roost.model.node import NodeInstance
from roost.model.spec import Flavor
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.outstanding import taken_by, unreported
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, Kept, filled, flat, report, spec

OLD, NEW = (Assignment("n", (AssignedCell(0, 0, pinned=((0, cpu),)),)) for cpu in (1, 2))


def counts(table: NodeTable, index: int = 0) -> tuple[int, int]:
    return table.num_instances.item(index), table.num_io_ops.item(index)


def test_claim_counts_until_a_report_lists_the_instance() -> None:
    table = NodeTable([report("a", "n", num_instances=5, free_ram_mb=1000), report("b", "m")])
    table.claim("i", 0, 600, 2048)
    table.claim("j", 0, 600)
    assert counts(table) == (7, 2)
    assert table.free_ram_mb[0] == -200
    assert math.isnan(table.free_disk_mb[0])
    # A report from before the claims, and one that lists one of them.
    table.update([report("a", "n", num_instances=5, free_ram_mb=900, failed_builds=1)])
    assert (counts(table), table.free_ram_mb[0]) == ((7, 2), -300)
    listed = {"i": NodeInstance()}
    table.update([report("a", "n", num_instances=6, num_io_ops=1, free_ram_mb=400, instances=listed)])
    assert (counts(table), table.free_ram_mb[0]) == ((7, 2), -200)
    table.update([report("a", "n", num_instances=6, free_ram_mb=400, instances=listed)])
    assert counts(table) == (7, 1)
    table.release("j", "unknown")
    assert (counts(table), table.free_ram_mb[0]) == ((6, 0), 400)
    table.claim("i", 0)
    assert counts(table) == (6, 0)


def test_built_instance_burdens_the_disk_no_longer() -> None:
    table = NodeTable([report("a", "n")])
    table.claim("i", 0)
    table.built("i")
    table.built("unknown")
    assert counts(table) == (1, 0)
    # A node that counts its instances and does not list them: what is built is among them.
    table.claim("j", 0)
    table.update([report("a", "n", num_instances=1)])
    assert counts(table) == (2, 1)


def test_claim_that_moves_and_node_that_goes() -> None:
    table = NodeTable([report("a", "n"), report("b", "m")])
    table.claim("i", 0)
    table.claim("i", 1)
    assert (counts(table, 0), counts(table, 1)) == ((0, 0), (1, 1))
    table.remove(["m"])
    assert not len(table.outstanding)
    table.update([report("c", "o")])
    assert counts(table, 1) == (0, 0)


def test_caches_hear_of_claims_only_if_somebody_reads_what_they_change() -> None:
    table = NodeTable([report("a", "n"), report("b", "m", free_ram_mb=1)])
    at = table.invalidations.end
    table.claim("i", 0)
    assert table.free_disk_mb is not None
    table.claim("j", 0)
    assert table.invalidations.since(at) == set()
    table.claim("k", 1)
    assert table.invalidations.since(at) == {1}
    assert table.num_io_ops is not None
    table.claim("l", 0)
    assert table.invalidations.since(at) == {0, 1}


INSTANCES = [f"i{number}" for number in range(5)]
events = st.one_of(
    st.tuples(st.just("claim"), st.sampled_from(INSTANCES), st.integers(0, 1)),
    st.tuples(st.sampled_from(["built", "release"]), st.sampled_from(INSTANCES), st.just(0)),
    st.tuples(st.just("report"), st.sets(st.sampled_from(INSTANCES)), st.integers(0, 1)),
)


@settings(deadline=None)
@given(st.lists(events, max_size=30))
def test_sums_are_what_the_reports_say_and_the_claims_beside_them(history: list) -> None:
    table = NodeTable([report("a", "n0"), report("b", "n1")])
    listed: list[set[str]] = [set(), set()]
    claimed: dict[str, tuple[int, bool]] = {}
    for event, subject, index in history:
        if event == "claim":
            table.claim(subject, index)
            claimed.pop(subject, None)
            if subject not in listed[index]:
                claimed[subject] = (index, True)
        elif event == "built":
            table.built(subject)
            if subject in claimed:
                claimed[subject] = (claimed[subject][0], False)
        elif event == "release":
            table.release(subject)
            claimed.pop(subject, None)
        else:
            listed[index] = subject
            instances = dict.fromkeys(subject, NodeInstance())
            table.update([report("ab"[index], f"n{index}", instances=instances, num_instances=len(subject))])
            claimed = {k: v for k, v in claimed.items() if v[0] != index or k not in subject}
    for index in range(2):
        ours = [building for at, building in claimed.values() if at == index]
        assert counts(table, index) == (len(listed[index]) + len(ours), sum(ours))


def test_what_an_instance_takes() -> None:
    flavor = Flavor("f", 1, 512, disk_gb=10, ephemeral_gb=2, swap_mb=64)
    assert taken_by(spec(flavor=flavor)) == (512, 12 * 1024)
    assert taken_by(spec(flavor=flavor, volume_backed=True)) == (512, 2 * 1024)


def test_burst_between_two_reports_and_refusals(tmp_path) -> None:
    """Claims count at once; those of a refused run, and of one that fails, come back."""

    async def run() -> None:
        async with filled(tmp_path / "api.db", flat(2, vcpus=3)) as ledger:
            table = flat(2, vcpus=3).table()
            scheduler = Scheduler(LocalGateway(ledger, HostPools(table)), Kept(), clock=lambda: NOW)
            await asyncio.gather(
                *(scheduler.select_destinations(HostRequest.new(spec(), 1)) for _ in range(4))
            )
            assert sorted(counts(table, index) for index in range(2)) == [(2, 2), (2, 2)]
            with pytest.raises(NoValidHost):
                await scheduler.select_destinations(HostRequest.new(spec(), 3))
            assert [counts(table, index) for index in range(2)] == [(2, 2), (2, 2)]
            [placed] = await scheduler.select_destinations(HostRequest.new(spec(), 1))
            assert sum(counts(table, index)[0] for index in range(2)) == 5
            table.release(placed.instance)
            assert sum(counts(table, index)[0] for index in range(2)) == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    ("listed", "counts"),
    [
        (None, False),
        (NodeInstance(), True),
        (NodeInstance(assignment=digest(NEW)), True),
        (NodeInstance(assignment=""), False),
        (NodeInstance(assignment=digest(OLD)), False),
    ],
    ids=["not listed", "a reporter that does not say", "the same", "none yet", "that of an earlier stay"],
)
def test_what_a_report_counts(listed: NodeInstance | None, counts: bool) -> None:
    instances = {} if listed is None else {"a": listed}
    left = unreported(report("host", "n", instances=instances), {"a": NEW})
    assert left == ({} if counts else {"a": NEW})


def test_a_reported_instance_without_an_assignment_is_no_concern() -> None:
    assert unreported(report("host", "n", instances={"a": NodeInstance()}), {}) == {}
