"""Proposals: changes of a request that may work, each tried by really deciding it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roost.model.reasons import Relaxation, RelaxationKind
from roost.scheduler.explain.every_host import name_of
from roost.scheduler.explain.scratch import Scratch
from roost.scheduler.explain.survey import TimeLimit
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.request.scheduling_request import SchedulingRequest


@dataclass(slots=True)
class Proposal:
    """A changed request that may work, and the hosts to try it on, nearest first.

    ``filters``: in place of all filters; None for the enabled ones. A host None stands for all hosts.
    """

    kind: RelaxationKind
    name: str
    text: str
    distance: float
    request: SchedulingRequest
    hosts: Sequence[int | None]
    filters: Sequence[Filter] | None = None
    group: str | None = None
    before: int | None = None
    after: int | None = None
    parts: tuple[Relaxation, ...] = ()

    def relaxation(self, host: str) -> Relaxation:
        """Return the relaxation of a proposal that works."""
        return Relaxation(
            kind=self.kind,
            name=self.name,
            text=self.text,
            distance=round(self.distance, 4),
            host=host,
            group=self.group,
            before=self.before,
            after=self.after,
            parts=self.parts,
        )


def working(
    scratch: Scratch, proposed: Iterable[Proposal], most: int, time_limit: TimeLimit
) -> Iterator[Relaxation]:
    """Yield the changes that do work, smallest first, at most ``most``, until the time limit.

    For each amount the first that works is the smallest change; larger ones are left out.
    """
    done: set[tuple[str, str, str | None]] = set()
    for each in proposed:
        key = (each.kind, each.name, each.group)
        if len(done) == most or time_limit.over():
            return
        if key in done:
            continue
        host = _host_of(scratch, each)
        if host is not None:
            done.add(key)
            yield each.relaxation(host)


def _host_of(scratch: Scratch, proposal: Proposal) -> str | None:
    """Return the host of the last instance if a proposal works, else None."""
    for host in scratch.to_try(proposal.request, proposal.hosts):
        node = scratch.works(proposal.request, proposal.filters, host)
        if node is not None:
            return _name(scratch.table, node)
    return None


def _name(table: NodeTable, node: str) -> str:
    index = table.index_of_node(node)
    return node if index is None else name_of(table, index)
