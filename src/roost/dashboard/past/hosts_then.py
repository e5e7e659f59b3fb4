"""The hosts as of a moment: those of now with the amounts of then, in the order of the present map."""

from functools import cached_property

import numpy as np

from roost.dashboard.fleet.hosts import HostsNow, class_rank
from roost.dashboard.past.past_moments import PastMoment
from roost.dashboard.past.past_nodes import PastNodes
from roost.dashboard.past.state_log import UNKNOWN
from roost.dashboard.service import DashboardService
from roost.fleet.columns import Bools, Int64
from roost.fleet.host_levels import ClassAmounts
from roost.scheduler.nodes.host_states import DOWN, UP
from roost.scheduler.nodes.node_amounts import TreeAmounts


class HostsThen(HostsNow):
    """All hosts of now, with their amounts as of a moment. Use it before the next ``await``.

    Places, traits, aggregates and names are those of now. States are those of then, if they were looked at;
    hosts that were not there are down.
    """

    def __init__(self, now: HostsNow, then: PastNodes, moment: PastMoment) -> None:
        self.__dict__.update(now.__dict__)
        self.at = moment.at
        states = then.states(self.layout.nodes)
        self.states_known = states is not None
        self.states = (
            np.full(len(now), UP, dtype=np.uint8)
            if states is None
            else np.where(states == UNKNOWN, DOWN, states).astype(np.uint8)
        )
        self.columns = then
        self._amounts: dict[str, TreeAmounts] = {}

    @property
    def version(self) -> int | None:
        """The commit."""
        return self.columns.version

    @cached_property
    def existed(self) -> Bools:
        """True for hosts that placement had: bool[n]."""
        return self.columns.existed(self.layout.nodes)

    @property
    def classes(self) -> list[str]:
        """The resource classes that some provider had, the common ones first."""
        return sorted(self.columns.columns.classes, key=class_rank)

    def amounts(self, resource_class: str) -> TreeAmounts:
        """Return the amounts of a class on each host."""
        found = self._amounts.get(resource_class)
        if found is None:
            found = self._amounts[resource_class] = self.columns.amounts(resource_class, self.layout.nodes)
        return found

    def largest(self, resource_class: str) -> Int64:
        """Return the most units of a class that one provider of each host had free: int64[n]."""
        return self.columns.largest_free(resource_class, self.layout.nodes)

    def amounts_of(self, position: int) -> dict[str, ClassAmounts] | None:
        """Return the amounts of the host at a position, by class in order of name; None: it was not there."""
        if not self.existed[position]:
            return None
        node = self.layout.nodes[position : position + 1]
        found = {}
        for name in sorted(self.columns.columns.classes):
            capacity, used, reserved, total = (each.item(0) for each in self.columns.amounts(name, node))
            if capacity or used or reserved or total:
                found[name] = ClassAmounts(capacity, used, reserved, total)
        return found


async def hosts_shown(
    service: DashboardService, at: str | None, *, searched: bool = False, flavor: str = ""
) -> HostsNow:
    """Return the hosts as of a moment that a page was asked for, or as they are now.

    ``searched``, ``flavor``: as in `FleetHosts.now`. Raises: `BadRequest`, `PastMissing`, `StorageError`.
    """
    if at is None:
        return await service.hosts.now(searched=searched, flavor=flavor)
    moment = await service.past.moment(at)
    then = await service.past.nodes(moment)
    return HostsThen(await service.hosts.now(searched=searched), then, moment)
