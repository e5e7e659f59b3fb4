"""What holds for every choice of PCI devices, on random nodes: nothing twice, nothing that is not there."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from roost.fleet.hardware.pci_choice import DeviceConditions, FreePools
from roost.model.assignment import AssignedDevices
from roost.model.spec import PciRequest

CARDS = [f"0000:{number:02x}:00.0" for number in range(4)]
SPECS: list[dict[str, str | None]] = [
    {"product_id": "0001"},
    {"dev_type": "type-PF"},
    {"dev_type": "type-VF"},
    {"dev_type": "vdpa"},
    {"physical_network": "net"},
    {},
]


def node(random: Random) -> list[dict[str, Any]]:
    """The pools of a node with cards that are whole devices, or physical functions with parts."""
    pools: list[dict[str, Any]] = []
    for number, address in enumerate(CARDS[: random.randint(1, len(CARDS))]):
        more = {"numa_node": random.choice([None, 0, 1]), "product_id": random.choice(["0001", "0002"])}
        if random.random() < 0.5:
            more["physical_network"] = "net"
        ids = {"vendor_id": "8086", "address": address, **more}
        if random.random() < 0.3:
            pools.append({**ids, "dev_type": "type-PCI", "count": 1})
            continue
        pools.append({**ids, "dev_type": "type-PF", "count": 1})
        parts = random.randint(1, 4)
        kind = random.choice(["type-VF", "vdpa"])
        part: dict[str, Any] = {**ids, "dev_type": kind, "count": parts}
        if random.random() < 0.5:
            part["devices"] = [f"0000:{number:02x}:01.{each}" for each in range(parts)]
        pools.append(part)
    return pools


def wanted(random: Random) -> list[PciRequest]:
    return [
        PciRequest(
            id=f"{number}",
            count=random.choice([1, 1, 2, 3]),
            specs=tuple(random.sample(SPECS, random.choice([1, 1, 2]))),
            numa_policy=random.choice([None, "required", "preferred", "socket"]),
        )
        for number in range(random.randint(1, 3))
    ]


def check(pools: FreePools, requests: list[PciRequest], chosen: tuple[AssignedDevices, ...]) -> None:
    by_key = {pool.key: pool for pool in pools.pools}
    taken = Counter[str]()
    for each in chosen:
        request = next(request for request in requests if request.id == each.request)
        assert DeviceConditions(request).may_get(by_key[each.pool])
        assert len(each.addresses) in (0, each.count)
        taken[each.pool] += each.count
    for request in requests:
        assert sum(each.count for each in chosen if each.request == request.id) == request.count
    assert all(count <= by_key[key].count for key, count in taken.items())


def run(seed: int) -> int:
    """Instances come to a node until one finds no devices, and go again; returns how many have come."""
    random = Random(seed)
    reported = FreePools.reported(node(random))
    cards = {pool.key: pool for pool in reported.pools}
    there: dict[int, tuple[AssignedDevices, ...]] = {}
    came = 0
    for number in range(12):
        if there and random.random() < 0.3:
            del there[random.choice(list(there))]
        free = reported.without(each for one in there.values() for each in one)
        requests = wanted(random)
        cells = random.choice([None, {0}, {1}, {0, 1}])
        chosen = free.choose(requests, cells, {0: 0, 1: 1})
        if chosen is None:
            continue
        check(free, requests, chosen)
        there[number] = chosen
        came += 1
        everything = [each for one in there.values() for each in one]
        addresses = [address for each in everything for address in each.addresses]
        assert len(addresses) == len(set(addresses))
        used = Counter[str]()
        for each in everything:
            used[each.pool] += each.count
        assert all(count <= cards[key].count for key, count in used.items())
        whole = {cards[key].address for key in used if cards[key].is_physical}
        assert not whole & {cards[key].address for key in used if cards[key].is_virtual}
    if not there:
        assert reported.without(()) is reported
    return came


def test_no_device_is_chosen_twice() -> None:
    assert sum(run(seed) for seed in range(200)) > 400


@pytest.mark.nightly
def test_no_device_is_chosen_twice_on_thousands_of_nodes() -> None:
    assert sum(run(seed) for seed in range(1_000, 6_000)) > 10_000
