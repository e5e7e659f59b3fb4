"""The algorithm of the scheduler: filter, weigh, pick, claim, go on after a refusal, find alternates.

It does no I/O: `choose` is a generator that yields the claims it wants made and receives their results. One
gateway makes them inside the ledger's transaction, another over HTTP; both choose the same hosts by
construction.
"""

from collections.abc import Callable, Generator, Sequence
from random import Random as Generating

from roost.model.record import Step
from roost.model.spec import Destination, Selection
from roost.scheduler.nodes.outstanding import taken_by
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.host_pool import KNOWN as KNOWN
from roost.scheduler.pool.host_pool import OFFERED as OFFERED
from roost.scheduler.pool.host_pool import HostPool, Numbers
from roost.scheduler.request.demand.wanted_hardware import WORDS
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.alternates import Alternates
from roost.scheduler.selection.bounds import Bounds
from roost.scheduler.selection.claim_result import ClaimResult, ClaimVerdict
from roost.scheduler.selection.outcome import (
    BOUND,
    CLAIMS,
    FULL,
    MOST_WEIGHED,
    Claim,
    ClaimAttempt,
    Outcome,
    Placed,
    selection_of,
)

Random = Callable[[int], int]
"""``random(n)`` returns a number from 0 to n - 1."""


class RandomDraw:
    """The random numbers of one run, made from its seed: the same seed gives the same choices.

    Only `random.Random.random` is promised to give the same sequence in every version of Python.
    """

    __slots__ = ("_generator", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator: Generating | None = None

    def __call__(self, n: int) -> int:
        if self._generator is None:
            # Most runs draw nothing, and making a generator takes 6 µs.
            self._generator = Generating(self._seed)
        return int(self._generator.random() * n)


CHANGES = 10
"""Times that a host's candidates are read again because others were assigned parts of it meanwhile."""

_EMPTY = {
    KNOWN: "no host is known",
    OFFERED: "placement has no candidates on the hosts that are known",
}


Selecting = Generator[Claim, ClaimResult, Outcome]


def choose(request: SchedulingRequest, table: NodeTable, pool: HostPool, random: Random) -> Selecting:
    """Choose and claim a host for each instance, then find alternates.

    The caller undoes the claims of a refused run.
    """
    run = _Run(request, table, pool, random)
    return (yield from run.run())


class _Run:
    def __init__(self, request: SchedulingRequest, table: NodeTable, pool: HostPool, random: Random) -> None:
        self._request = request
        self._table = table
        self._pool = pool
        self._random = random
        self._tries: list[ClaimAttempt] = []
        self._bounds = Bounds(request)
        self._bound: str | None = None
        self._cut = 0

    def run(self) -> Selecting:
        first: list[Step] = []
        placed: list[Placed] = []
        weighed: list[Numbers] = []
        refusal = cause = None
        for instance in self._request.instances:
            # The record has the steps of the first instance: hosts missing for later ones, this run took.
            steps = self._pool.ready()
            first = first or steps
            one = yield from self._place(instance)
            if one is None:
                cause = self._cause(instance, steps)
                refusal = self._reason(instance, len(placed), cause)
                break
            placed.append(one)
            if not weighed:
                # The next `ready` replaces the weights of the first instance.
                weighed.append(self._pool.numbers(one.host))
            self._count(one)
            self._pool.claimed(one.host, one.candidate)
        if not placed or len(placed) < self._request.min_count:
            self._table.release(*(one.instance for one in placed))
            return Outcome((), tuple(self._tries), tuple(first), refusal, cause)
        finding = Alternates(self._request, self._table, self._pool)
        alternates = finding.of(placed)
        weighed += map(self._pool.numbers, finding.first[: MOST_WEIGHED - 1])
        destinations = tuple(
            Destination(self._request.run, one.instance, self._selected(one), others)
            for one, others in zip(placed, alternates, strict=True)
        )
        return Outcome(destinations, tuple(self._tries), tuple(first), refusal, cause, tuple(weighed))

    def _place(self, instance: str) -> Generator[Claim, ClaimResult, Placed | None]:
        """Claim a host for one instance: try every candidate of a host, then the next host."""
        pool, bounds = self._pool, self._bounds
        refused = 0
        host: int | None = None
        changed = 0
        while (host := host if changed else self._pick()) is not None:
            weight = pool.weight(host)
            again, changed = changed, 0
            for number, candidate in enumerate(pool.candidates(host)):
                if (bound := bounds.met(refused)) is not None:
                    self._bound = bound
                    return None
                if number == bounds.candidates > 0:
                    self._cut += 1
                    break
                result = yield Claim(instance, candidate)
                self._note(instance, host, weight, result.reason)
                if result.verdict is ClaimVerdict.CLAIMED:
                    return Placed(instance, host, candidate, weight)
                refused += 1
                if result.verdict is ClaimVerdict.CHANGED and again < CHANGES:
                    changed = again + 1
                    break
            else:
                if (bound := bounds.met(refused)) is not None:
                    self._bound = bound
                    return None
            if not changed:
                pool.drop(host)
        return None

    def _count(self, one: Placed) -> None:
        """Count an instance on its node, where no report has it yet.

        Source: ``consume_from_request`` in Nova's ``scheduler/host_manager.py``.
        """
        taken = taken_by(self._request.spec)
        self._table.claim(one.instance, self._pool.index(one.host), *taken, one.candidate.assignment)

    def _pick(self) -> int | None:
        """Return one of the best ``host_subset_size`` hosts, None if there is none."""
        best = self._best(self._request.options.host_subset_size)
        if len(best) > 1:
            return best[self._random(len(best))]
        return best[0] if best else None

    def _best(self, among: int) -> Sequence[int]:
        """Return the best ``among`` hosts.

        With `shuffle_best_same_weighed_hosts` all that weigh as much as the best one, if these are more.
        """
        best = self._pool.best(among)
        if not self._request.options.shuffle_best_same_weighed_hosts:
            return best
        asked = among
        while best and len(best) == asked and self._weight(best[-1]) == self._weight(best[0]):
            asked *= 8
            best = self._pool.best(asked)
        equal = sum(self._weight(host) == self._weight(best[0]) for host in best)
        return best[: max(among, equal)]

    def _weight(self, host: int) -> float:
        return self._pool.weight(host)

    def _selected(self, one: Placed) -> Selection:
        zone = self._request.options.default_availability_zone
        return selection_of(self._table, self._pool.index(one.host), one.candidate, one.weight, zone)

    def _note(self, instance: str, host: int, weight: float, refusal: str | None) -> None:
        index = self._pool.index(host)
        cell = self._table.cells[self._table.cell.item(index)]
        table = self._table
        self._tries.append(
            ClaimAttempt(instance, table.hosts[index], table.nodes[index], cell, weight, refusal)
        )

    def _cause(self, instance: str, steps: Sequence[Step]) -> str:
        """Return why ``instance`` was not placed, see `Outcome`. ``steps`` are its own."""
        if self._bound is not None:
            return BOUND
        empty = next((step.name for step in steps if step.left == 0), None)
        if empty is not None:
            return empty
        return CLAIMS if any(tried.instance == instance for tried in self._tries) else FULL

    def _reason(self, instance: str, placed: int, cause: str) -> str:
        """Return why ``instance`` was not placed, in one line."""
        tried = [each for each in self._tries if each.instance == instance]
        last = f", the last one on {tried[-1].host}: {tried[-1].refusal}" if tried else ""
        if cause == CLAIMS:
            reason = f"every claim was refused{last}"
            if self._cut:
                limit = self._bounds.candidates
                reason += f" (max_candidates_per_host={limit} left candidates of {self._cut} hosts untried)"
        elif cause == BOUND:
            hosts = len({each.host for each in tried})
            reason = f"{self._bound} is met: {len(tried)} claims on {hosts} hosts were refused{last}"
        elif cause == FULL:
            reason = "every host left is full"
        else:
            reason = _EMPTY.get(cause, f"no host left after {cause}")
            if cause in WORDS:
                # An explanation may come too late, or not at all; the amounts need none.
                reason += f": hosts that pass it {WORDS[cause](self._request)}"
        if not placed:
            return reason
        return f"only {placed} of {len(self._request.instances)} instances fit: {reason}"
