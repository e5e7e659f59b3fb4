"""Prefers hosts and devices whose fragmentation grows least.

The fragmentation of hosts' devices: their free amounts that typical requests cannot use.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC'23. A typical request cannot use a host's free devices at all if the host lacks processors,
memory, a trait or devices for it. Otherwise it cannot use the devices that have less left than it takes of
one. The fragmentation of a host is the average of these amounts over the typical requests, weighted by their
shares.
"""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64, Int64
from roost.model.allocation import Candidate
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


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


GROUP = "fragmentation_weigher"


class FragmentationOptions(OptionStruct, frozen=True, group=GROUP):
    """``resource_class``: of the devices. ``workload_file``: typical requests as JSON, a list of
    `TypicalRequest`; without a file the weigher does not apply."""

    resource_class: str = option(
        "VGPU", help="FragmentationWeigher keeps the devices of this resource class usable."
    )
    workload_file: str | None = option(
        None,
        help="A JSON file with typical requests: a list of objects with share, resources, devices, "
        "amount and traits.",
    )


class FragmentationWeigher:
    """The negated growth of a host's fragmentation by the request, where the request takes the devices by
    which it grows least. Candidates of a host are ranked by the growth that each causes. Requests without
    devices grow it by the processors and memory that typical requests then lack.

    Source: fragmentation gradient descent, see `roost.scheduler.weighers.fragmentation`.
    """

    name = "FragmentationWeigher"
    multiplier_key = "fragmentation_weight_multiplier"
    default_multiplier = 1.0
    beyond_nova = True
    looks_at = Looks.TREE
    OPTIONS = FragmentationOptions

    def __init__(self, options: FragmentationOptions) -> None:
        self._device = options.resource_class
        self._workload: tuple[TypicalRequest, ...] = ()
        if options.workload_file is not None:
            content = Path(options.workload_file).read_bytes()
            self._workload = msgspec.json.decode(content, type=tuple[TypicalRequest, ...])
        classes = {name for each in self._workload for name in each.resources}
        self._classes = sorted(classes)
        self._traits = sorted({trait for each in self._workload for trait in each.traits})

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the amounts of the classes that typical requests take, and the amounts of single devices."""
        if not self._workload:
            return None
        amounts = dict.fromkeys(self._classes, 0)
        devices: list[int] = []
        for group in request.query.groups:
            for name, amount in group.resources.items():
                if name == self._device:
                    devices.append(amount)
                elif name in amounts:
                    amounts[name] += amount
        return tuple(amounts.items()), tuple(sorted(devices))

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        key = self.key(request)
        if not isinstance(key, tuple):
            return None
        amounts, devices = dict(key[0]), key[1]
        before = self._hosts(hosts)
        places, left = _choices(before.devices, devices)
        after = before.some(places).taking(amounts, left)
        growth = fragmentation(after, self._workload) - fragmentation(before, self._workload)[places]
        least = np.full(len(hosts), np.inf)
        np.minimum.at(least, places, growth)
        return np.where(np.isfinite(least), -least, -float(before.whole) * before.devices.shape[1])

    def rank(
        self, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
    ) -> Sequence[float] | None:
        key = self.key(request)
        if not isinstance(key, tuple) or not key[1]:
            return None
        before = self._hosts(host)
        levels = [
            {
                provider: host.level(provider, self._device)
                for provider, resources in candidate.allocations.items()
                if self._device in resources
            }
            for candidate in candidates
        ]
        left = np.repeat(before.devices, len(candidates), axis=0)
        for place, (candidate, of) in enumerate(zip(candidates, levels, strict=True)):
            devices = before.devices[0].tolist()
            for provider, (capacity, used) in of.items():
                amount = candidate.allocations[provider][self._device]
                free = capacity - used
                if free in devices:
                    devices[devices.index(free)] -= amount
            left[place] = devices
        every = np.zeros(len(candidates), dtype=np.int64)
        after = before.some(every).taking(dict(key[0]), left)
        numbers: list[float] = (-fragmentation(after, self._workload)).tolist()
        return numbers

    def _hosts(self, hosts: HostView) -> HostColumns:
        levels = hosts.providers(self._device)
        order = np.argsort(levels.host, kind="stable")
        host = levels.host[order]
        first = np.searchsorted(host, np.arange(len(hosts)))
        number = np.arange(len(host)) - first[host]
        devices = np.full((len(hosts), int(number.max(initial=0)) + 1), -1, dtype=np.int64)
        devices[host, number] = (levels.capacity - levels.used)[order]
        return HostColumns(
            {name: hosts.free(name) for name in self._classes},
            devices,
            int(levels.capacity.max(initial=0)),
            {trait: hosts.with_trait(trait) for trait in self._traits},
        )


def _choices(devices: Int64, wanted: tuple[int, ...]) -> tuple[Int64, Int64]:
    """Return k ways to take devices: the host of each, intp[k], and the amounts left, int64[k, most devices].

    Of devices with equal amounts left, one represents all. If several devices are needed, those with most
    left are taken first.
    """
    n, width = devices.shape
    if not wanted:
        return np.arange(n), devices
    if len(wanted) > 1:
        ordered = -np.sort(-devices, axis=1)
        taken = np.zeros(width, dtype=np.int64)
        taken[: min(width, len(wanted))] = sorted(wanted, reverse=True)[:width]
        fits = (ordered >= taken).all(axis=1, where=taken > 0) & (width >= len(wanted))
        places = np.flatnonzero(fits)
        return places, ordered[places] - taken
    ordered = np.sort(devices, axis=1)
    distinct = np.ones((n, width), dtype=np.bool_)
    distinct[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places, column = np.nonzero((ordered >= wanted[0]) & distinct)
    left = ordered[places]
    left[np.arange(len(places)), column] -= wanted[0]
    return places, left


PLUGIN = FragmentationWeigher
