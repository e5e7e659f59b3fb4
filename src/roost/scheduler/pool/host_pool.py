"""The field: the hosts that one run of the selection may choose from, and what they weigh.

Two of them, with the same answers: `offered_field.OfferedField` looks at all hosts anew for each run,
`kept.field.KeptField` goes on from what earlier runs for the same kind of request have found out.
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
"""Tells what makes up a weight, in the order of the weighers, without those that tell no difference between
the hosts. It tells the same whenever it is called: most runs are told long after the claim, which must not
wait for it."""


class HostPool(Protocol):
    """The hosts of one run. A host is a number here whose meaning is the field's own; see `index`."""

    def ready(self) -> list[Step]:
        """Filter and weigh for the next instance; returns the steps of doing so.

        The steps of the first instance are all of them, from the hosts known on.
        """

    def best(self, among: int) -> Sequence[int]:
        """The best ``among`` hosts in play, best first; of equal ones by `NodeTable.tie_rank`."""

    def index(self, host: int) -> int:
        """A host's index in the node table."""

    def weight(self, host: int) -> float:
        """What a host weighed when it was weighed last."""

    def numbers(self, host: int) -> Numbers:
        """What makes up the weight that a host had when it was weighed last."""

    def candidates(self, host: int) -> Iterator[Candidate]:
        """A host's allocation candidates that still fit, in placement's order."""

    def drop(self, host: int) -> None:
        """A host turned out to be full, or refuses: it is out of play."""

    def claimed(self, host: int, candidate: Candidate) -> None:
        """A candidate of a host was claimed. Weights stay as they are until the field is made ready."""

    def ranking(self, cell: int, claimed: Collection[int], expected: int) -> Iterator[int]:
        """The hosts of a cell that were weighed last, but for those claimed, best first.

        About ``expected`` of them will be wanted. Once for each cell of a run.
        """

    def weighed(self, host: int) -> bool:
        """Whether a host was among those weighed last."""

    def open_to(self, leaving: int, promised: Counter[int]) -> Callable[[int], bool]:
        """Which hosts could take an instance that leaves the host ``leaving``, if others of the run left
        theirs for those ``promised`` (index of the host -> number)."""
