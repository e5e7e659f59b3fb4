"""A candidate source of all hosts with a tree, whatever is requested: explanations ask filters about them."""

from collections.abc import Iterator

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.candidates.fleet_candidates import FleetCandidates
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable


class EveryHost(FleetCandidates):
    """The hosts ``index`` with the roots ``rows``. They have no candidates, because nothing is requested."""

    def __init__(self, fleet: Fleet, rows: Rows, index: Indexes) -> None:
        self._fleet = fleet
        self._rows = rows
        CandidateSource.__init__(self, index)

    def candidates(self, position: int) -> Iterator[Candidate]:
        return iter(())


def name_of(table: NodeTable, index: int) -> str:
    """Return the name of a host: of its service, with the node if the service has several."""
    host, node = table.hosts[index], table.nodenames[index]
    return host if len(table.indexes_of_host(host)) < 2 else f"{host}/{node}"
