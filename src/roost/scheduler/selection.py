"""The one algorithm of the scheduler: filter, weigh, pick, claim, next on refusal, alternates.

It does no I/O: `select` is a generator that yields the claims it wants made and is sent back what became
of them. One gateway makes them inside the ledger's transaction, another over HTTP; what is chosen is the
same by construction.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64
from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.model.spec import Destination, Selection
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import HostView, Offers
from roost.scheduler.outcome import Claim, Outcome, Try
from roost.scheduler.plugins import Filter, Weigher
from roost.scheduler.question import Progress, Question
from roost.scheduler.weighing import weigh

Positions = npt.NDArray[np.intp]

Random = Callable[[int], int]
"""``random(n)`` gives a number from 0 to n - 1."""


@dataclass(slots=True)
class Plugins:
    """The filters and weighers of a scheduler."""

    filters: Sequence[Filter]
    weighers: Sequence[Weigher]


Selecting = Generator[Claim, str | None, Outcome]


def select(
    question: Question,
    table: HostTable,
    offers: Offers,
    plugins: Plugins,
    random: Random,
    steps: Sequence[Step] = (),
) -> Selecting:
    """Choose and claim a host for each instance, then find alternates.

    ``steps``: what placement said of how the hosts were narrowed down. The claims of a run that is
    refused are the caller's to take back.
    """
    run = _Run(question, table, offers, plugins, random, list(steps))
    return (yield from run.run())


@dataclass(slots=True)
class _Run:
    question: Question
    table: HostTable
    offers: Offers
    plugins: Plugins
    random: Random
    steps: list[Step]
    progress: Progress = field(default_factory=Progress)
    tries: list[Try] = field(default_factory=list)

    def run(self) -> Selecting:
        self._count_members()
        playing = self._filter(
            np.ones(len(self.offers.index), dtype=np.bool_),
            [plugin for plugin in self.plugins.filters if not plugin.depends_on_claims],
            self.steps,
        )
        playing = self._allowed(playing)
        placed: list[tuple[str, int, Candidate, float]] = []
        refusal = None
        for instance in self.question.instances:
            chosen = yield from self._place(instance, playing)
            if chosen is None:
                refusal = self._reason(len(placed))
                break
            placed.append((instance, *chosen))
        if len(placed) < self.question.min_count:
            return Outcome((), tuple(self.tries), tuple(self.steps), refusal)
        alternates = self._alternates(playing, [position for _, position, _, _ in placed])
        destinations = tuple(
            Destination(self.question.run, instance, self._selection(position, candidate, weight), others)
            for (instance, position, candidate, weight), others in zip(placed, alternates, strict=True)
        )
        return Outcome(destinations, tuple(self.tries), tuple(self.steps), refusal)

    def _place(
        self, instance: str, playing: Bools
    ) -> Generator[Claim, str | None, tuple[int, Candidate, float] | None]:
        """Claim a host for one instance. ``playing`` loses the hosts that turn out to be full."""
        steps = [] if self.tries else self.steps
        allowed = self._filter(
            playing, [plugin for plugin in self.plugins.filters if plugin.depends_on_claims], steps
        )
        weights = self._weigh(allowed)
        while allowed.any():
            position = self._pick(allowed, weights)
            candidate = None
            for candidate in self.offers.candidates(position):
                refusal = yield Claim(instance, candidate)
                self._note(instance, position, float(weights[position]), refusal)
                if refusal is None:
                    self.offers.claimed(position, candidate)
                    self.progress.members[int(self.offers.index[position])] += 1
                    return position, candidate, float(weights[position])
            if candidate is None:
                playing[position] = False
            allowed[position] = False
        return None

    def _weigh(self, allowed: Bools) -> Float64:
        """The weight of every offered host; those that are not allowed weigh -inf."""
        weights = np.full(len(allowed), -np.inf)
        if allowed.any():
            view = HostView(self.table, self.offers, None if allowed.all() else allowed)
            weights[allowed] = weigh(view, self.plugins.weighers, self.question)
        return weights

    def _pick(self, allowed: Bools, weights: Float64) -> int:
        """One of the best ``host_subset_size`` hosts still allowed."""
        among = self.question.options.host_subset_size
        if among == 1:
            return int(np.argmax(np.where(allowed, weights, -np.inf)))
        best = _best_first(np.flatnonzero(allowed), weights)[:among]
        return int(best[self.random(len(best))])

    def _filter(self, playing: Bools, filters: Sequence[Filter], steps: list[Step]) -> Bools:
        playing = playing.copy()
        for plugin in filters:
            view = HostView(self.table, self.offers, None if playing.all() else playing)
            playing[playing] = plugin.mask(view, self.question, self.progress)
            steps.append(Step(plugin.name, int(playing.sum())))
        return playing

    def _allowed(self, playing: Bools) -> Bools:
        """Without the hosts that the request says to leave alone."""
        ignored = [self.table.index(host) for host in self.question.spec.ignore_hosts]
        if ignored:
            unwanted = np.array([index for index in ignored if index is not None], dtype=np.int32)
            playing = playing & ~np.isin(self.offers.index, unwanted)
            self.steps.append(Step("ignore_hosts", int(playing.sum())))
        return playing

    def _alternates(self, playing: Bools, positions: Sequence[int]) -> list[tuple[Selection, ...]]:
        """For each placed instance other hosts of its cell that could take it, best first.

        Hosts that this run claimed come after the others; instances of one request start at different
        places of the list, so that a failure of many does not send all of them to the same host.
        """
        wanted = self.question.num_alternates
        if not wanted:
            return [()] * len(positions)
        allowed = self._filter(
            playing, [plugin for plugin in self.plugins.filters if plugin.depends_on_claims], []
        )
        weights = self._weigh(allowed)
        ranked = _best_first(np.flatnonzero(allowed), weights)
        fresh = np.isin(ranked, positions, invert=True)
        ranked = np.concatenate([ranked[fresh], ranked[~fresh]])
        cells = self.table.cell[self.offers.index[ranked]]
        pools = {
            cell: _Pool(ranked[cells == cell].tolist(), int(np.isin(ranked[cells == cell], positions).sum()))
            for cell in {int(self.table.cell[self.offers.index[position]]) for position in positions}
        }
        found: dict[int, Selection | None] = {}
        result = []
        for position in positions:
            pool = pools[int(self.table.cell[self.offers.index[position]])]
            others: list[Selection] = []
            for other in pool.turn(wanted):
                if len(others) == wanted:
                    break
                if other == position:
                    continue
                if other not in found:
                    candidate = next(self.offers.candidates(other), None)
                    found[other] = (
                        None
                        if candidate is None
                        else self._selection(other, candidate, float(weights[other]))
                    )
                selection = found[other]
                if selection is not None:
                    others.append(selection)
            result.append(tuple(others))
        return result

    def _selection(self, position: int, candidate: Candidate, weight: float) -> Selection:
        index = int(self.offers.index[position])
        return Selection(
            host=self.table.names[index],
            node=self.table.nodes[index],
            cell=self.table.cells[int(self.table.cell[index])],
            allocations=candidate.allocations,
            mappings=candidate.mappings,
            weight=weight,
        )

    def _count_members(self) -> None:
        group = self.question.spec.group
        for host in group.hosts if group is not None else ():
            index = self.table.index(host)
            if index is not None:
                self.progress.members[index] += 1

    def _note(self, instance: str, position: int, weight: float, refusal: str | None) -> None:
        index = int(self.offers.index[position])
        cell = self.table.cells[int(self.table.cell[index])]
        self.tries.append(Try(instance, self.table.names[index], cell, weight, refusal))

    def _reason(self, placed: int) -> str:
        """Why not (all) instances were placed, in one line."""
        wanted = len(self.question.instances)
        empty = next((step for step in self.steps if step.left == 0), None)
        if empty is not None and not placed:
            return f"no host left after {empty.name}"
        if placed:
            return f"only {placed} of {wanted} instances fit"
        refused = next((tried for tried in reversed(self.tries) if tried.refusal is not None), None)
        if refused is None:
            return "every host left is full"
        return f"every claim was refused, the last one on {refused.host}: {refused.refusal}"


class _Pool:
    """The hosts of one cell that may be alternates, best first, handed out in turns."""

    def __init__(self, positions: list[int], claimed: int) -> None:
        self._fresh = positions[: len(positions) - claimed]
        self._claimed = positions[len(positions) - claimed :]
        self._start = 0

    def turn(self, wanted: int) -> list[int]:
        """All positions, beginning after those that the turn before began with."""
        start = self._start % len(self._fresh) if self._fresh else 0
        self._start += wanted
        return self._fresh[start:] + self._fresh[:start] + self._claimed


def _best_first(positions: Positions, weights: Float64) -> Positions:
    """Positions by weight, the greatest first; equal ones in their order."""
    order: Positions = positions[np.argsort(-weights[positions], kind="stable")]
    return order
