"""The types of maintenance plans."""

from collections.abc import Mapping
from typing import Final

import msgspec

from roost.model.allocation import Resources

MOST_MOVES: Final = 2
"""Moves of a guest in one maintenance at most."""


class HostToMaintain(msgspec.Struct, frozen=True, gc=False):
    """A host of a fleet.

    ``capacity``: of each resource class, as inventories have it. ``taken``: the amounts of it that no guest
    of the plan holds, which stay there. ``selected``: it is to be emptied. ``takes_guests``: guests may move
    there, which they may not if it is disabled or down.
    """

    name: str
    capacity: Resources
    taken: Resources = {}
    selected: bool = True
    takes_guests: bool = True

    def room(self, resource_class: str) -> int:
        """Return what guests may hold of a resource class in all."""
        return self.capacity.get(resource_class, 0) - self.taken.get(resource_class, 0)


class GuestToMove(msgspec.Struct, frozen=True, gc=False):
    """A guest on a host. ``amounts``: what it claims on each host.

    ``kind``: the name of its `FleetToMaintain.kinds`. ``group``: the uuid of its anti-affinity group.
    ``stays``: why it cannot move, None if it can.
    """

    uuid: str
    host: str
    amounts: Resources
    kind: str
    group: str | None = None
    stays: str | None = None


class FleetToMaintain(msgspec.Struct, frozen=True):
    """The input of a plan.

    - ``kinds``: for each kind of guests the hosts that its guests may move to, as cells and filters allow
      them if they are empty. Hosts of other names are ignored.
    - ``groups``: for each anti-affinity group the members that one host may have.
    - ``reserve``: whether room for the guests of any one host is left outside each wave, if it was there
      before the wave.
    - ``most_hosts``: hosts in a wave at most.
    """

    hosts: tuple[HostToMaintain, ...]
    guests: tuple[GuestToMove, ...]
    kinds: Mapping[str, frozenset[str]]
    groups: Mapping[str, int] = {}
    reserve: bool = True
    most_hosts: int | None = None


class PlannedMove(msgspec.Struct, frozen=True, gc=False):
    """A guest moves from one host to another."""

    guest: str
    source: str
    target: str


class Wave(msgspec.Struct, frozen=True):
    """Hosts that are empty together once all ``moves`` are done, in any order.

    ``unsheltered``: the number of hosts outside for whose guests there is no reserve, as they fit on no other
    hosts before the wave either.
    """

    hosts: tuple[str, ...]
    moves: tuple[PlannedMove, ...]
    unsheltered: int = 0


class HostLeftOut(msgspec.Struct, frozen=True):
    """A selected host that cannot be emptied. ``guest``: one that keeps it; None: it is not about one."""

    host: str
    reason: str
    guest: str | None = None


class MaintenancePlan(msgspec.Struct, frozen=True):
    """The waves, one after another: the guests of a wave start where those before it have put them.

    ``least_waves``: no plan for the hosts that are not left out has fewer, by capacity alone, if no host is
    unsheltered. ``bound``: the reason, in words.
    """

    waves: tuple[Wave, ...]
    left_out: tuple[HostLeftOut, ...]
    least_waves: int
    bound: str

    @property
    def moves(self) -> int:
        """The number of moves in all waves."""
        return sum(len(wave.moves) for wave in self.waves)
