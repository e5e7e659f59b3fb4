"""All hosts that have a tree, whatever a request asks for: what filters are asked about in explanations."""

from collections.abc import Iterator

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.allocation import Candidate
from roost.scheduler.candidates.candidate_source import CandidateSource
from roost.scheduler.candidates.fleet_candidates import FleetCandidates
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.table import NodeTable


class EveryHost(FleetCandidates):
    """The hosts ``index`` with the roots ``rows``. They have no candidates, because nothing is asked for."""

    def __init__(self, fleet: Fleet, rows: Rows, index: Indexes) -> None:
        self._fleet = fleet
        self._rows = rows
        CandidateSource.__init__(self, index)

    def candidates(self, position: int) -> Iterator[Candidate]:
        return iter(())


def name_of(table: NodeTable, index: int) -> str:
    """The name of a host: of its service, and of the node where the service has several."""
    host, node = table.hosts[index], table.nodenames[index]
    return host if len(table.indexes_of_host(host)) < 2 else f"{host}/{node}"
