"""The history of the cloud until its clock stands still: builds, failures, refusals, words of operators."""

from collections.abc import Iterable
from typing import Final

from roost.agent.drivers.simulated import FailureRule, Script, SimulatedHost
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.spec import Flavor, RequestedDestination, ServerGroup
from roost.server.all_in_one.system import System
from support.shown_cloud import names
from support.shown_cloud.layout import NVME, ZONES, aggregate_uuid, rack_names
from support.shown_cloud.storyteller import HOUR, MINUTE, SteppedClock, Storyteller

SCRIPT: Final = Script(
    failures=(
        FailureRule(
            0.85, "libvirt: internal error: qemu unexpectedly closed the monitor", frozenset({"b2-02"})
        ),
        FailureRule(0.02, "No more IP addresses available on network"),
    )
)

_FLAVORS: Final = (
    Flavor("m1.small", 2, 4096, 20),
    Flavor("m1.large", 8, 32768, 80),
    Flavor("c1.xlarge", 16, 16384, 40),
    Flavor("r1.2xlarge", 8, 65536, 80),
)
_PINNED: Final = Flavor("pinned.xlarge", 8, 16384, 40, {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"})
_GPU: Final = Flavor("gpu1.large", 8, 32768, 80, {"pci_passthrough:alias": "a10:1"})
_PROJECTS: Final = ("billing", "search", "analytics", "web-shop")
_GONE: Final = "b1-lost"
"""A host whose agent has come and gone, so that it is down."""

_FULL: Final = (0.92, 0.5, 0.74, 0.22, 0.63, 0.38, 0.85, 0.12)
"""The shares of racks' memory that are used, in turn."""


class Story:
    """Tells a system what happens in it. ``hostile``: some names are hostile."""

    def __init__(self, system: System, clock: SteppedClock, *, hostile: bool = True) -> None:
        self._teller = Storyteller(system, _PROJECTS)
        self._clock = clock
        self._hostile = hostile
        self._random = self._teller.random

    async def tell(self, racks: int, hosts: int) -> None:
        """Let everything happen. ``racks``, ``hosts``: as of the layout."""
        async with self._teller:
            await self._fill(racks, hosts)
            await self._lose_host()
            await self._fail_builds(hosts)
            await self._say_words(hosts)
            await self._refuse(hosts)
            await self._be_hostile()
        self._clock.before(0)
        await self._teller.settle()

    async def _fill(self, racks: int, hosts: int) -> None:
        """Builds that fill racks to different shares over a day."""
        names_of_racks = rack_names(racks)
        for step in range(6):
            self._clock.before((26 - 4 * step) * HOUR)
            for number, rack in enumerate(names_of_racks):
                for host in range(1, hosts + 1):
                    share = _FULL[number % len(_FULL)] * self._random.uniform(0.6, 1.1)
                    if self._random.random() < share:
                        await self._build_at(f"{rack}-{host:02}")
            await self._teller.settle()

    async def _build_at(self, host: str) -> None:
        flavor = self._random.choice(_FLAVORS)
        project = self._random.choice(_PROJECTS)
        await self._teller.ask(
            flavor,
            name=f"{project}-{host}",
            project=project,
            requested_destination=RequestedDestination(host=host),
        )

    async def _lose_host(self) -> None:
        """A host joins, gets instances and is not heard of any more."""
        self._clock.before(3 * HOUR)
        inventory = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262144), "DISK_GB": Inventory(4000)}
        host = SimulatedHost(_GONE, inventory)
        async with self._teller.visiting_host("south", host, SCRIPT, (ZONES[1], "rack b1")):
            await self._build_at(_GONE)

    async def _fail_builds(self, hosts: int) -> None:
        """Builds that fail on a host and are built on another, or on none. ``hosts``: of a rack."""
        self._clock.before(2 * HOUR)
        for _ in range(4):
            await self._teller.ask(
                _FLAVORS[0],
                max(4, hosts // 2),  # so that the host gets some
                name="worker",
                requested_destination=RequestedDestination(
                    aggregates=(frozenset({aggregate_uuid("rack b2")}),)
                ),
            )
            await self._teller.settle()
        await self._build_at("b2-02")
        for flavor, count in ((_PINNED, 6), (_GPU, 7)):
            await self._teller.ask(flavor, count, name=flavor.name.partition(".")[0], project="analytics")
        await self._teller.settle()

    async def _say_words(self, hosts: int) -> None:
        """Operators disable hosts, with reasons, and begin a maintenance."""
        self._clock.before(1.5 * HOUR)
        reasons = {"a2-01": "Memory errors since Tuesday, ticket 4711", f"b2-{hosts:02}": "To be replaced"}
        if self._hostile:
            reasons |= {"lab-01": names.IMAGE, "lab-02": names.WORDS}
        for host, reason in reasons.items():
            await self._teller.disable(host, reason)
        await self._teller.maintain("lab-01", "lab-02")
        await self._teller.settle()

    async def _refuse(self, hosts: int) -> None:
        """Requests that are refused, by each kind of cause. ``hosts``: of a rack."""
        group = await self._group()
        small = _FLAVORS[0]
        refused: Iterable[tuple[Flavor, int, dict[str, object]]] = (
            (Flavor("r1.metal", 32, 250_000, 80), 1, {}),
            (Flavor("c1.giant", 200, 4096, 80), 1, {}),
            (small, 1, {"required_traits": frozenset({"HW_CPU_X86_AVX512F"})}),
            (Flavor("pinned.four", 8, 8192, 40, {"hw:numa_nodes": "4"}), 1, {}),
            (Flavor("gpu8.large", 8, 32768, 80, {"pci_passthrough:alias": "a10:8"}), 1, {}),
            (small, hosts + 3, {"group": group, "requested_destination": _in_rack("b2")}),
            (small, 1, {"availability_zone": "zone-c"}),
            (small, 1, {"requested_destination": RequestedDestination(host="a2-01")}),
            (Flavor("r1.huge", 8, 200_000, 80), 3, {"requested_destination": _in_rack("a2")}),
            (
                Flavor("r1.huge", 16, 240_000, 80),
                1,
                {"required_traits": frozenset({NVME}), "availability_zone": ZONES[0]},
            ),
            (small, 1, {"requested_resources": (RequestGroup({"FPGA": 1}, "fpga"),)}),
        )
        for number, (flavor, count, more) in enumerate(refused):
            self._clock.before(50 * MINUTE - number * 4 * MINUTE)
            await self._teller.ask(flavor, count, name="wanted", project="analytics", **more)
            await self._teller.settle()

    async def _group(self) -> ServerGroup:
        """A server group with members that may share no host."""
        name = names.EMOJI if self._hostile else "quorum"
        group = await self._teller.create_group(name, "anti-affinity", "search")
        await self._teller.ask(_FLAVORS[0], 3, name="quorum", project="search", group=group)
        await self._teller.settle()
        return group

    async def _be_hostile(self) -> None:
        """Tenants name what they may name."""
        self._clock.before(5 * MINUTE)
        if not self._hostile:
            return
        for name in names.HOSTILE:
            await self._teller.ask(Flavor(name, 1, 512, 1), name=name, project=name)
            await self._teller.ask(Flavor(name, 1, 10**9, 1), name=name, project=name)
        await self._teller.settle()


def _in_rack(rack: str) -> RequestedDestination:
    return RequestedDestination(aggregates=(frozenset({aggregate_uuid(f"rack {rack}")}),))
