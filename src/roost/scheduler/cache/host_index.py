"""Host index: the state of all hosts that every equivalence class shares, kept current."""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Rows, grown
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.allocation import Candidate
from roost.scheduler.cache.host_columns import CachedTotals, HostEntry, PlaceLayout, Rooms, rows_at
from roost.scheduler.cache.plugin_roles import is_cacheable
from roost.scheduler.cache.weights import BlockScores
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_calls import ask_filter, ask_weigher
from roost.scheduler.plugins.plugins import Filter, Weigher
from roost.scheduler.pool.weights import clean_numbers, multiplier_of
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

ONE_BY_ONE = 16
"""Changed hosts that are computed again one by one; more by vector operations, which cost more to start."""
_MOST_ENTRIES = 1_000
"""Hosts with a `HostEntry`: many times as many as change between two decisions of one class.

Each entry is half a dozen objects for the garbage collector.
"""


class HostIndex:
    """Columns by place (see `PlaceLayout`), for one fleet, one table and the options of one scheduler.

    ``row_at``: intp[places], the fleet's row of each host's root provider, or -1; ``place_at_row``:
    intp[rows], with room to spare, or -1; ``homeless``: the places without a row.

    ``raws``: the numbers of each weigher with a column (``names``), float64[places]; for a weigher of free
    amounts it is the column of ``totals``. ``multipliers``: a number, or float64[places]; ``minvals``: the
    number that is normalised to 0, -inf where it is the least; ``weigher_ranks``: the number of each column's
    weigher among all. ``block_scores``: weights by all columns together, see `BlockScores`.

    ``masks``: for each filter that does not look at the request the hosts that it passes, bool[places], None
    for all.

    ``invalidations`` has the places where anything has changed, ``reported`` those whose host reported a
    change.
    """

    def __init__(
        self,
        fleet: Fleet,
        table: NodeTable,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
        request: SchedulingRequest,
    ) -> None:
        self.fleet = fleet
        self.table = table
        self.options = request.options
        self.invalidations = InvalidationLog()
        self.reported = InvalidationLog()
        table.seen_since(request.oldest_heartbeat)
        self._at = (fleet.invalidations.end, table.invalidations.end)
        self._structure = table.structure
        self._roster = fleet.provider_set_version
        self.layout = PlaceLayout(table.cell[: table.size], len(table.cells), table.tie_rank)
        index = self.layout.index_at
        host_at_row = table.indexes_of_rows(fleet, np.arange(fleet.n_rows))
        self.row_at: Rows = rows_at(fleet, index, host_at_row)
        self.row_at[self.layout.spare] = -1
        self.homeless: Rows = np.flatnonzero(self.row_at < 0)
        self.place_at_row: Rows = np.full(fleet.n_rows, -1, dtype=np.intp)
        places = np.flatnonzero(self.row_at >= 0)
        self.place_at_row[self.row_at[places]] = places
        self.totals = CachedTotals(fleet, index, self.row_at)
        view = HostView(table, self.totals)
        self.names: list[str] = []
        self.raws: list[Float64] = []
        self.multipliers: list[Float64 | float] = []
        self.minvals: list[float] = []
        # For each column the number of its weigher among all weighers.
        self.weigher_ranks: list[int] = []
        self._numbered: list[Weigher] = []
        self._free_of: list[tuple[Weigher, str | None]] = []
        # Weighers to be asked again, each with the number of its column; None: it returns no numbers.
        self._of_reports: list[tuple[Weigher, int | None]] = []
        self._of_trees: list[tuple[Weigher, int | None]] = []
        for rank, weigher in enumerate(weighers):
            if not is_cacheable(weigher):
                continue
            free_of = weigher.free_class(table)
            self._free_of.append((weigher, free_of))
            minval = weigher.minval
            raw = (
                ask_weigher(weigher, view, request, GroupPlacement())
                if free_of is None
                else self.totals.left(free_of, minval)
            )
            if free_of is None:
                again = self._of_reports if weigher.looks_at is Looks.REPORT else self._of_trees
                again.append((weigher, None if raw is None else len(self.raws)))
            if raw is not None:
                if free_of is None:
                    raw = clean_numbers(np.array(raw, dtype=np.float64), minval)
                self.weigher_ranks.append(rank)
                self.names.append(weigher.name)
                self.raws.append(raw)
                self.minvals.append(minval)
                self.multipliers.append(multiplier_of(view, weigher, request))
                self._numbered.append(weigher)
        self.block_scores = BlockScores(self.layout, self.raws, self.invalidations)
        self.leading = len(self.raws)
        self.masks: dict[str, Bools | None] = {}
        self._filters = [each for each in filters if is_cacheable(each) and each.key is None]
        self._of_trees_filters = [each for each in self._filters if each.looks_at_trees]
        for plugin in self._filters:
            self.masks[plugin.name] = ask_filter(plugin, view, request, GroupPlacement())
        self._entries: dict[int, HostEntry] = {}
        self._bounds: tuple[Float64, Float64] | None = None
        self._loose: set[int] = set()
        # Places whose host has another row than before, until they are computed again.
        self._rehomed: set[int] = set()

    def sync(self, request: SchedulingRequest) -> bool:
        """Catch up with fleet and table; False if building the index anew is cheaper."""
        fleet, table = self.fleet, self.table
        table.seen_since(request.oldest_heartbeat)
        if self._structure != table.structure:
            return False
        ends = (fleet.invalidations.end, table.invalidations.end)
        if ends == self._at:
            return True
        rows, reported = fleet.invalidations.since(self._at[0]), table.invalidations.since(self._at[1])
        if rows is None or reported is None:
            return False
        if self._roster != fleet.provider_set_version:
            self._find_rows(rows)
        # A provider that leaves a tree changes its old parent as well: so no tree that it was in is missed.
        alive = fleet.alive
        touched = {place for row in rows if alive.item(row) and (place := self._place(row)) >= 0}
        touched |= self._rehomed
        fresh = {self.layout.place_of.item(index) for index in reported}
        if not self._look_again(touched, fresh, request):
            return False
        for place in fresh:
            self.reported.append(place)
        # Last: after an error of a plugin the same changes must be read again.
        self._at, self._roster = ends, fleet.provider_set_version
        self._rehomed.clear()
        return True

    @property
    def masks_follow_trees(self) -> bool:
        """Return whether changes of trees can change ``masks``, not only reports."""
        return bool(self._of_trees_filters)

    def entry(self, place: int) -> HostEntry:
        """Return the cached values of a host, which are valid until it changes."""
        entry = self._entries.get(place)
        if entry is None:
            entry = self._new_entry(place, {})
        if not entry.numbers:
            entry.numbers = [raw.item(place) for raw in self.raws]
        return entry

    def places_of(self, candidate: Candidate) -> list[int]:
        """Return the places of the hosts from whose trees a candidate takes something."""
        row = self.fleet.row
        places = (self._place(row(provider)) for provider in candidate.allocations)
        return [place for place in places if place >= 0]

    def places_at(self, indexes: Iterable[int]) -> list[int]:
        """Return the places of some hosts, by their indexes in the table; unknown indexes are left out."""
        place_of = self.layout.place_of
        return [place_of.item(index) for index in indexes if 0 <= index < len(place_of)]

    def numbers(self, place: int) -> list[float]:
        """Return the number of each weigher for a host."""
        return self.entry(place).numbers

    def bounds(self) -> tuple[Float64, Float64]:
        """Return the greatest and the least number of each weigher in each block: float64[weighers, blocks]
        each.

        Homeless places are left out, because no request may use them: the spare places at the end of each
        cell have 0 of everything, and each class would begin by finding out that none of them has the least
        number.
        """
        if self._bounds is None:
            of_all = [self._bounds_of(raw, slice(None)) for raw in self.raws]
            self._bounds = np.array([most for most, _ in of_all]), np.array([least for _, least in of_all])
        elif self._loose:
            blocks = [*self._loose]
            for number, raw in enumerate(self.raws):
                self._bounds[0][number, blocks], self._bounds[1][number, blocks] = self._bounds_of(
                    raw, blocks
                )
        self._loose.clear()
        return self._bounds

    def _bounds_of(self, raw: Float64, blocks: slice | list[int]) -> tuple[Float64, Float64]:
        """Return the greatest and the least number in some blocks; -inf and inf for a block without hosts."""
        shape = (-1, self.layout.size)
        homeless = self.row_at.reshape(shape)[blocks] < 0
        some = raw.reshape(shape)[blocks]
        greatest: Float64 = np.where(homeless, -math.inf, some).max(axis=1)
        least: Float64 = np.where(homeless, math.inf, some).min(axis=1)
        return greatest, least

    def _new_entry(self, place: int, rooms: Rooms) -> HostEntry:
        if len(self._entries) >= _MOST_ENTRIES:
            self._entries.clear()
        entry = self._entries[place] = HostEntry(self.row_at.item(place), rooms)
        return entry

    def _place(self, row: int) -> int:
        """Return the place of the host in whose tree a row is."""
        return self.place_at_row.item(self.fleet.root.item(row))

    def _find_rows(self, touched: Iterable[int]) -> None:
        """Find the rows of hosts again after providers came or went. ``touched``: the changed rows."""
        fleet, table = self.fleet, self.table
        self.place_at_row = grown(self.place_at_row, fleet.n_rows, -1)
        rehomed: dict[int, int] = {}
        for row in touched:
            index = table.index_of_node(fleet.uuid(row)) if fleet.alive.item(row) else None
            place = -1 if index is None else self.layout.place_of.item(index)
            before = self.place_at_row.item(row)
            if place == before:
                continue
            self.place_at_row[row] = place
            if before >= 0:
                rehomed.setdefault(before, -1)
            if place >= 0:
                rehomed[place] = row
        if rehomed:
            self._rehomed.update(rehomed)
            self.row_at[[*rehomed]] = [*rehomed.values()]
            self.homeless = np.flatnonzero(self.row_at < 0)

    def _look_again(self, touched: set[int], reported: set[int], request: SchedulingRequest) -> bool:
        """Sum up trees that changed, ask plugins about hosts that reported, and weigh both again.

        Returns False if a weigher returns numbers now and did not before, or the other way round.
        """
        places = touched | reported if reported else touched
        if len(places) > ONE_BY_ONE:
            self.totals.refresh([*touched])
            for place in places:
                self._entries.pop(place, None)
        else:
            for place in places:
                self._new_entry(place, self.totals.refresh_one(place) if place in touched else {})
        if self._of_trees_filters and places:
            self._ask_filters(self._of_trees_filters, [*places], request)
        if reported and any(each.free_class(self.table) != before for each, before in self._free_of):
            return False
        if reported and not self._ask_about(reported, request):
            return False
        if self._of_trees and places and not self._weigh([*places], self._of_trees, request):
            return False
        for place in places:
            self.invalidations.append(place)
            self._loose.add(place >> self.layout.shift)
        return True

    def _ask_about(self, reported: Collection[int], request: SchedulingRequest) -> bool:
        """Ask the plugins that look at reports about some hosts again."""
        self._ask_filters(self._filters, [*reported], request)
        places = np.array([*reported], dtype=np.intp)
        view = HostView(self.table, self.totals, places)
        for weigher, column in zip(self._numbered, self.multipliers, strict=True):
            if not isinstance(column, float):
                column[places] = multiplier_of(view, weigher, request)
        return self._weigh([*reported], self._of_reports, request)

    def _ask_filters(
        self, filters: Sequence[Filter], chosen: Sequence[int], request: SchedulingRequest
    ) -> None:
        places = np.array(chosen, dtype=np.intp)
        view = HostView(self.table, self.totals, places)
        for plugin in filters:
            mask = ask_filter(plugin, view, request, GroupPlacement())
            self.masks[plugin.name] = put_mask(self.masks[plugin.name], places, mask, len(self.layout))

    def _weigh(
        self,
        places: Sequence[int],
        weighers: Sequence[tuple[Weigher, int | None]],
        request: SchedulingRequest,
    ) -> bool:
        """Ask weighers again; False if one returns numbers now and did not before, or the other way round."""
        chosen = np.array(places, dtype=np.intp)
        view = HostView(self.table, self.totals, chosen)
        for weigher, number in weighers:
            raw = ask_weigher(weigher, view, request, GroupPlacement())
            if (raw is None) != (number is None):
                return False
            if raw is not None and number is not None:
                self.raws[number][chosen] = clean_numbers(raw.astype(np.float64), self.minvals[number])
        return True


def put_mask(
    column: Bools | None, places: Rows | Sequence[int], mask: Bools | None, size: int
) -> Bools | None:
    """Return a filter's mask with its new result for some places; None stands for all true."""
    if column is None and mask is not None and not mask.all():
        column = np.ones(size, dtype=np.bool_)
    if column is not None:
        column[places] = True if mask is None else mask
    return column
