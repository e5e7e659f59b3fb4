"""A cloud of different hosts for lists and maps: zones, racks, cells, states, devices, shared disks."""

import random

from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.vocabulary import DISABLED_TRAIT, SHARING_TRAIT
from support.clouds import GPU, NOW, Cloud, Provider, report, uuid_of

HOSTS = 40


def mixed_cloud() -> Cloud:
    """`HOSTS` hosts, always the same.

    Host 7 is not in placement; hosts 3, 13, 23 and 33 are disabled there; a provider shares its disk.
    """
    rng = random.Random(29)
    zones = [HostAggregate(f"zone{n}", f"zone{n}", {"availability_zone": f"az{n}"}) for n in range(2)]
    racks = [HostAggregate(f"rack{n}", f"rack{n}", {"rack": f"r{n}"}) for n in range(3)]
    providers = [
        Provider(uuid_of(9999), {"DISK_GB": Inventory(5000)}, traits=frozenset({SHARING_TRAIT}), used={})
    ]
    reports = []
    for number in range(HOSTS):
        root = Provider(
            uuid_of(number),
            {"VCPU": Inventory(16, allocation_ratio=2.0), "MEMORY_MB": Inventory(4096, reserved=512)},
            used={"VCPU": rng.choice([0, 8, 31, 32]), "MEMORY_MB": rng.choice([0, 1024, 3584])},
        )
        if number % 10 == 3:
            root.traits = frozenset({DISABLED_TRAIT})
        below = [
            Provider(uuid_of(1000 + number * 10 + child), {GPU: Inventory(2)}, root.uuid, used={GPU: child})
            for child in range(rng.choice([0, 0, 1, 2]))
        ]
        for each in (root, *below):
            each.used = {name: amount for name, amount in each.used.items() if amount}
        if number != 7:
            providers += [root, *below]
        aggregates = [*rng.sample(zones, rng.choice([0, 1, 1])), *rng.sample(racks, rng.choice([0, 1, 1, 2]))]
        reports.append(
            report(
                f"Host{number:02}" if number % 9 == 0 else f"host{number:02}",
                root.uuid,
                nodename=f"n{number}",
                cell=rng.choice(["cell1", "cell1", "cell2"]),
                last_seen=NOW - rng.choice([1.0, 1.0, 1.0, 900.0]),
                enabled=rng.random() > 0.2,
                num_instances=rng.choice([0, 3]),
                aggregates=tuple(aggregates),
            )
        )
    rng.shuffle(reports)
    return Cloud(providers, reports)
