"""An equivalence class narrowed for one request, by named hosts and by plugins that are asked for it alone.

The class stays as it is. Its bounds hold for fewer hosts too, so a request that excludes ten hosts costs a
copy of the stages and the weighing of a few blocks, not the weighing of the fleet.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Rows
from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.plugin_roles import FilterRole, Role
from roost.scheduler.cache.score_index import Touched
from roost.scheduler.cache.stage_mask import StageMask
from roost.scheduler.cache.verdicts import Verdicts
from roost.scheduler.cache.weigher_columns import OwnColumns
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_named
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class Narrowed:
    """The allowed hosts of one request with their scores, derived from its `EquivalenceClass`."""

    def __init__(
        self,
        host_index: HostIndex,
        equivalence_class: EquivalenceClass,
        verdicts: Verdicts,
        request: SchedulingRequest,
        filter_roles: Sequence[FilterRole],
        columns: OwnColumns,
        progress: GroupPlacement,
        first: GroupPlacement,
    ) -> None:
        """``first``: the group placement at the start of the run."""
        self._host_index = host_index
        self._class = equivalence_class
        self._verdicts = verdicts
        self._request = request
        self._once = [each for each in filter_roles if not each.again]
        self._again = [each for each in filter_roles if each.again]
        self._columns = columns
        self._progress = progress
        self.feasibility = equivalence_class.feasibility
        self.full = equivalence_class.full
        self._steps = [Step(KNOWN, len(host_index.table))]
        # The hosts after the filters that are asked once; filters asked after each claim begin from these.
        self._base = StageMask(equivalence_class.stage, equivalence_class.left)
        self._asked = self._filter_once(self._base, self._steps, first)
        self._left_out: list[set[int]] | None = None
        self._mask = self._base
        self._changed: set[int] = set()
        self._filter_again(self._steps)
        self._rank()

    def steps(self) -> list[Step]:
        """Return the number of hosts that each step leaves."""
        return self._steps

    def allows(self, place: int) -> bool:
        """Return whether a host is allowed."""
        return self._mask.stage.item(place) == self.full

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> "Narrowed":
        """Apply the claims of a run in progress, as `EquivalenceClass.reweigh`."""
        lost = [place for place in full if self._mask.stage.item(place) == self.full]
        for mask in {id(each): each for each in (self._base, self._mask)}.values():
            mask.leave_out(full, 0)
            for place, stage in rejected:
                if mask.stage.item(place) == self.full:
                    mask.lower(place, stage)
        self._changed.update(places)
        renewed = self._columns.ask_again(places, self._progress, self.allows)
        more = self._grown(places)
        if more is None or renewed:
            self._filter_again([])
            self._rank()
            return self
        for (asked, _), gone in zip(self._numbered_again(), more, strict=True):
            lost += [place for place in gone if self._mask.stage.item(place) == self.full]
            self._mask.leave_out(gone, asked)
        numbers = self._columns.numbers
        touched: dict[int, Touched] = {place: (place, None) for place in lost}
        for place in places:
            if self._mask.stage.item(place) == self.full:
                touched[place] = (place, numbers(place))
        for place, _ in rejected:
            touched[place] = (place, None)
        self.scores.settle([*touched.values()], self._mask.left[-1])
        return self

    def open_again(self, progress: GroupPlacement) -> Callable[[int], bool] | None:
        """Return a test of whether the filters that depend on claims allow a host under another group
        placement.

        None: there are no such filters.
        """
        if not any(each.role in (Role.ASKED, Role.VARIED) for each in self._again):
            return None
        mask = self._base.copy()
        self._apply(mask, self._again, self._asked, progress, [])
        return lambda place: mask.stage.item(place) == self.full

    def again_steps(self) -> list[Step]:
        """Return the number of hosts that each filter which depends on claims leaves now."""
        steps: list[Step] = []
        self._apply(self._base.copy(), self._again, self._asked, self._progress, steps)
        return steps

    # Filtering

    def _filter_once(self, mask: StageMask, steps: list[Step], first: GroupPlacement) -> int:
        steps.append(Step(OFFERED, mask.left[0]))
        ignored = self._request.spec.ignore_hosts
        if ignored:
            table = self._host_index.table
            indexes = [index for host in ignored for index in table.indexes_of_host(host)]
            mask.leave_out(self._host_index.places_at(indexes), 0)
            if indexes:
                steps.append(Step("ignore_hosts", mask.left[0]))
        for place in self._request.places:
            # All of them are in the table, because the host index is current.
            places = self._host_index.layout.place_of[place.nodes]
            if place.allowed:
                mask.keep_only(places, 0)
            else:
                mask.leave_out(places.tolist(), 0)
            steps.append(Step(place.step, mask.left[0]))
        return self._apply(mask, self._once, 0, first, steps)

    def _filter_again(self, steps: list[Step]) -> None:
        self._mask = self._base
        self._left_out = None
        if any(each.role is not Role.SILENT for each in self._again):
            self._mask = self._base.copy()
        asking = [each for each in self._again if each.role is Role.ASKED]
        if all(each.plugin.named is not None for each in asking):
            self._left_out = self._named_out()
        self._apply(self._mask, self._again, self._asked, self._progress, steps)

    def _apply(
        self,
        mask: StageMask,
        filter_roles: Sequence[FilterRole],
        asked: int,
        progress: GroupPlacement,
        steps: list[Step],
    ) -> int:
        """Apply filters in turn until no host is left. Returns how many filters of the class were applied so
        far."""
        for each in filter_roles:
            if not mask.left[asked]:
                break
            if each.role is Role.CACHED:
                asked += 1
            elif each.role is Role.VARIED:
                allowed = self._verdicts.mask(each.plugin, each.key, self._request)
                if allowed is not None:
                    mask.keep(allowed, asked)
            elif each.role is Role.ASKED:
                self._ask(mask, each.plugin, asked, progress)
            steps.append(Step(each.plugin.name, mask.left[asked]))
        return asked

    def _ask(self, mask: StageMask, plugin: Filter, asked: int, progress: GroupPlacement) -> None:
        host_index = self._host_index
        if plugin.named is not None:
            named = ask_named(plugin, HostView(host_index.table, host_index.totals), self._request, progress)
            if named is not None:
                places = host_index.places_at(named.hosts)
                if named.allowed:
                    mask.keep_only(np.array(places, dtype=np.intp), asked)
                else:
                    mask.leave_out(places, asked)
            return
        places_left = host_index.layout.in_tie_order(mask.stage > asked)
        view = HostView(host_index.table, host_index.totals, places_left)
        allowed = ask_filter(plugin, view, self._request, progress)
        if allowed is not None and not allowed.all():
            mask.keep_only(places_left[allowed], asked)

    # Named hosts that depend on claims: mostly one more with each claim

    def _numbered_again(self) -> list[tuple[int, FilterRole]]:
        """Return the filters that are asked again, each with the number of the class's filters before it."""
        found, asked = [], self._asked
        for each in self._again:
            if each.role is Role.ASKED:
                found.append((asked, each))
            asked += each.role is Role.CACHED
        return found

    def _named_out(self, progress: GroupPlacement | None = None) -> list[set[int]] | None:
        """Return the places that each filter asked again excludes now; None if one allows named hosts only.

        ``progress``: in place of the run's.
        """
        progress = progress or self._progress
        found = []
        view = HostView(self._host_index.table, self._host_index.totals)
        for _, each in self._numbered_again():
            named = ask_named(each.plugin, view, self._request, progress)
            if named is not None and named.allowed:
                return None
            found.append(set() if named is None else set(self._host_index.places_at(named.hosts)))
        return found

    def _grown(self, places: Collection[int]) -> list[set[int]] | None:
        """Return the places that each filter excludes now and did not before; None if places came back.

        ``places``: those that have changed.
        """
        if any(each.role is Role.VARIED for each in self._again):
            # Such a filter may judge a claimed host differently now.
            return None
        if not any(each.role is Role.ASKED for each in self._again):
            return []
        before = self._left_out
        if before is None:
            return None
        if all(each.plugin.names_by_own_members for _, each in self._numbered_again()):
            return self._grown_among(places, before)
        now = self._named_out()
        if now is None or any(old - new for old, new in zip(before, now, strict=True)):
            return None
        self._left_out = now
        return [new - old for old, new in zip(before, now, strict=True)]

    def _grown_among(self, places: Collection[int], before: Sequence[set[int]]) -> list[set[int]] | None:
        """As `_grown`, where only the changed places can be named or come back. A group may have thousands of
        members."""
        changed, members = set(places), self._progress.members
        indexes = (self._host_index.layout.index_at.item(place) for place in changed)
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
        """Return the places of the allowed hosts, in the order that breaks ties."""
        return self._host_index.layout.in_tie_order(self._mask.stage == self.full)

    def _rank(self) -> None:
        allowed = self._mask.left[-1]
        columns, origins = self._columns.asked(allowed, self._places, self._progress)
        self.scores = self._class.scores.narrowed(columns, origins, self._mask.stage, allowed)
        if self._changed:
            # The class does not include the claims of this run yet.
            stage = self._mask.stage
            touched: list[Touched] = [
                (place, columns.numbers(place)) for place in self._changed if stage.item(place) == self.full
            ]
            self.scores.settle(touched, allowed)
