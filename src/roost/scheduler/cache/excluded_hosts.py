"""A shape of which one request leaves out a few hosts by name: those it ignores, those of its server group.

Why not `Narrowed` for these as well: it copies the stages of all hosts, works out bounds anew where hosts are
missing, and weighs the first blocks for this request alone. Ten hosts of ten thousand are mostly among those
that nobody weighs. So the shape itself serves the request: its ranks skip the hosts until the request is
done, and the blocks that the request opens stay open for others.

That is the same as long as no weight changes: the least and the greatest number of each weigher are still
there, and more than one host is. Otherwise `excluding` gives None, and the request narrows the shape.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.narrowed import Narrowed
from roost.scheduler.cache.roles import Judged, Role
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.declarations import names_hosts
from roost.scheduler.plugins.plugin_calls import ask_named
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

MOST = 256
"""Hosts left out one by one, 1 µs each; for more of them the shape is narrowed by vector operations."""


Narrowing = Callable[[GroupPlacement], Narrowed]
"""Narrows the shape for the request, given the progress at the start of the run."""


class ClassWithoutHosts:
    """The hosts that one request may use, ranked by the request's own `EquivalenceClass`: see `excluding`."""

    def __init__(
        self,
        board: HostIndex,
        shape: EquivalenceClass,
        request: SchedulingRequest,
        judged: Sequence[Judged],
        progress: GroupPlacement,
        narrow: Narrowing,
    ) -> None:
        """``narrow`` makes what goes on once the run has claimed hosts: their numbers change weights."""
        self._board = board
        self._shape = shape
        self._request = request
        self._narrow = narrow
        # A copy: what is asked once is asked about the members before this run, also when it is narrowed.
        self._first = GroupPlacement(progress.members.copy(), progress.present)
        self._view = HostView(board.table, board.totals)
        self._left = list(shape.left)
        self._steps = [Step(KNOWN, len(board.table)), Step(OFFERED, self._left[0])]
        # The places left out whatever the run claims, and all of them.
        self._once: frozenset[int] = frozenset()
        self._out: set[int] = set()
        self._again = [each.plugin for each in judged if each.again and each.role is Role.ASKED]
        self.possible = self._leave_out(judged, progress)
        self.serving = shape.serving
        self.full = shape.full
        self.ranks = shape.ranks
        if self.possible:
            allowed = [place for place in self._out if shape.allows(place)]
            self.possible = self.ranks.leave_out(allowed, self._left[-1])

    def steps(self) -> list[Step]:
        """How many hosts each step leaves."""
        return self._steps

    def allows(self, place: int) -> bool:
        """Whether a host may be used."""
        return place not in self._out and self._shape.allows(place)

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> Narrowed:
        """In the middle of a run: the shape, which stays as it is, narrowed for the next instance."""
        self.ranks.let_in()
        return self._narrow(self._first).reweigh(places, full, rejected)

    def again_steps(self) -> list[Step]:
        """Nothing: a run that has claimed hosts goes on with others, see `reweigh`."""
        return []

    def open_again(self, progress: GroupPlacement) -> Callable[[int], bool] | None:
        """Whether filters that depend on claims let a host pass, if the run's progress were another one; None
        if there are none."""
        if not self._again:
            return None
        out, only = set(self._once), []
        for plugin in self._again:
            named = ask_named(plugin, self._view, self._request, progress)
            if named is not None and named.allowed:
                only.append(set(self._board.places_at(named.hosts)))
            elif named is not None:
                out.update(self._board.places_at(named.hosts))
        allows = self._shape.allows
        return lambda place: place not in out and all(place in some for some in only) and allows(place)

    def _leave_out(self, judged: Sequence[Judged], progress: GroupPlacement) -> bool:
        """Note the hosts that are left out and the steps; returns whether this is a few of many."""
        table = self._board.table
        ignored = [index for host in self._request.spec.ignore_hosts for index in table.indexes_of_host(host)]
        if ignored:
            if not self._take(ignored, 0):
                return False
            self._steps.append(Step("ignore_hosts", self._left[0]))
        asked, again = 0, False
        for each in judged:
            if each.again and not again:
                again, self._once = True, frozenset(self._out)
            if each.role is Role.KEPT:
                asked += 1
            elif each.role is Role.ASKED and not self._ask(each.plugin, asked, progress):
                return False
            self._steps.append(Step(each.plugin.name, self._left[asked]))
        return self._left[-1] > 1

    def _ask(self, plugin: Filter, asked: int, progress: GroupPlacement) -> bool:
        named = ask_named(plugin, self._view, self._request, progress)
        return named is None or (not named.allowed and self._take(named.hosts, asked))

    def _take(self, indexes: Collection[int], asked: int) -> bool:
        """Leave hosts out after ``asked`` filters of the shape were asked; False if there are too many."""
        if len(indexes) > MOST:
            return False
        stage, left, out = self._shape.stage, self._left, self._out
        for place in self._board.places_at(indexes):
            last = stage.item(place)
            if last > asked and place not in out:
                out.add(place)
                for step in range(asked, last):
                    left[step] -= 1
        return True


def excluding(
    board: HostIndex,
    shape: EquivalenceClass,
    request: SchedulingRequest,
    judged: Sequence[Judged],
    progress: GroupPlacement,
    narrow: Narrowing,
) -> ClassWithoutHosts | None:
    """The shape without the few hosts that a request names; None if that would change weights, or the request
    asks for more than to leave out a few hosts.

    Raises: `SchedulerFault` from a filter.
    """
    if request.places or shape.left[-1] < 2 or any(each.role is Role.VARIED for each in judged):
        return None
    if not all(names_hosts(each.plugin) for each in judged if each.role is Role.ASKED):
        return None
    few = ClassWithoutHosts(board, shape, request, judged, progress, narrow)
    return few if few.possible else None
