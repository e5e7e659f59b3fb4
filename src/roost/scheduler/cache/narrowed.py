"""A shape narrowed for one request: by hosts that the request names, and by plugins that are asked for it.

The shape stays as it is. What it knows of bounds holds for fewer hosts too: so a request that leaves out ten
hosts costs a copy of the stages and the weighing of a few blocks, and not the weighing of the fleet.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Rows
from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.own_columns import OwnColumns
from roost.scheduler.cache.roles import Judged, Role
from roost.scheduler.cache.score_index import Touched
from roost.scheduler.cache.stage_mask import StageMask
from roost.scheduler.cache.verdicts import Verdicts
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.declarations import names_by_own_members, names_hosts
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_named
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class Narrowed:
    """The hosts that one request may use, ranked: the request's own `EquivalenceClass`."""

    def __init__(
        self,
        board: HostIndex,
        shape: EquivalenceClass,
        verdicts: Verdicts,
        request: SchedulingRequest,
        judged: Sequence[Judged],
        columns: OwnColumns,
        progress: GroupPlacement,
        first: GroupPlacement,
    ) -> None:
        """``first``: the progress at the start of the run."""
        self._board = board
        self._shape = shape
        self._verdicts = verdicts
        self._request = request
        self._once = [each for each in judged if not each.again]
        self._again = [each for each in judged if each.again]
        self._columns = columns
        self._progress = progress
        self.serving = shape.serving
        self.full = shape.full
        self._steps = [Step(KNOWN, len(board.table))]
        # After all that is asked once: what is asked again after each claim goes on from here.
        self._base = StageMask(shape.stage, shape.left)
        self._asked = self._filter_once(self._base, self._steps, first)
        self._left_out: list[set[int]] | None = None
        self._play = self._base
        self._changed: set[int] = set()
        self._filter_again(self._steps)
        self._rank()

    def steps(self) -> list[Step]:
        """How many hosts each step leaves."""
        return self._steps

    def allows(self, place: int) -> bool:
        """Whether a host may be used."""
        return self._play.stage.item(place) == self.full

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> "Narrowed":
        """In the middle of a run, as `EquivalenceClass.reweigh`."""
        lost = [place for place in full if self._play.stage.item(place) == self.full]
        for play in {id(each): each for each in (self._base, self._play)}.values():
            play.leave_out(full, 0)
            for place, stage in rejected:
                if play.stage.item(place) == self.full:
                    play.lower(place, stage)
        self._changed.update(places)
        renewed = self._columns.ask_again(places, self._progress, self.allows)
        more = self._grown(places)
        if more is None or renewed:
            self._filter_again([])
            self._rank()
            return self
        for (asked, _), gone in zip(self._numbered_again(), more, strict=True):
            lost += [place for place in gone if self._play.stage.item(place) == self.full]
            self._play.leave_out(gone, asked)
        numbers = self._columns.numbers
        touched: dict[int, Touched] = {place: (place, None) for place in lost}
        for place in places:
            if self._play.stage.item(place) == self.full:
                touched[place] = (place, numbers(place))
        for place, _ in rejected:
            touched[place] = (place, None)
        self.ranks.settle([*touched.values()], self._play.left[-1])
        return self

    def open_again(self, progress: GroupPlacement) -> Callable[[int], bool] | None:
        """Whether filters that depend on claims let a host pass, if the run's progress were another one; None
        if there are none."""
        if not any(each.role in (Role.ASKED, Role.VARIED) for each in self._again):
            return None
        play = self._base.copy()
        self._apply(play, self._again, self._asked, progress, [])
        return lambda place: play.stage.item(place) == self.full

    def again_steps(self) -> list[Step]:
        """How many hosts those filters leave now that depend on claims."""
        steps: list[Step] = []
        self._apply(self._base.copy(), self._again, self._asked, self._progress, steps)
        return steps

    # Filtering

    def _filter_once(self, play: StageMask, steps: list[Step], first: GroupPlacement) -> int:
        steps.append(Step(OFFERED, play.left[0]))
        ignored = self._request.spec.ignore_hosts
        if ignored:
            table = self._board.table
            indexes = [index for host in ignored for index in table.indexes_of_host(host)]
            play.leave_out(self._board.places_at(indexes), 0)
            if indexes:
                steps.append(Step("ignore_hosts", play.left[0]))
        for place in self._request.places:
            # All of them are in the table: the board is current.
            places = self._board.layout.place_of[place.nodes]
            if place.allowed:
                play.keep_only(places, 0)
            else:
                play.leave_out(places.tolist(), 0)
            steps.append(Step(place.step, play.left[0]))
        return self._apply(play, self._once, 0, first, steps)

    def _filter_again(self, steps: list[Step]) -> None:
        self._play = self._base
        self._left_out = None
        if any(each.role is not Role.SILENT for each in self._again):
            self._play = self._base.copy()
        asking = [each for each in self._again if each.role is Role.ASKED]
        if all(names_hosts(each.plugin) for each in asking):
            self._left_out = self._named_out()
        self._apply(self._play, self._again, self._asked, self._progress, steps)

    def _apply(
        self,
        play: StageMask,
        judged: Sequence[Judged],
        asked: int,
        progress: GroupPlacement,
        steps: list[Step],
    ) -> int:
        """Ask filters in turn until no host is left; returns how many of the shape's were asked so far."""
        for each in judged:
            if not play.left[asked]:
                break
            if each.role is Role.KEPT:
                asked += 1
            elif each.role is Role.VARIED:
                mask = self._verdicts.mask(each.plugin, each.key, self._request)
                if mask is not None:
                    play.keep(mask, asked)
            elif each.role is Role.ASKED:
                self._ask(play, each.plugin, asked, progress)
            steps.append(Step(each.plugin.name, play.left[asked]))
        return asked

    def _ask(self, play: StageMask, plugin: Filter, asked: int, progress: GroupPlacement) -> None:
        board = self._board
        if names_hosts(plugin):
            named = ask_named(plugin, HostView(board.table, board.totals), self._request, progress)
            if named is not None:
                places = board.places_at(named.hosts)
                if named.allowed:
                    play.keep_only(np.array(places, dtype=np.intp), asked)
                else:
                    play.leave_out(places, asked)
            return
        places_in_play = board.layout.in_tie_order(play.stage > asked)
        view = HostView(board.table, board.totals, places_in_play)
        mask = ask_filter(plugin, view, self._request, progress)
        if mask is not None and not mask.all():
            play.keep_only(places_in_play[mask], asked)

    # Named hosts that depend on claims: mostly one more with each claim

    def _numbered_again(self) -> list[tuple[int, Judged]]:
        """The filters that are asked again, each with the number of the shape's that were asked before."""
        found, asked = [], self._asked
        for each in self._again:
            if each.role is Role.ASKED:
                found.append((asked, each))
            asked += each.role is Role.KEPT
        return found

    def _named_out(self, progress: GroupPlacement | None = None) -> list[set[int]] | None:
        """The places that each of them leaves out now; None if one allows some hosts only. ``progress``: in
        place of the run's."""
        progress = progress or self._progress
        found = []
        view = HostView(self._board.table, self._board.totals)
        for _, each in self._numbered_again():
            named = ask_named(each.plugin, view, self._request, progress)
            if named is not None and named.allowed:
                return None
            found.append(set() if named is None else set(self._board.places_at(named.hosts)))
        return found

    def _grown(self, places: Collection[int]) -> list[set[int]] | None:
        """The places that each leaves out now and did not before; None if others came back. ``places``: those
        that have changed."""
        if any(each.role is Role.VARIED for each in self._again):
            # What such a filter says of a host that was claimed may be another thing now.
            return None
        if not any(each.role is Role.ASKED for each in self._again):
            return []
        before = self._left_out
        if before is None:
            return None
        if all(names_by_own_members(each.plugin) for _, each in self._numbered_again()):
            return self._grown_among(places, before)
        now = self._named_out()
        if now is None or any(old - new for old, new in zip(before, now, strict=True)):
            return None
        self._left_out = now
        return [new - old for old, new in zip(before, now, strict=True)]

    def _grown_among(self, places: Collection[int], before: Sequence[set[int]]) -> list[set[int]] | None:
        """As `_grown`, where no other place can be named or come back: a group has thousands of members."""
        changed, members = set(places), self._progress.members
        indexes = (self._board.layout.index_at.item(place) for place in changed)
        on_them = Counter({index: members[index] for index in indexes if index in members})
        now = self._named_out(GroupPlacement(on_them, self._progress.present))
        if now is None or any(old & changed - new for old, new in zip(before, now, strict=True)):
            return None
        grown = [new - old for old, new in zip(before, now, strict=True)]
        for old, more in zip(before, grown, strict=True):
            old |= more
        return grown

    # Ranking

    def _places(self) -> Rows:
        """The places of the hosts that are allowed, in the order that breaks ties."""
        return self._board.layout.in_tie_order(self._play.stage == self.full)

    def _rank(self) -> None:
        allowed = self._play.left[-1]
        columns, origins = self._columns.asked(allowed, self._places, self._progress)
        self.ranks = self._shape.ranks.narrowed(columns, origins, self._play.stage, allowed)
        if self._changed:
            # The shape knows nothing yet of what this run has claimed.
            stage = self._play.stage
            touched: list[Touched] = [
                (place, columns.numbers(place)) for place in self._changed if stage.item(place) == self.full
            ]
            self.ranks.settle(touched, allowed)
