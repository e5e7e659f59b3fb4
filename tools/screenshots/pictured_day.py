"""The history of the pictured cloud until its clock stands still."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from roost.agent.drivers.simulated import FailureRule, Script
from roost.model.spec import Flavor, RequestedDestination
from roost.server.all_in_one.system import System
from screenshots.pictured_layout import (
    LOST_HOST,
    NVME,
    PICTURED_HOST,
    ZONES,
    Place,
    cell_of,
    places,
    simulated_host,
    zone_of,
)
from support.shown_cloud.storyteller import HOUR, MINUTE, SteppedClock, Storyteller

SCRIPT: Final = Script(failures=(FailureRule(0.004, "No more IP addresses available on network"),))
"""The behaviour of the hosts: of a thousand builds four fail."""

PLACED, REFUSED = "search-index", "warehouse"
"""Names of the instances whose decisions are pictured."""

_STEPS: Final = 8
"""Times at which instances come, two hours apart: the lines of charts rise by so many steps."""

_ZONE_SHARES: Final = {"a": 0.76, "b": 0.5, "c": 0.28}
"""The shares of the memory of each zone that get used, about."""

_PROJECTS: Final = ("billing", "search", "analytics", "web-shop", "ci")

_SMALL: Final = Flavor("m1.small", 2, 4_096, 80)
_MEMORY: Final = Flavor("r1.2xlarge", 8, 65_536, 480)
_COMMON: Final = (
    _SMALL,
    Flavor("m1.large", 8, 32_768, 320),
    Flavor("c1.xlarge", 16, 24_576, 160),
    _MEMORY,
)
_PINNED: Final = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
_GPU: Final = Flavor("g1.large", 8, 32_768, 80, {**_PINNED, "pci_passthrough:alias": "a10:1"})
_TWO_GPUS: Final = Flavor("g1.2xlarge", 16, 65_536, 160, {**_PINNED, "pci_passthrough:alias": "a10:2"})
_PINNED_FLAVOR: Final = Flavor("p1.xlarge", 8, 16_384, 40, _PINNED)
_MOST_GPUS: Final = Flavor("g1.8xlarge", 32, 131_072, 160, {"pci_passthrough:alias": "a10:8"})
_LARGE: Final = Flavor("r1.8xlarge", 32, 196_608, 320)
_GIANT: Final = Flavor("c1.metal", 192, 131_072, 80)


class _Wish(NamedTuple):
    """A request for instances on one host."""

    host: str
    flavor: Flavor
    number: int


class PicturedDay:
    """Tells a system what happens in it in a day."""

    def __init__(self, system: System, clock: SteppedClock) -> None:
        self._teller = Storyteller(system, _PROJECTS)
        self._clock = clock
        self._random = Random(20)

    async def tell(self) -> None:
        """Let everything happen."""
        async with self._teller:
            await self._fill()
            await self._lose_host()
            await self._use_hardware()
            await self._disable_hosts()
            await self._decide()
            await self._refuse()
            self._clock.before(0)
            # The newest commit is as old on each page.
            await self._ask_on(_Wish(Place("c", 1, 1).name, _SMALL, 1))
            await self._teller.settle()
            await self._teller.reported()

    async def _fill(self) -> None:
        """Instances come over the day, until each host has its share."""
        wishes = list(self._wishes())
        self._random.shuffle(wishes)
        for step in range(_STEPS):
            self._clock.before((22 - 2 * step) * HOUR)
            for wish in wishes[step::_STEPS]:
                await self._ask_on(wish)
            await self._teller.settle()

    def _wishes(self) -> Iterator[_Wish]:
        """Yield requests that fill all hosts."""
        of_rack: defaultdict[tuple[str, int], float] = defaultdict(lambda: self._random.uniform(0.75, 1.2))
        for place in places():
            if place in (PICTURED_HOST, LOST_HOST):
                continue
            if place.machine.gpus:
                yield from self._accelerated(place)
                continue
            share = _ZONE_SHARES[place.zone] * of_rack[place.zone, place.rack]
            share *= self._random.uniform(0.7, 1.2)
            if place.zone == "a" and NVME in place.machine.traits:
                # The large request finds no room there, and is refused.
                share = self._random.uniform(0.7, 0.95)
            yield from self._common(place, min(share, 0.96))

    def _common(self, place: Place, share: float) -> Iterator[_Wish]:
        """Yield requests that fill a share of the memory of a host."""
        machine = place.machine
        vcpus, memory_mb = 2 * (machine.vcpus - 4), share * (machine.memory_mb - 8_192)
        while fitting := [each for each in _COMMON if each.vcpus <= vcpus and each.memory_mb <= memory_mb]:
            flavor = self._random.choice(fitting)
            most = int(min(vcpus // flavor.vcpus, memory_mb // flavor.memory_mb))
            count = min(most, self._random.choice((1, 2, 3)))
            vcpus -= flavor.vcpus * count
            memory_mb -= flavor.memory_mb * count
            yield _Wish(place.name, flavor, count)

    def _accelerated(self, place: Place) -> Iterator[_Wish]:
        """Yield requests for GPUs of a host, more of them in the zones that are fuller."""
        if self._random.random() < _ZONE_SHARES[place.zone] * 1.2:
            yield _Wish(place.name, _GPU, self._random.choice((1, 2, 2, 3)))
        if self._random.random() < 0.5:
            yield _Wish(place.name, _PINNED_FLAVOR, self._random.choice((1, 2)))

    async def _ask_on(self, wish: _Wish) -> None:
        project = self._random.choice(_PROJECTS)
        await self._teller.ask(
            wish.flavor,
            wish.number,
            name=f"{project}-{wish.host}",
            project=project,
            requested_destination=RequestedDestination(host=wish.host),
        )

    async def _lose_host(self) -> None:
        """A host joins, gets instances and is not heard of any more."""
        self._clock.before(3 * HOUR)
        names = tuple(each.name for each in LOST_HOST.aggregates)
        host = simulated_host(LOST_HOST)
        async with self._teller.visiting_host(cell_of(LOST_HOST.zone), host, SCRIPT, names):
            await self._ask_on(_Wish(LOST_HOST.name, _SMALL, 3))
            await self._teller.settle()
            await self._teller.reported()

    async def _use_hardware(self) -> None:
        """Instances take CPUs and GPUs of the pictured host, one after the other."""
        for minutes, flavor in ((150, _TWO_GPUS), (140, _PINNED_FLAVOR), (125, _GPU)):
            self._clock.before(minutes * MINUTE)
            await self._ask_on(_Wish(PICTURED_HOST.name, flavor, 1))
            await self._teller.settle()

    async def _disable_hosts(self) -> None:
        """Operators disable hosts, with reasons."""
        self._clock.before(95 * MINUTE)
        await self._teller.disable("a03-07", "Memory errors since Tuesday, ticket 4711")
        self._clock.before(70 * MINUTE)
        await self._teller.disable("c02-19", "To be replaced in week 48")

    async def _decide(self) -> None:
        """Requests that are placed, the last of them, the pictured one, by weight."""
        self._clock.before(9 * MINUTE)
        for number in range(24):
            await self._ask_on(_Wish(Place("c", 1 + number % 7, 1 + number % 20).name, _SMALL, 1))
            await self._teller.settle()
        group = await self._teller.create_group("search-index", "soft-anti-affinity", "search")
        for minutes, name, count in ((8, "search-ingest", 24), (6, PLACED, 3)):
            self._clock.before(minutes * MINUTE)
            # Weighers read what the agents have reported, which comes some seconds after the builds.
            await self._teller.reported()
            await self._teller.ask(
                _MEMORY,
                count,
                name=name,
                project="search",
                group=group,
                required_traits=frozenset({NVME}),
                availability_zone=zone_of("b"),
            )
            await self._teller.settle()

    async def _refuse(self) -> None:
        """Requests that are refused, the first of them the pictured one."""
        self._clock.before(4 * MINUTE)
        await self._teller.ask(
            _LARGE,
            name=REFUSED,
            project="analytics",
            required_traits=frozenset({NVME}),
            availability_zone=zone_of(ZONES[0]),
        )
        await self._teller.settle()
        for minutes, flavor in ((3, _GIANT), (2, _MOST_GPUS)):
            self._clock.before(minutes * MINUTE)
            await self._teller.ask(flavor, name="wanted", project="search")
            await self._teller.settle()
