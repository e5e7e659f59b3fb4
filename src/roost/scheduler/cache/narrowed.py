"""An equivalence class narrowed for one request, by named hosts and by plugins that are asked for it alone.

The class stays as it is. Where a request of one instance excludes few hosts by name, such as those that it
ignores and those of its server group, the class itself serves it: its score index skips these hosts until the
request is done.
Ten hosts of ten thousand are mostly among those that are never weighed, and the blocks that the request opens
stay open for others. The weights are the same as long as the least and the greatest number of each weigher
are still there, and more than one host is.

Other requests get a score index of their own. The bounds of the class hold for fewer hosts too, so such a
request costs a copy of the stages and the weighing of a few blocks, not the weighing of the fleet.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Rows
from roost.model.record import Step
from roost.scheduler.cache.equivalence_class import EquivalenceClass, StageMask
from roost.scheduler.cache.host_index import HostIndex
from roost.scheduler.cache.plugin_answers import OwnColumns, Verdicts
from roost.scheduler.cache.plugin_roles import FilterRole, Role
from roost.scheduler.cache.value_range import Touched
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
    ) -> None:
        """Raises: `SchedulerFault` from a plugin."""
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
        self.scores = equivalence_class.scores
        self._steps = [Step(KNOWN, len(host_index.table))]
        # The hosts after the filters that are asked once; filters asked after each claim begin from these.
        self._base = StageMask(equivalence_class.stage, equivalence_class.left)
        self._asked = self._filter_once(self._base, self._steps)
        self._mask = self._base
        self._filter_again(self._steps)
        # The places that the run has claimed.
        self._changed: set[int] = set()
        self._shares_scores = False
        self._rank()
        # The places that each filter asked again excluded last; None: all are filtered after the next claim.
        self._left_out = None if self._shares_scores else self._named_out(self._progress)

    def steps(self) -> list[Step]:
        """Return the number of hosts that each step leaves."""
        return self._steps

    def allows(self, place: int) -> bool:
        """Return whether a host is allowed."""
        return self._mask.at(place) == self.full

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> "Narrowed":
        """Apply the claims of a run in progress, as `EquivalenceClass.reweigh`."""
        lost = [place for place in full if self._mask.at(place) == self.full]
        for mask in {id(each): each for each in (self._base, self._mask)}.values():
            mask.leave_out(full, 0)
            for place, stage in rejected:
                if mask.at(place) == self.full:
                    mask.lower(place, stage)
        self._changed.update(places)
        renewed = self._columns.ask_again(places, self._progress, self.allows)
        more = None if self._shares_scores else self._grown(places)
        if more is None or renewed:
            self.scores.let_in()
            self._filter_again([])
            self._left_out = self._named_out(self._progress)
            self._rank()
            return self
        for (asked, _), gone in zip(self._numbered_again(), more, strict=True):
            lost += [place for place in gone if self._mask.at(place) == self.full]
            self._mask.leave_out(gone, asked)
        numbers = self._columns.numbers
        touched: dict[int, Touched] = {place: (place, None) for place in lost}
        for place in places:
            if self._mask.at(place) == self.full:
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
        return lambda place: mask.at(place) == self.full

    def again_steps(self) -> list[Step]:
        """Return the number of hosts that each filter which depends on claims leaves now."""
        steps: list[Step] = []
        self._apply(self._base.copy(), self._again, self._asked, self._progress, steps)
        return steps

    # Filtering

    def _filter_once(self, mask: StageMask, steps: list[Step]) -> int:
        steps.append(Step(OFFERED, mask.left[0]))
        ignored = self._request.spec.ignore_hosts
        if ignored:
            table = self._host_index.table
            indexes = [index for host in ignored for index in table.indexes_of_requested_host(host)]
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
        return self._apply(mask, self._once, 0, self._progress, steps)

    def _filter_again(self, steps: list[Step]) -> None:
        self._mask = self._base
        if any(each.role is not Role.SILENT for each in self._again):
            self._mask = self._base.copy()
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

    def _numbered_again(self) -> list[tuple[int, Filter]]:
        """Return the filters that are asked again, each with the number of the class's filters before it."""
        found, asked = [], self._asked
        for each in self._again:
            if each.role is Role.ASKED:
                found.append((asked, each.plugin))
            asked += each.role is Role.CACHED
        return found

    def _named_out(self, progress: GroupPlacement) -> list[set[int]] | None:
        """Return the places that each filter asked again excludes.

        None: a filter does not name hosts, or names the only ones that it allows.
        """
        found = []
        view = HostView(self._host_index.table, self._host_index.totals)
        for _, plugin in self._numbered_again():
            if plugin.named is None:
                return None
            named = ask_named(plugin, view, self._request, progress)
            if named is not None and named.allowed:
                return None
            found.append(set() if named is None else set(self._host_index.places_at(named.hosts)))
        return found

    def _grown(self, places: Collection[int]) -> list[set[int]] | None:
        """Return the places that each filter excludes now and did not before; None if places came back.

        ``places``: those that have changed. Where each is excluded by its own members, the filters are asked
        about these alone: a group may have thousands of members.
        """
        if any(each.role is Role.VARIED for each in self._again):
            # A filter with many keys may judge a claimed host differently now.
            return None
        if all(each.role is not Role.ASKED for each in self._again):
            return []
        before = self._left_out
        if before is None:
            return None
        progress, among = self._progress, None
        if all(plugin.names_by_own_members for _, plugin in self._numbered_again()):
            among = set(places)
            indexes = (self._host_index.layout.index_at.item(place) for place in among)
            members = {index: progress.members[index] for index in indexes if index in progress.members}
            progress = GroupPlacement(Counter(members), progress.present)
        now = self._named_out(progress)
        if now is None:
            return None
        judged = before if among is None else [old & among for old in before]
        if any(old - new for old, new in zip(judged, now, strict=True)):
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
        # The first claim of a run ends the sharing, so it pays for a run of one instance alone.
        alone = len(self._request.instances) == 1
        self._shares_scores = alone and not self._changed and self._leave_out_of_class(allowed)
        if self._shares_scores:
            return
        columns, origins = self._columns.asked(allowed, self._places, self._progress)
        self.scores = self._class.scores.narrowed(columns, origins, self._mask.stage, allowed)
        if self._changed:
            # The class does not include the claims of this run yet.
            touched: list[Touched] = [
                (place, columns.numbers(place)) for place in self._changed if self.allows(place)
            ]
            self.scores.settle(touched, allowed)

    def _leave_out_of_class(self, allowed: int) -> bool:
        """Let the class serve this request without the excluded hosts; False if weights would change."""
        named = self._mask.named
        if named is None or allowed < 2 or self._columns.weighers:
            return False
        return self.scores.leave_out([place for place in named if self._class.allows(place)], allowed)
