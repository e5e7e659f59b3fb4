"""The claims that the selection yields, and the outcome of a run."""

from typing import NamedTuple

import msgspec

from roost.model.allocation import Candidate
from roost.model.record import PlacementRead, Step
from roost.model.spec import Destination, Selection
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.host_pool import Numbers

CLAIMS = "claims"
"""The cause of a refusal: placement refused every claim."""
FULL = "full"
"""The cause of a refusal: the run itself took what hosts had left."""


BOUND = "bound"
"""The cause of a refusal: the run met one of its bounds."""

WORK = "work"
"""The cause of a refusal: the search for hosts exceeds the units of work of a decision."""

ZONE = "availability_zone"
"""The key of aggregate metadata that names a host's availability zone."""

MOST_WEIGHED = 4
"""Hosts of a run for which the record has the numbers behind their weights."""


class Basis(NamedTuple):
    """The versions that a run was decided on, as in `roost.model.record.Run`."""

    version: int | None = None
    position: int | None = None
    node_version: int | None = None
    told: tuple[PlacementRead, ...] = ()


class Claim(msgspec.Struct, frozen=True):
    """A claim that the selection wants made.

    The answer is a `roost.scheduler.selection.claim_result.ClaimResult`.
    """

    instance: str
    candidate: Candidate


class ClaimAttempt(msgspec.Struct, frozen=True):
    """One claim attempt, on the node with this root provider.

    ``version``: of the ledger when the claim was judged, where each claim has one.
    """

    instance: str
    host: str
    node: str
    cell: str
    weight: float
    refusal: str | None
    version: int | None = None


class Placed(msgspec.Struct, frozen=True):
    """A claim that was made: the host in the pool, and its weight at that time."""

    instance: str
    host: int
    candidate: Candidate
    weight: float


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a run: the destinations, and why further instances were not placed (None: all were).

    ``destinations`` is empty if fewer than ``min_count`` could be placed; their claims are to be undone.
    ``tries``: all claim attempts. ``steps``: of the first instance. ``cause``: why an instance was not
    placed, as the name of the step that left no host, `CLAIMS`, `FULL`, `BOUND` or `WORK`; None: all were
    placed. ``weighed``: the numbers behind the weights of the first destination, the selected host first,
    then its alternates, `MOST_WEIGHED` in all.
    """

    destinations: tuple[Destination, ...]
    tries: tuple[ClaimAttempt, ...]
    steps: tuple[Step, ...]
    refusal: str | None
    cause: str | None = None
    weighed: tuple[Numbers, ...] = ()


def selection_of(
    table: NodeTable, index: int, candidate: Candidate, weight: float, default_zone: str
) -> Selection:
    """Return a host with one of its candidates as the scheduler's answer has it.

    ``default_zone``: the availability zone of hosts whose aggregates have none.
    """
    return Selection(
        host=table.hosts[index],
        node=table.nodes[index],
        cell=table.cells[table.cell.item(index)],
        allocations=candidate.allocations,
        mappings=candidate.mappings,
        weight=weight,
        zone=zone_of(table, index, default_zone),
        limits=candidate.limits,
        assignment=candidate.assignment,
    )


def zone_of(table: NodeTable, index: int, default: str) -> str:
    """Return the availability zone of a host: the first that its aggregates name, else ``default``."""
    labels = table.metadata(ZONE)
    zones = () if labels is None else labels.of(index)
    return zones[0] if zones else default
