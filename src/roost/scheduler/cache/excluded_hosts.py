"""An equivalence class without the few hosts that one request excludes by name.

Such hosts are the ones that the request ignores and those of its server group. Why not `Narrowed`: it copies
the stages of all hosts, computes bounds anew where hosts are missing, and weighs the first blocks for this
request alone. Ten hosts of ten thousand are mostly among those that are never weighed. So the class itself
serves the request: its score index skips the hosts until the request is done, and the blocks that the request
opens stay open for others.

The weights are the same as long as the least and the greatest number of each weigher are still there, and
more than one host is. Otherwise `class_without_hosts` returns None, and the request narrows the class.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.cache.plugin_roles import FilterRole, Role
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugin_calls import ask_named
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST = 256
"""Hosts excluded one by one, 1 µs each. For more of them the class is narrowed by vector operations."""


Narrowing = Callable[[GroupPlacement], Narrowed]
"""Narrows the class for the request, given the group placement at the start of the run."""


class ClassWithoutHosts:
    """The allowed hosts of one request, with the scores of its class; see `class_without_hosts`."""

    def __init__(
        self,
        host_index: HostIndex,
        equivalence_class: EquivalenceClass,
        request: SchedulingRequest,
        filter_roles: Sequence[FilterRole],
        progress: GroupPlacement,
        narrow: Narrowing,
    ) -> None:
        """``narrow`` makes the successor after the run's first claim, because a claim changes weights."""
        self._host_index = host_index
        self._class = equivalence_class
        self._request = request
        self._narrow = narrow
        # A copy: filters that are asked once see the members before this run, after narrowing too.
        self._first = GroupPlacement(progress.members.copy(), progress.present)
        self._view = HostView(host_index.table, host_index.totals)
        self._left = list(equivalence_class.left)
        self._steps = [Step(KNOWN, len(host_index.table)), Step(OFFERED, self._left[0])]
        # The places excluded whatever the run claims, and all excluded places.
        self._once: frozenset[int] = frozenset()
        self._out: set[int] = set()
        self._again = [each.plugin for each in filter_roles if each.again and each.role is Role.ASKED]
        self.possible = self._leave_out(filter_roles, progress)
        self.feasibility = equivalence_class.feasibility
        self.full = equivalence_class.full
        self.scores = equivalence_class.scores
        if self.possible:
            allowed = [place for place in self._out if equivalence_class.allows(place)]
            self.possible = self.scores.leave_out(allowed, self._left[-1])

    def steps(self) -> list[Step]:
        """Return the number of hosts that each step leaves."""
        return self._steps

    def allows(self, place: int) -> bool:
        """Return whether a host is allowed."""
        return place not in self._out and self._class.allows(place)

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> Narrowed:
        """Return the class narrowed for the next instance of a run in progress; the class stays as it is."""
        self.scores.let_in()
        return self._narrow(self._first).reweigh(places, full, rejected)

    def again_steps(self) -> list[Step]:
        """Return no steps: after a claim the run goes on with another object, see `reweigh`."""
        return []

    def open_again(self, progress: GroupPlacement) -> Callable[[int], bool] | None:
        """Return a test of whether the filters that depend on claims allow a host under another group
        placement.

        None: there are no such filters.
        """
        if not self._again:
            return None
        out, only = set(self._once), []
        for plugin in self._again:
            named = ask_named(plugin, self._view, self._request, progress)
            if named is not None and named.allowed:
                only.append(set(self._host_index.places_at(named.hosts)))
            elif named is not None:
                out.update(self._host_index.places_at(named.hosts))
        allows = self._class.allows
        return lambda place: place not in out and all(place in some for some in only) and allows(place)

    def _leave_out(self, filter_roles: Sequence[FilterRole], progress: GroupPlacement) -> bool:
        """Note the excluded hosts and the steps. Returns whether they are few of many."""
        table = self._host_index.table
        ignored = [index for host in self._request.spec.ignore_hosts for index in table.indexes_of_host(host)]
        if ignored:
            if not self._take(ignored, 0):
                return False
            self._steps.append(Step("ignore_hosts", self._left[0]))
        asked, again = 0, False
        for each in filter_roles:
            if each.again and not again:
                again, self._once = True, frozenset(self._out)
            if each.role is Role.CACHED:
                asked += 1
            elif each.role is Role.ASKED and not self._ask(each.plugin, asked, progress):
                return False
            self._steps.append(Step(each.plugin.name, self._left[asked]))
        return self._left[-1] > 1

    def _ask(self, plugin: Filter, asked: int, progress: GroupPlacement) -> bool:
        named = ask_named(plugin, self._view, self._request, progress)
        return named is None or (not named.allowed and self._take(named.hosts, asked))

    def _take(self, indexes: Collection[int], asked: int) -> bool:
        """Exclude hosts after ``asked`` filters of the class were applied; False if there are too many."""
        if len(indexes) > MOST:
            return False
        stage, left, out = self._class.stage, self._left, self._out
        for place in self._host_index.places_at(indexes):
            last = stage.item(place)
            if last > asked and place not in out:
                out.add(place)
                for step in range(asked, last):
                    left[step] -= 1
        return True


def class_without_hosts(
    host_index: HostIndex,
    equivalence_class: EquivalenceClass,
    request: SchedulingRequest,
    filter_roles: Sequence[FilterRole],
    progress: GroupPlacement,
    narrow: Narrowing,
) -> ClassWithoutHosts | None:
    """Return the class without the few hosts that a request names.

    None if that would change weights, or if the request needs more than to exclude a few hosts.

    Raises: `SchedulerFault` from a filter.
    """
    if (
        request.places
        or equivalence_class.left[-1] < 2
        or any(each.role is Role.VARIED for each in filter_roles)
    ):
        return None
    if not all(each.plugin.named is not None for each in filter_roles if each.role is Role.ASKED):
        return None
    few = ClassWithoutHosts(host_index, equivalence_class, request, filter_roles, progress, narrow)
    return few if few.possible else None
