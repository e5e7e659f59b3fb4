"""NUMA topologies against Nova's: what flavors ask for, which hosts they fit on, and what they use there.

While Nova tries host cells, it remembers which guest cells fit on them, by ids that it changes meanwhile; and
it asks the page size that one host cell had of the others. So it refuses guests that fit, and takes some that
do not. What is compared is each decision afresh, and Nova's own where nothing can be mixed up; see
docs/differences.md.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from roost.fleet.hardware.cell_fit import CellLimits
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.fit import Fit, fit
from roost.fleet.hardware.guest_topology import ANY, LARGE, GuestTopology
from roost.fleet.hardware.host_topology import HostTopology, decoded, with_assigned
from roost.fleet.hardware.pci_choice import FreePools
from roost.model.spec import Flavor, Image, NetworkMetadata, PciRequest
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.near_cells import DevicesNearCells
from roost.scheduler.request.demand.guest_topology import guest_topology
from support import numa_worlds
from support.nova import Nova
from support.numa_hosts import enveloped

BATCH = 200


def plain(flavor: Flavor, image: Image | None = None) -> dict[str, Any]:
    return {
        "flavor": msgspec.to_builtins(flavor),
        "properties": {} if image is None else dict(image.properties),
    }


# What flavors ask for


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_flavors_and_images_ask_for_the_same_cells(nova: Nova, count: int) -> None:
    random = Random(count)
    seen = Counter[str]()
    for _ in range(0, count, BATCH):
        asked = [numa_worlds.flavor_and_image(random) for _ in range(BATCH)]
        answers = nova.ask("numa", "guests", requests=[plain(*each) for each in asked])
        for (flavor, image), theirs in zip(asked, answers, strict=True):
            ours: object
            try:
                guest = guest_topology(flavor, image)
                ours = None if guest is None else _described(guest)
            except BadRequestSpec as error:
                ours = f"{error}"
            kind = type(theirs).__name__
            assert kind == type(ours).__name__, (flavor, image, theirs, ours)
            if not isinstance(theirs, str):
                assert ours == theirs, (flavor, image)
            seen[kind] += 1
    assert min(seen[kind] for kind in ("dict", "str", "NoneType")) > count // 50, seen


def _described(guest: GuestTopology) -> dict[str, Any]:
    return {
        "cells": [[cell.id, cell.shared, list(cell.dedicated), cell.memory_mb] for cell in guest.cells],
        "cpu_policy": guest.cpu_policy,
        "thread_policy": guest.thread_policy,
        "page_size": guest.page_size,
        "isolate_emulator": guest.isolate_emulator,
    }


# How they fit


class Case(NamedTuple):
    """A guest and a host."""

    guest: GuestTopology
    host: HostTopology
    limits: CellLimits
    plain: dict[str, Any]
    pools: tuple[dict[str, Any], ...]
    requests: tuple[PciRequest, ...]
    network: NetworkMetadata | None
    pack: bool

    def fitted(self) -> Fit | None:
        devices = None
        pools = FreePools.reported(self.pools)
        if pools:
            devices = DevicesNearCells(pools, self.requests, self.host.sockets, None)
        elif self.requests:
            return None
        return fit(self.host, self.guest, self.limits, pack=self.pack, network=self.network, devices=devices)


def cases(random: Random, count: int) -> Iterator[Case]:
    while count:
        flavor = numa_worlds.flavor(random)
        try:
            guest = guest_topology(flavor, None)
        except BadRequestSpec:
            continue
        assert guest is not None
        host = enveloped(numa_worlds.topology(random))
        ratios = numa_worlds.ratios(random)
        network = numa_worlds.network(random)
        pools, requests = numa_worlds.devices(random)
        pack = random.random() < 0.3
        case = {
            "host": host,
            "request": plain(flavor),
            "ratios": ratios,
            "network": None
            if network is None
            else {"physnets": sorted(network.physnets), "tunneled": network.tunneled},
            "pack": pack,
            "pools": pools,
            "pci": [
                msgspec.to_builtins(each) | {"numa_policy": each.numa_policy, "count": each.count}
                for each in requests
            ],
        }
        yield Case(guest, decoded(host), CellLimits(*ratios), case, tuple(pools), requests, network, pack)
        count -= 1


def is_unmixed(case: Case) -> bool:
    """Whether nothing can be mixed up: one guest cell, and its page size is the same everywhere."""
    return len(case.guest.cells) == 1 and case.guest.page_size not in (LARGE, ANY)


@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_guests_fit_where_nova_fits_them(nova: Nova, count: int) -> None:
    random = Random(count)
    seen = Counter[str]()
    for _ in range(0, count, BATCH):
        made = list(cases(random, BATCH))
        answers = nova.ask("numa", "fits", cases=[each.plain for each in made])
        fitted = []
        for case, (as_is, afresh) in zip(made, answers, strict=True):
            found = case.fitted()
            ours = (
                None
                if found is None
                else [
                    [cell.host, cell.page_size_kb, len(cell.pinned), len(cell.reserved)]
                    for cell in found.cells
                ]
            )
            assert ours == afresh, case
            if is_unmixed(case):
                assert ours == as_is, case
            seen["fits" if ours else "does not"] += 1
            seen["mixed up"] += (as_is is None) != (ours is None)
            if found is not None:
                fitted.append((case, found))
        check_use(nova, fitted, seen)
    assert min(seen["fits"], seen["does not"]) > count // 5, seen
    assert seen["mixed up"] < count // 20, seen
    assert seen["used"] > 0.5 * seen["fits"], seen


def check_use(nova: Nova, fitted: list[tuple[Case, Fit]], seen: Counter[str]) -> None:
    """Nova accepts what guests were given, and counts the same use of the host."""
    asked = [
        case.plain | {"cells": [msgspec.to_builtins(cell) for cell in found.cells]} for case, found in fitted
    ]
    for (case, found), (fits, used) in zip(fitted, nova.ask("numa", "accepted", cases=asked), strict=True):
        assert fits, case
        if used is None:
            continue
        if isinstance(used, str):
            # Emulator threads beside a used thread of a core: Nova's fit takes the CPU, its count refuses it.
            assert case.guest.thread_policy == "isolate", (case, used)
            assert case.guest.isolate_emulator, (case, used)
            continue
        ours = with_assigned(case.host, found.cells)
        assert used == [
            [
                list(numbers_of(cell.pinned)),
                cell.cpu_usage,
                cell.memory_used_mb,
                [[pages.size_kb, pages.free] for pages in cell.pages],
            ]
            for cell in ours.cells
        ], case
        seen["used"] += 1
