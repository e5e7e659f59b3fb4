"""The one algorithm of the scheduler: filter, weigh, pick, claim, next on refusal, alternates.

It does no I/O: `select` is a generator that yields the claims it wants made and is sent back what became
of them. One gateway makes them inside the ledger's transaction, another over HTTP; what is chosen is the
same by construction.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from roost.fleet.columns import Bools
from roost.model.record import Step
from roost.model.spec import Destination, Selection
from roost.scheduler.alternates import Alternates
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import HostView, Offers
from roost.scheduler.outcome import Claim, Outcome, Placed, Try, selection_of
from roost.scheduler.plugins import Filter, Weigher
from roost.scheduler.question import Progress, Question
from roost.scheduler.weighing import Weighing

Random = Callable[[int], int]
"""``random(n)`` gives a number from 0 to n - 1."""

KNOWN = "hosts known"
OFFERED = "hosts with candidates"
_EMPTY = {
    KNOWN: "no host is known",
    OFFERED: "placement has no candidates on the hosts that are known",
}


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
) -> Selecting:
    """Choose and claim a host for each instance, then find alternates.

    The claims of a run that is refused are the caller's to take back.
    """
    steps = [Step(KNOWN, len(table)), Step(OFFERED, len(offers.index))]
    run = _Run(question, table, offers, plugins, random, steps)
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
        once = [plugin for plugin in self.plugins.filters if not plugin.depends_on_claims]
        playing = self._filter(self._not_ignored(), once, self.progress, self.steps)
        placed: list[Placed] = []
        refusal = None
        weighing: Weighing | None = None
        changed: Sequence[int] = ()
        for instance in self.question.instances:
            # The record tells how the first instance fared; what is gone for later ones, this run took.
            steps = [] if placed else self.steps
            allowed = self._filter_again(playing, self.progress, steps)
            if weighing is None or (allowed & ~weighing.allowed).any():
                weighing = Weighing(self.table, self.offers, allowed, self.plugins.weighers, self.question)
            else:
                weighing = weighing.narrowed(allowed)
                weighing.claimed(changed)
            one = yield from self._place(instance, playing, weighing)
            if one is None:
                refusal = self._reason(instance, len(placed), steps)
                break
            placed.append(one)
            chosen_by = weighing
            changed = self.offers.claimed(one.candidate)
            if self.question.spec.group is not None:
                self.progress.members[self.offers.index.item(one.position)] += 1
        if not placed or len(placed) < self.question.min_count:
            return Outcome((), tuple(self.tries), tuple(self.steps), refusal)
        alternates = Alternates(
            self.question,
            self.table,
            self.offers,
            chosen_by,
            self.progress,
            lambda progress: self._filter_again(playing, progress, []),
        )
        destinations = tuple(
            Destination(self.question.run, one.instance, self._selected(one), others)
            for one, others in zip(placed, alternates.of(placed), strict=True)
        )
        return Outcome(destinations, tuple(self.tries), tuple(self.steps), refusal)

    def _place(
        self, instance: str, playing: Bools, weighing: Weighing
    ) -> Generator[Claim, str | None, Placed | None]:
        """Claim a host for one instance.

        ``playing`` loses the hosts that turn out to be full or refuse: the instances are equal, so that
        what one cannot have the next cannot have either.
        """
        within = None
        while (position := self._pick(weighing, within)) is not None:
            weight = weighing.weight(position)
            for candidate in self.offers.candidates(position):
                refusal = yield Claim(instance, candidate)
                self._note(instance, position, weight, refusal)
                if refusal is None:
                    return Placed(instance, position, candidate, weight)
            playing[position] = False
            within = playing
        return None

    def _pick(self, weighing: Weighing, within: Bools | None) -> int | None:
        """One of the best ``host_subset_size`` hosts, None if there is none."""
        best = weighing.best(self.question.options.host_subset_size, within)
        if len(best) > 1:
            return best.item(self.random(len(best)))
        return best.item(0) if len(best) else None

    def _filter_again(self, playing: Bools, progress: Progress, steps: list[Step]) -> Bools:
        again = [plugin for plugin in self.plugins.filters if plugin.depends_on_claims]
        return self._filter(playing.copy(), again, progress, steps)

    def _filter(
        self, playing: Bools, filters: Sequence[Filter], progress: Progress, steps: list[Step]
    ) -> Bools:
        """``playing`` without the hosts that the filters leave out; the filters are not asked when nothing
        is left."""
        left = int(np.count_nonzero(playing))
        for plugin in filters:
            if not left:
                break
            hosts = HostView(self.table, self.offers, None if left == len(playing) else playing)
            mask = plugin.mask(hosts, self.question, progress)
            if mask is not None and not mask.all():
                playing[playing] = mask
                left = int(np.count_nonzero(playing))
            steps.append(Step(plugin.name, left))
        return playing

    def _not_ignored(self) -> Bools:
        """The hosts but for those that the request says to leave alone."""
        ignored = [self.table.index(host) for host in self.question.spec.ignore_hosts]
        if not ignored:
            return np.ones(len(self.offers.index), dtype=np.bool_)
        playing = ~np.isin(self.offers.index, [index for index in ignored if index is not None])
        self.steps.append(Step("ignore_hosts", int(np.count_nonzero(playing))))
        return playing

    def _selected(self, one: Placed) -> Selection:
        return selection_of(self.table, self.offers.index.item(one.position), one.candidate, one.weight)

    def _count_members(self) -> None:
        group = self.question.spec.group
        for host in group.hosts if group is not None else ():
            index = self.table.index(host)
            if index is not None:
                self.progress.members[index] += 1

    def _note(self, instance: str, position: int, weight: float, refusal: str | None) -> None:
        index = self.offers.index.item(position)
        cell = self.table.cells[self.table.cell.item(index)]
        self.tries.append(Try(instance, self.table.names[index], cell, weight, refusal))

    def _reason(self, instance: str, placed: int, steps: Sequence[Step]) -> str:
        """Why ``instance`` was not placed, in one line; ``steps`` are its own."""
        empty = next((step.name for step in steps if step.left == 0), None)
        refused = [tried for tried in self.tries if tried.instance == instance]
        if empty is not None:
            reason = _EMPTY.get(empty, f"no host left after {empty}")
        elif refused:
            last = refused[-1]
            reason = f"every claim was refused, the last one on {last.host}: {last.refusal}"
        else:
            reason = "every host left is full"
        if not placed:
            return reason
        return f"only {placed} of {len(self.question.instances)} instances fit: {reason}"
