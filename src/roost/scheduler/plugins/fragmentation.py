"""The fragmentation of hosts' devices: their free amounts that typical requests cannot use.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC'23. A typical request cannot use a host's free devices at all if the host lacks processors,
memory, a trait or devices for it. Otherwise it cannot use the devices that have less left than it takes of
one. The fragmentation of a host is the average of these amounts over the typical requests, weighted by their
shares.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64, Int64


class TypicalRequest(msgspec.Struct, frozen=True):
    """One kind of request in a workload.

    ``share``: its frequency, relative to the others. ``resources``: amounts from anywhere in the host's tree.
    ``devices``: the number of devices, each of which gives ``amount`` of the device's resource class.
    ``traits``: the devices have one of them; empty: any devices will do.
    """

    share: float
    resources: dict[str, int] = {}
    devices: int = 0
    amount: int = 0
    traits: tuple[str, ...] = ()


class HostColumns(msgspec.Struct, frozen=True):
    """The free amounts of n hosts, as columns.

    ``resources``: float64[n] by class. ``devices``: the amount left of each device, int64[n, most devices],
    -1 where there is no device. ``whole``: the capacity of a device. ``traits``: bool[n] by name.
    """

    resources: Mapping[str, Float64]
    devices: Int64
    whole: int
    traits: Mapping[str, Bools]

    def taking(self, amounts: Mapping[str, int], devices: Int64) -> "HostColumns":
        """Return the hosts after each has given ``amounts``, with ``devices`` left."""
        left = {name: free - amounts.get(name, 0) for name, free in self.resources.items()}
        return HostColumns(left, devices, self.whole, self.traits)

    def some(self, places: Int64) -> "HostColumns":
        """Return the hosts at ``places``; a host may occur several times."""
        return HostColumns(
            {name: free[places] for name, free in self.resources.items()},
            self.devices[places],
            self.whole,
            {name: having[places] for name, having in self.traits.items()},
        )


def fragmentation(hosts: HostColumns, workload: Sequence[TypicalRequest]) -> Float64:
    """Return the fragmentation of each host, in units of the device's resource class: float64[n]."""
    ordered = np.sort(hosts.devices, axis=1)
    left = np.maximum(ordered, 0)
    free = left.sum(axis=1)
    below = np.concatenate([np.zeros((len(left), 1), dtype=np.int64), left.cumsum(axis=1)], axis=1)
    width = ordered.shape[1]
    total = np.zeros(len(left))
    everything = sum(each.share for each in workload)
    too_small: dict[int, Int64] = {}
    for each in workload:
        usable = np.full(len(left), each.devices > 0)
        for name, amount in each.resources.items():
            if name in hosts.resources:
                usable &= hosts.resources[name] >= amount
        if each.traits:
            usable &= np.logical_or.reduce([hosts.traits[trait] for trait in each.traits])
        small = too_small.get(each.amount)
        if small is None:
            small = too_small[each.amount] = (ordered < each.amount).sum(axis=1)
        usable &= width - small >= each.devices
        unusable = np.where(usable, below[np.arange(len(left)), small], free)
        total += each.share / everything * unusable
    return total
