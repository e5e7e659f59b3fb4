"""What a run of the selection asks for and what comes of it."""

from dataclasses import dataclass

from roost.model.allocation import Candidate
from roost.model.record import Step
from roost.model.spec import Destination, Selection
from roost.scheduler.hosts import HostTable


@dataclass(frozen=True, slots=True)
class Claim:
    """Make this claim: answer with None if it was made, else with the reason why it was refused."""

    instance: str
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Try:
    """One claim that was tried."""

    instance: str
    host: str
    cell: str
    weight: float
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A claim that was made: on which of the offered hosts, and what the host weighed then."""

    instance: str
    position: int
    candidate: Candidate
    weight: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: where those go that were placed, and why others were not (None: all were).

    ``destinations`` is empty if fewer than ``min_count`` could be placed; their claims are to be undone.
    ``steps`` are those of the first instance.
    """

    destinations: tuple[Destination, ...]
    tries: tuple[Try, ...]
    steps: tuple[Step, ...]
    refusal: str | None


def selection_of(table: HostTable, index: int, candidate: Candidate, weight: float) -> Selection:
    """A host and one of its candidates as the scheduler answers them."""
    return Selection(
        host=table.names[index],
        node=table.nodes[index],
        cell=table.cells[table.cell.item(index)],
        allocations=candidate.allocations,
        mappings=candidate.mappings,
        weight=weight,
    )
