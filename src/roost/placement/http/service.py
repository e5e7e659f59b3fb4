"""What the handlers work with."""

from dataclasses import dataclass, field

from roost.ledger import Ledger
from roost.placement.options import PlacementOptions
from roost.placement.wire.provider_texts import ProviderTexts


@dataclass(frozen=True)
class Service:
    """``texts`` keeps the JSON of providers for responses with candidates."""

    ledger: Ledger
    options: PlacementOptions
    texts: ProviderTexts = field(default_factory=ProviderTexts)
