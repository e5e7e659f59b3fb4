"""The state that all handlers of the Placement API share."""

from dataclasses import dataclass, field

from roost.ledger import Ledger
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.wire.provider_texts import ProviderTexts


@dataclass(frozen=True)
class PlacementApi:
    """The first argument of every handler.

    ``texts`` caches the JSON of providers for responses with candidates; ``queries`` computes queries.
    """

    ledger: Ledger
    options: PlacementOptions
    queries: QueryBudget
    texts: ProviderTexts = field(default_factory=ProviderTexts)
