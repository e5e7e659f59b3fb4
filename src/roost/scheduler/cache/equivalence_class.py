"""Equivalence class: the allowed hosts and their weights, for all requests with the same query and keys."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.model.record import Step
from roost.scheduler.cache.feasibility import feasibility_of
from roost.scheduler.cache.host_index import HostIndex, put_mask
from roost.scheduler.cache.plugin_roles import FilterRole, Role
from roost.scheduler.cache.score_index import ScoreIndex
from roost.scheduler.cache.value_range import Stages, Touched, ValueRange
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

ONE_BY_ONE = 48
"""Changed hosts that are judged, and excluded ones that are marked, one by one: up to 4 µs each.

More are judged by vector operations, which cost 100 µs to begin with, and after which whole blocks are
weighed again.
"""

MOST_NAMED = 256
"""Hosts excluded one by one, 1 µs each. For more of them the stages are copied and changed by vector
operations."""


class EquivalenceClass:
    """The results that all requests of one class share, on one host index.

    The *stage* of a host is 0 if it cannot serve the query, else 1 more than the number of the class's
    filters that it passes. Hosts with the last stage are allowed; ``scores`` has their weights.
    """

    def __init__(
        self, host_index: HostIndex, request: SchedulingRequest, filter_roles: Sequence[FilterRole]
    ) -> None:
        self._host_index = host_index
        self._request = request
        self._at = (host_index.invalidations.end, host_index.reported.end)
        self.feasibility = feasibility_of(host_index.fleet, request.queries)
        self.feasibility.catch_up()
        self._cached_filters = [each.plugin for each in filter_roles if each.role is Role.CACHED]
        self._names = [(each.plugin.name, each.role is Role.CACHED, each.again) for each in filter_roles]
        self._own_masks: dict[str, Bools | None] = {}
        view = HostView(host_index.table, host_index.totals)
        for plugin in self._cached_filters:
            if plugin.key is not None:
                self._own_masks[plugin.name] = ask_filter(plugin, view, request, GroupPlacement())
        self._of_trees = any(each.looks_at_trees for each in self._cached_filters if each.key is not None)
        served = self.feasibility.serving(
            host_index.fleet, host_index.totals, host_index.place_at_row, host_index.homeless
        )
        self.stage: Stages = served.view(np.uint8)
        self.left = [int(np.count_nonzero(served))]
        allowed = served.copy()
        self._masks: list[Bools | None] = []
        self._rejecting: list[tuple[int, Bools]] = []
        self._take_masks()
        for mask in self._masks:
            if mask is not None:
                allowed &= mask
            self.stage += allowed.view(np.uint8)
            self.left.append(int(np.count_nonzero(allowed)))
        self.full = 1 + len(self._cached_filters)
        greatest, least = host_index.bounds()
        grid = self.stage.reshape(-1, host_index.layout.size)
        value_range = ValueRange(host_index, grid, self.full, greatest.copy(), least.copy())
        self.scores = ScoreIndex(host_index, self.stage, self.full, self.left[-1], value_range)
        self._doubtful: set[int] = set()
        self._steps: list[Step] = []

    def catch_up(self, request: SchedulingRequest) -> bool:
        """Apply the changes of the host index, for a request that is decided now.

        Returns False if building the class anew is cheaper.
        """
        self._request = request
        self.scores.let_in()
        host_index = self._host_index
        ends = (host_index.invalidations.end, host_index.reported.end)
        if ends == self._at and not self._doubtful:
            return True
        self.feasibility.catch_up()
        flips = self.feasibility.flips()
        changed, reported = (
            host_index.invalidations.since(self._at[0]),
            host_index.reported.since(self._at[1]),
        )
        if changed is None or reported is None or flips is None:
            return False
        if flips:
            changed |= {place for row in flips if (place := host_index.place_at_row.item(row)) >= 0}
        changed |= self._doubtful
        asked_about = changed if self._of_trees else reported
        if self._own_masks and asked_about:
            self._ask_filters([*asked_about])
        if reported or host_index.masks_follow_trees:
            self._take_masks()
        if len(changed) <= ONE_BY_ONE:
            seen = [touched for place in changed if (touched := self._look_at(place))]
            self.scores.settle(seen, self.left[-1])
        else:
            self._look_at_many(np.array([*changed], dtype=np.intp))
        # Last: after an error of a plugin the same changes must be read again.
        self._at = ends
        self._doubtful.clear()
        return True

    def steps(self) -> list[Step]:
        """Return the number of hosts that each step leaves."""
        if not self._steps:
            self._steps = [Step(KNOWN, len(self._host_index.table)), Step(OFFERED, self.left[0])]
            passed = 0
            for name, is_cached, _ in self._names:
                if not self.left[passed]:
                    break
                passed += is_cached
                self._steps.append(Step(name, self.left[passed]))
        return self._steps

    def again_steps(self) -> list[Step]:
        """Return the number of hosts that each filter which depends on claims leaves now."""
        passed = sum(is_cached for _, is_cached, again in self._names if not again)
        steps: list[Step] = []
        for name, is_cached, _ in (each for each in self._names if each[2]):
            if not self.left[passed]:
                break
            passed += is_cached
            steps.append(Step(name, self.left[passed]))
        return steps

    def allows(self, place: int) -> bool:
        """Return whether a host is allowed."""
        return self.stage.item(place) == self.full

    def open_again(self, progress: GroupPlacement) -> None:
        """Return None: filters that look at the run's progress are not part of a class."""

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> "EquivalenceClass":
        """Apply the claims of a run in progress, and the hosts that it found full.

        Returns the hosts for the next instance.

        A claimed host stays allowed until a claim on it fails. So hosts behave alike whether the scheduler
        could know at once that they are full (here) or only by a refused claim (over HTTP). ``rejected``:
        hosts that a filter which depends on claims rejects now, each with its stage.
        """
        touched: dict[int, Touched] = {}
        for place, stage in (*((place, 0) for place in full), *rejected):
            if self.stage.item(place) == self.full:
                touched[place] = (place, None)
                self._set_stage(place, stage)
            elif not stage:
                self._set_stage(place, 0)
            self._doubtful.add(place)
        for place in places:
            if self.stage.item(place) == self.full:
                touched[place] = (place, self._host_index.entry(place).numbers)
        self.scores.settle([*touched.values()], self.left[-1])
        return self

    def _take_masks(self) -> None:
        """Read the masks of the class's filters; ``_rejecting`` has those that reject any host, each with its
        stage."""
        names, masks = (
            [plugin.name for plugin in self._cached_filters],
            self._host_index.masks | self._own_masks,
        )
        self._masks = [masks[name] for name in names]
        self._rejecting = [(stage, mask) for stage, mask in enumerate(self._masks, 1) if mask is not None]

    def _ask_filters(self, places: Sequence[int]) -> None:
        host_index = self._host_index
        view = HostView(host_index.table, host_index.totals, np.array(places, dtype=np.intp))
        for plugin in self._cached_filters:
            if plugin.name in self._own_masks:
                mask = ask_filter(plugin, view, self._request, GroupPlacement())
                column = self._own_masks[plugin.name]
                self._own_masks[plugin.name] = put_mask(column, places, mask, len(self.stage))

    def _look_at(self, place: int) -> Touched | None:
        """Judge a host again; None if it neither was allowed nor is."""
        was, entry, full = self.stage.item(place), self._host_index.entry(place), self.full
        now = 0
        if self.feasibility.serves(self._host_index.fleet, entry):
            now = full
            for stage, mask in self._rejecting:
                if not mask.item(place):
                    now = stage
                    break
        if now != was:
            self._set_stage(place, now)
        if now == full:
            return place, entry.numbers
        return (place, None) if was == full else None

    def _set_stage(self, place: int, now: int) -> None:
        was = self.stage.item(place)
        self.stage[place] = now
        self._steps = []
        # A host counts in as many of the first steps as its stage says.
        for step in range(min(was, now), max(was, now)):
            self.left[step] += 1 if now > was else -1

    def _look_at_many(self, places: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> None:
        host_index = self._host_index
        rows = host_index.row_at[places]
        now = np.zeros(len(places), dtype=np.uint8)
        there = rows >= 0
        alive = np.zeros(len(places), dtype=np.bool_)
        alive[there] = self.feasibility.serve(host_index.fleet, rows[there])
        now += alive
        for mask in self._masks:
            if mask is not None:
                alive &= mask[places]
            now += alive
        was = self.stage[places]
        self._steps = []
        for step in range(self.full):
            self.left[step] += int(np.count_nonzero(now > step)) - int(np.count_nonzero(was > step))
        self.stage[places] = now
        touched = places[(was == self.full) | (now == self.full)]
        if len(touched):
            self.scores.settle_blocks(np.unique(touched >> host_index.layout.shift), self.left[-1])


class StageMask:
    """The hosts of a class, of which one request excludes some. The class stays as it is.

    ``left``: the number of hosts left after each number of the class's filters. An excluded host has stage 0.
    Few hosts are noted by name; the stages of all hosts are copied when more are excluded.
    """

    __slots__ = ("_named", "_of_class", "_stage", "left")

    def __init__(self, stage: Stages, left: Sequence[int]) -> None:
        self.left = list(left)
        self._of_class = stage
        self._stage: Stages | None = None
        self._named: set[int] = set()

    @property
    def stage(self) -> Stages:
        """The stage of each host, uint8[places], in a copy that belongs to this mask."""
        if self._stage is None:
            self._stage = self._of_class.copy()
            self._stage[[*self._named]] = 0
        return self._stage

    @property
    def named(self) -> set[int] | None:
        """The excluded hosts that had a stage; None if these are not noted by name."""
        return self._named if self._stage is None else None

    def copy(self) -> "StageMask":
        """Return a mask with the same hosts."""
        other = StageMask(self._of_class, self.left)
        other._named = self._named.copy()
        other._stage = None if self._stage is None else self._stage.copy()
        return other

    def at(self, place: int) -> int:
        """Return the stage of a host."""
        if self._stage is not None:
            return self._stage.item(place)
        return 0 if place in self._named else self._of_class.item(place)

    def leave_out(self, places: Collection[int], asked: int) -> None:
        """Exclude hosts after ``asked`` filters of the class were applied."""
        if self._stage is None and len(self._named) + len(places) <= MOST_NAMED:
            stage, named, left = self._of_class, self._named, self.left
            for place in places:
                was = stage.item(place)
                if was > asked and place not in named:
                    named.add(place)
                    for step in range(asked, was):
                        left[step] -= 1
            return
        if len(places) <= ONE_BY_ONE:
            for place in places:
                if self.stage.item(place) > asked:
                    self.lower(place, 0, asked)
            return
        several = np.unique(np.array([*places], dtype=np.intp))
        stages = self.stage[several]
        gone = stages > asked
        several, stages = several[gone], stages[gone]
        self.stage[several] = 0
        for step in range(asked, len(self.left)):
            self.left[step] -= int(np.count_nonzero(stages > step))

    def lower(self, place: int, stage: int, asked: int = 0) -> None:
        """Lower the stage of a host that is left after ``asked`` filters."""
        was = self.at(place)
        if was > stage:
            self.stage[place] = stage
            for step in range(max(asked, stage), was):
                self.left[step] -= 1

    def keep(self, mask: Bools, asked: int) -> None:
        """Exclude all hosts that a mask (bool[places]) rejects."""
        stage = self.stage
        stage *= mask.view(np.uint8)
        counted: dict[int, int] = {}
        for step in range(asked, len(self.left)):
            # Each step leaves a subset of the hosts before it: equal counts mean equal hosts.
            before = self.left[step]
            if before not in counted:
                counted[before] = int(np.count_nonzero(stage > step))
            self.left[step] = counted[before]

    def keep_only(self, places: Rows, asked: int) -> None:
        """Exclude all hosts but some."""
        stages = self.stage[places]
        self.stage[:] = 0
        self.stage[places] = stages
        for step in range(asked, len(self.left)):
            self.left[step] = int(np.count_nonzero(stages > step))
