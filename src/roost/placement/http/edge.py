"""The edge of every service on a ledger: `roost serve` and `roost up` compose it here, in the same way."""

from roost.ledger import Ledger
from roost.placement.options import PlacementOptions
from roost.web.dispatch import Application
from roost.web.edge import Edge


def with_edge(application: Application, ledger: Ledger, options: PlacementOptions) -> Edge:
    """Put the edge around the application of a service. Parts that ``options`` turn off are left out."""
    return Edge(application)
