"""Host pool: the hosts that one run of the selection may choose from, with their weights.

Two implementations give the same answers: `roost.scheduler.pool.fresh_pool.FreshPool` judges all hosts anew
for each run, `roost.scheduler.cache.equivalence_cache.CachedPool` begins from cached results for the same
kind of request.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from roost.model.allocation import Candidate
from roost.model.reasons import WeigherNumber
from roost.model.record import Step

KNOWN = "hosts known"
OFFERED = "hosts with candidates"


Numbers = Callable[[], tuple[WeigherNumber, ...]]
"""Returns the numbers that make up a weight, in the order of the weighers.

Weighers with equal numbers for all hosts are left out. The result is the same at every call: most runs call
it long after the claim, which must not wait for it.
"""


class HostPool(Protocol):
    """The hosts of one run. A host is a number here, whose meaning is the pool's own; see `index`."""

    def ready(self) -> list[Step]:
        """Filter and weigh for the next instance; returns the steps.

        The steps for the first instance are all steps, from the known hosts on.
        """

    def best(self, among: int) -> Sequence[int]:
        """Return the best ``among`` hosts that are left, best first; ties go by `NodeTable.tie_rank`."""

    def index(self, host: int) -> int:
        """Return a host's index in the node table."""

    def weight(self, host: int) -> float:
        """Return the weight of a host when it was weighed last."""

    def numbers(self, host: int) -> Numbers:
        """Return the numbers behind the weight of a host when it was weighed last."""

    def candidates(self, host: int) -> Iterator[Candidate]:
        """Yield a host's allocation candidates that still fit, in placement's order."""

    def drop(self, host: int) -> None:
        """Remove a host that turned out to be full, or that refuses."""

    def claimed(self, host: int, candidate: Candidate) -> None:
        """Note that a candidate of a host was claimed. Weights stay as they are until the next `ready`."""

    def ranking(self, cell: int, claimed: Collection[int], expected: int) -> Iterator[int]:
        """Yield the hosts of a cell that were weighed last, without those claimed, best first.

        About ``expected`` of them are needed. It is called once for each cell of a run.
        """

    def weighed(self, host: int) -> bool:
        """Return whether a host was among those weighed last."""

    def open_to(self, leaving: int, promised: Counter[int]) -> Callable[[int], bool]:
        """Return a test of whether a host could take an instance that leaves the host ``leaving``.

        It assumes that other instances of the run leave theirs for those ``promised`` (index of the host ->
        number).
        """
