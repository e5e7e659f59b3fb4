"""What is known for one kind of request: which hosts are allowed, and what they weigh."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from roost.fleet.columns import Bools
from roost.model.record import Step
from roost.scheduler.cache.any_feasibility import feasibility_of
from roost.scheduler.cache.host_index import HostIndex, put_mask
from roost.scheduler.cache.roles import Judged, Role
from roost.scheduler.cache.score_index import ScoreIndex, Stages, Touched
from roost.scheduler.cache.value_range import ValueRange
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.declarations import is_keyed, looks_at_trees
from roost.scheduler.plugins.plugin_calls import ask_filter
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

ONE_BY_ONE = 48
"""Up to so many hosts are looked at again one by one, 4 µs each; more by vector operations, which cost 100 µs
to begin with, and after which whole blocks are weighed again."""


class EquivalenceClass:
    """All that the requests of one shape have in common, on one board.

    The *stage* of a host: 0 if it cannot serve the query, else 1 more than the number of judging filters that
    it has passed; those with the last stage are allowed. ``ranks`` ranks them.
    """

    def __init__(self, board: HostIndex, request: SchedulingRequest, judged: Sequence[Judged]) -> None:
        self._board = board
        self._request = request
        self._at = (board.invalidations.end, board.reported.end)
        self.serving = feasibility_of(board.fleet, request.queries)
        self.serving.catch_up()
        self._judging = [each.plugin for each in judged if each.role is Role.KEPT]
        self._names = [(each.plugin.name, each.role is Role.KEPT, each.again) for each in judged]
        self._own_masks: dict[str, Bools | None] = {}
        view = HostView(board.table, board.totals)
        for plugin in self._judging:
            if is_keyed(plugin):
                self._own_masks[plugin.name] = ask_filter(plugin, view, request, GroupPlacement())
        self._of_trees = any(looks_at_trees(each) for each in self._judging if is_keyed(each))
        served = self.serving.all(board.fleet, board.totals, board.place_at_row, board.homeless)
        self.stage: Stages = served.view(np.uint8)
        self.left = [int(np.count_nonzero(served))]
        allowed = served.copy()
        self._masks: list[Bools | None] = []
        self._barring: list[tuple[int, Bools]] = []
        self._take_masks()
        for mask in self._masks:
            if mask is not None:
                allowed &= mask
            self.stage += allowed.view(np.uint8)
            self.left.append(int(np.count_nonzero(allowed)))
        self.full = 1 + len(self._judging)
        greatest, least = board.bounds()
        grid = self.stage.reshape(-1, board.layout.size)
        extremes = ValueRange(board, grid, self.full, greatest.copy(), least.copy())
        self.ranks = ScoreIndex(board, self.stage, self.full, self.left[-1], extremes)
        self._doubtful: set[int] = set()
        self._steps: list[Step] = []

    def catch_up(self, request: SchedulingRequest) -> bool:
        """Take in what the board has noted, for a question of this shape that is asked now; False if it is
        better to begin anew."""
        self._request = request
        self.ranks.let_in()
        board = self._board
        ends = (board.invalidations.end, board.reported.end)
        if ends == self._at and not self._doubtful:
            return True
        self.serving.catch_up()
        flips = self.serving.flips()
        changed, reported = board.invalidations.since(self._at[0]), board.reported.since(self._at[1])
        if changed is None or reported is None or flips is None:
            return False
        if flips:
            changed |= {place for row in flips if (place := board.place_at_row.item(row)) >= 0}
        changed |= self._doubtful
        asked_about = changed if self._of_trees else reported
        if self._own_masks and asked_about:
            self._ask_filters([*asked_about])
        if reported or board.masks_follow_trees:
            self._take_masks()
        if len(changed) <= ONE_BY_ONE:
            seen = [touched for place in changed if (touched := self._look_at(place))]
            self.ranks.settle(seen, self.left[-1])
        else:
            self._look_at_many(np.array([*changed], dtype=np.intp))
        # Only now: what a plugin raises must not leave half of it done and be taken for all.
        self._at = ends
        self._doubtful.clear()
        return True

    def steps(self) -> list[Step]:
        """How many hosts each step leaves."""
        if not self._steps:
            self._steps = [Step(KNOWN, len(self._board.table)), Step(OFFERED, self.left[0])]
            passed = 0
            for name, judges, _ in self._names:
                if not self.left[passed]:
                    break
                passed += judges
                self._steps.append(Step(name, self.left[passed]))
        return self._steps

    def again_steps(self) -> list[Step]:
        """How many hosts the filters that depend on claims leave now."""
        passed = sum(judges for _, judges, again in self._names if not again)
        steps: list[Step] = []
        for name, judges, _ in (each for each in self._names if each[2]):
            if not self.left[passed]:
                break
            passed += judges
            steps.append(Step(name, self.left[passed]))
        return steps

    def allows(self, place: int) -> bool:
        """Whether a host may be used."""
        return self.stage.item(place) == self.full

    def open_again(self, progress: GroupPlacement) -> None:
        """Nothing: filters that look at the run's progress are not part of a shape."""

    def reweigh(
        self, places: Collection[int], full: Sequence[int], rejected: Iterable[tuple[int, int]]
    ) -> "EquivalenceClass":
        """In the middle of a run: it has claimed hosts, and has found others to be full.

        Returns the hosts for the next instance.

        That a host has been claimed does not rule it out until somebody finds it full: so that hosts answer
        alike whether it is known at once (here) or when the claim fails (over the wire). ``rejected``: hosts
        that a filter which depends on claims does not let pass any more, each with its stage.
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
                touched[place] = (place, self._board.known(place).numbers)
        self.ranks.settle([*touched.values()], self.left[-1])
        return self

    def _take_masks(self) -> None:
        """Whom each of the judging filters lets pass; and those that bar anyone, each with the stage of whom
        it bars."""
        names, masks = [plugin.name for plugin in self._judging], self._board.masks | self._own_masks
        self._masks = [masks[name] for name in names]
        self._barring = [(stage, mask) for stage, mask in enumerate(self._masks, 1) if mask is not None]

    def _ask_filters(self, places: Sequence[int]) -> None:
        board = self._board
        view = HostView(board.table, board.totals, np.array(places, dtype=np.intp))
        for plugin in self._judging:
            if plugin.name in self._own_masks:
                mask = ask_filter(plugin, view, self._request, GroupPlacement())
                column = self._own_masks[plugin.name]
                self._own_masks[plugin.name] = put_mask(column, places, mask, len(self.stage))

    def _look_at(self, place: int) -> Touched | None:
        """Look at a host again; None if it neither was allowed nor is."""
        was, known, full = self.stage.item(place), self._board.known(place), self.full
        now = 0
        if self.serving.serves(self._board.fleet, known):
            now = full
            for stage, mask in self._barring:
                if not mask.item(place):
                    now = stage
                    break
        if now != was:
            self._set_stage(place, now)
        if now == full:
            return place, known.numbers
        return (place, None) if was == full else None

    def _set_stage(self, place: int, now: int) -> None:
        was = self.stage.item(place)
        self.stage[place] = now
        self._steps = []
        # Of the first steps, as many as its stage, the host is among those that are left.
        for step in range(min(was, now), max(was, now)):
            self.left[step] += 1 if now > was else -1

    def _look_at_many(self, places: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> None:
        board = self._board
        rows = board.row_at[places]
        now = np.zeros(len(places), dtype=np.uint8)
        there = rows >= 0
        alive = np.zeros(len(places), dtype=np.bool_)
        alive[there] = self.serving.serve(board.fleet, rows[there])
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
            self.ranks.settle_blocks(np.unique(touched >> board.layout.shift), self.left[-1])
