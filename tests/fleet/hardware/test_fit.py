"""A guest gets host cells, CPUs, pages and devices by Nova's rules; hand-made cases."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from roost.fleet.hardware.cell_fit import CellLimits, fit_cell
from roost.fleet.hardware.fit import Fit, fit
from roost.fleet.hardware.guest_topology import ANY, LARGE, SMALL, GuestCell, GuestTopology
from roost.fleet.hardware.host_topology import HostTopology, decoded
from roost.fleet.hardware.lack import CellLack
from roost.model.assignment import AssignedCell, AssignedDevices
from roost.model.spec import NetworkMetadata
from support.numa_hosts import reported, reported_cell, two_cells

LIMITS = CellLimits(2.0, 1.5)


def guest(*cells: tuple[int, int], **more: Any) -> GuestTopology:
    """A guest of cells with (vCPUs, MiB), all dedicated or all shared by the policy."""
    dedicated = more.get("cpu_policy") == "dedicated"
    made, first = [], 0
    for number, (cpus, memory_mb) in enumerate(cells):
        pinned = tuple(range(first, first + cpus)) if dedicated else ()
        made.append(GuestCell(number, 0 if dedicated else cpus, pinned, memory_mb))
        first += cpus
    return GuestTopology(cells=tuple(made), **more)


def pinned(*cells: tuple[int, int], **more: Any) -> GuestTopology:
    return guest(*cells, cpu_policy="dedicated", **more)


def lack(cell: Mapping[str, Any], wanted: GuestTopology) -> str | None:
    """Why the first guest cell does not fit on a host cell, None if it does."""
    found = fit_cell(decoded(reported(cell)).cells[0], wanted, 0, LIMITS)
    return found.text if isinstance(found, CellLack) else None


def given(cell: Mapping[str, Any], wanted: GuestTopology) -> AssignedCell:
    """What the first guest cell gets of a host cell."""
    found = fit_cell(decoded(reported(cell)).cells[0], wanted, 0, LIMITS)
    assert isinstance(found, AssignedCell), found
    return found


def hosts_of(found: Fit | None) -> list[int] | None:
    return None if found is None else [cell.host for cell in found.cells]


# One cell


def test_shared_cpus_and_memory_are_overcommitted_by_the_ratios_but_never_to_one_guest() -> None:
    cell = reported_cell(0, range(4), cpu_usage=5, memory_usage=4096)
    assert lack(cell, guest((3, 1024))) is None
    assert lack(cell, guest((4, 1024))) == (
        "has room for 3 shared vCPUs of the 4 asked for, by the CPU allocation ratio"
    )
    assert lack(cell, guest((3, 2049))) == (
        "has room for 2048 MiB of the 2049 MiB asked for, by the memory allocation ratio"
    )
    empty = reported_cell(0, range(4))
    assert lack(empty, guest((5, 1))) == "has 4 shared CPUs of the 5 asked for"
    assert lack(empty, guest((1, 4097))) == "has 4096 MiB of memory of the 4097 MiB asked for"


def test_pinned_guests_get_no_memory_that_is_used() -> None:
    for pages in ({}, {4: 1024 * 256}):
        cell = reported_cell(0, range(4), pages=pages, memory_mb=1024, memory_usage=512)
        if pages:
            cell["mempages"][0]["used"] = 512 * 256
        assert lack(cell, pinned((1, 512))) is None
        assert lack(cell, pinned((1, 513))) == "has 512 MiB of memory of the 513 MiB asked for"
        assert lack(cell, guest((1, 513))) is None


def test_a_core_is_filled_before_the_next() -> None:
    cell = reported_cell(0, range(8), threads=2, pinned_cpus=[0])
    assert given(cell, pinned((4, 1))).pinned == ((0, 2), (1, 3), (2, 4), (3, 5))
    # Three whole cores are free. Seven CPUs need the thread beside the used one.
    assert given(cell, pinned((7, 1))).cpus == set(range(1, 8))
    assert lack(cell, pinned((8, 1))) == "has 7 dedicated CPUs free of the 8 asked for"


def test_threads_that_must_be_siblings_are() -> None:
    cell = reported_cell(0, range(4), threads=2, pinned_cpus=[0])
    assert given(cell, pinned((2, 1), thread_policy="require")).cpus == {2, 3}
    assert lack(cell, pinned((3, 1), thread_policy="require")) == (
        "has 2 CPUs in cores with free siblings of the 3 asked for"
    )
    assert lack(reported_cell(0, range(4)), pinned((2, 1), thread_policy="require")) == (
        "has no hyperthreading, which is asked for"
    )


def test_isolated_threads_have_cores_of_their_own() -> None:
    cell = reported_cell(0, range(6), threads=2, pinned_cpus=[0])
    got = given(cell, pinned((2, 1), thread_policy="isolate"))
    assert (got.pinned, got.withheld) == (((0, 2), (1, 4)), (3, 5))
    assert lack(cell, pinned((3, 1), thread_policy="isolate")) == "has 2 whole cores free of the 3 asked for"
    without_threads = reported_cell(0, range(3))
    assert given(without_threads, pinned((3, 1), thread_policy="isolate")).withheld == ()
    told_apart = reported_cell(0, range(4), dedicated=range(4, 8), threads=2)
    assert "no core can be kept whole" in (lack(told_apart, pinned((1, 1), thread_policy="isolate")) or "")


def test_emulator_threads_have_a_cpu_beside_the_first_cell() -> None:
    cell = reported_cell(0, range(4), threads=2)
    wanted = pinned((2, 1), (2, 1), isolate_emulator=True)
    assert given(cell, wanted).reserved == (2,)
    assert lack(cell, pinned((4, 1), isolate_emulator=True)) == (
        "has 4 dedicated CPUs free of the 5 asked for"
    )
    isolated = given(cell, pinned((1, 1), isolate_emulator=True, thread_policy="isolate"))
    assert (isolated.pinned, isolated.reserved, isolated.withheld) == (((0, 0),), (2,), (1, 3))
    second = fit_cell(decoded(reported(cell)).cells[0], wanted, 1, LIMITS)
    assert isinstance(second, AssignedCell)
    assert second.reserved == ()


def test_a_mixed_guest_has_shared_and_pinned_cpus() -> None:
    cell = reported_cell(0, range(2), dedicated=range(2, 4), cpu_usage=3)
    wanted = GuestTopology(cells=(GuestCell(0, 1, (1, 2), 1),), cpu_policy="mixed")
    got = given(cell, wanted)
    assert (got.shared, got.pinned) == (1, ((1, 2), (2, 3)))
    two_shared = GuestTopology(cells=(GuestCell(0, 2, (2,), 1),), cpu_policy="mixed")
    assert "by the CPU allocation ratio" in (lack(cell, two_shared) or "")


@pytest.mark.parametrize(
    ("asked", "memory_mb", "size"),
    [
        (SMALL, 512, 4),
        (LARGE, 512, 2048),
        (LARGE, 1024, 2**20),
        (ANY, 512, 2048),
        (ANY, 3, 4),
        (2048, 512, 2048),
        (2048, 3, None),
        (2**20, 2048, None),
        (16, 16, None),
    ],
)
def test_memory_is_in_the_largest_pages_that_were_asked_for(
    asked: int, memory_mb: int, size: int | None
) -> None:
    cell = reported_cell(0, range(4), pages={2048: 300, 4: 2**18, 2**20: 1})
    wanted = guest((1, memory_mb), page_size=asked)
    if size is None:
        assert "pages" in (lack(cell, wanted) or "")
    else:
        assert given(cell, wanted).page_size_kb == size


def test_reserved_and_used_pages_are_not_given_away() -> None:
    cell = reported_cell(0, range(4))
    cell["mempages"] = [{"size_kb": 2048, "total": 4, "used": 1, "reserved": 2}]
    assert lack(cell, guest((1, 2), page_size=2048)) is None
    assert lack(cell, guest((1, 4), page_size=2048)) == "has 2 MiB in pages that suit of the 4 MiB asked for"


# Several cells


def test_each_guest_cell_has_a_host_cell_of_its_own() -> None:
    host = decoded(two_cells((2, 4)))
    assert hosts_of(fit(host, pinned((2, 1), (3, 1)), LIMITS)) == [0, 1]
    assert hosts_of(fit(host, pinned((3, 1), (2, 1)), LIMITS)) == [1, 0]
    assert fit(host, pinned((3, 1), (3, 1)), LIMITS) is None
    assert fit(host, pinned((1, 1), (1, 1), (1, 1)), LIMITS) is None


def test_cells_that_are_used_less_are_preferred_or_those_that_are_used_more() -> None:
    by_cpus = decoded(reported(reported_cell(0, range(4), pinned_cpus=[0]), reported_cell(1, range(4, 8))))
    assert hosts_of(fit(by_cpus, pinned((1, 1)), LIMITS)) == [1]
    assert hosts_of(fit(by_cpus, pinned((1, 1)), LIMITS, pack=True)) == [0]
    by_memory = decoded(reported(reported_cell(0, range(4), memory_usage=1), reported_cell(1, range(4, 8))))
    assert hosts_of(fit(by_memory, guest((1, 1)), LIMITS)) == [1]
    assert hosts_of(fit(by_memory, guest((1, 1)), LIMITS, pack=True)) == [0]


class Near:
    """Devices of which each host cell has some."""

    def __init__(self, by_cell: Mapping[int, int], wanted: int) -> None:
        self._by_cell = by_cell
        self._wanted = wanted
        self.requested = wanted > 0
        self.asked: list[frozenset[int]] = []

    def free_by_cell(self) -> Mapping[int | None, int]:
        return {**self._by_cell}

    def choose(self, host_cells: Collection[int]) -> tuple[AssignedDevices, ...] | None:
        self.asked.append(frozenset(host_cells))
        if sum(self._by_cell.get(cell, 0) for cell in host_cells) < self._wanted:
            return None
        return (AssignedDevices("r", "pool", self._wanted),)


def eight_cells() -> HostTopology:
    return decoded(reported(*(reported_cell(at, [2 * at, 2 * at + 1]) for at in range(8))))


def test_the_cells_with_devices_are_for_guests_that_want_some() -> None:
    host = decoded(two_cells())
    near = Near({1: 2}, 1)
    found = fit(host, guest((1, 1)), LIMITS, devices=near)
    assert hosts_of(found) == [1]
    assert found is not None
    assert found.devices == (AssignedDevices("r", "pool", 1),)
    assert hosts_of(fit(host, guest((1, 1)), LIMITS, devices=Near({0: 2}, 0))) == [1]
    assert fit(host, guest((1, 1)), LIMITS, devices=Near({1: 2}, 3)) is None


def test_devices_are_asked_for_once_for_each_set_of_cells() -> None:
    near = Near({0: 1, 7: 1}, 3)
    assert fit(eight_cells(), pinned(*[(1, 1)] * 8), LIMITS, devices=near) is None
    assert near.asked == [frozenset(range(8))]
    some = Near({0: 1, 7: 1}, 3)
    assert fit(eight_cells(), pinned(*[(1, 1)] * 4), LIMITS, devices=some) is None
    assert len(some.asked) == len(set(some.asked)) == 70


def test_a_guest_is_on_the_cells_that_its_networks_are_close_to() -> None:
    host = decoded(
        reported(
            reported_cell(0, range(2), network_metadata={"physnets": ["red"], "tunneled": False}),
            reported_cell(1, range(2, 4), network_metadata={"physnets": ["blue"], "tunneled": True}),
            reported_cell(2, range(4, 6)),
        )
    )

    def on(cells: int, *physnets: str, tunneled: bool = False) -> list[int] | None:
        network = NetworkMetadata(physnets=frozenset(physnets), tunneled=tunneled)
        return hosts_of(fit(host, guest(*[(1, 1)] * cells), LIMITS, network=network))

    assert on(1, "red") == [0]
    assert on(1, "blue") == [1]
    assert on(1, tunneled=True) == [1]
    assert on(1, "green") == [0]
    assert on(1, "red", tunneled=True) is None
    assert on(2, "red", tunneled=True) == [0, 1]
    assert on(1) == [0]
