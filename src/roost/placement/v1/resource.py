"""What the resources of ``/v1`` have in common."""

from dataclasses import dataclass

from roost.ledger import Ledger
from roost.placement.v1.follower import Follower
from roost.placement.v1.past import Past


@dataclass(frozen=True)
class Service:
    """What the operations work with."""

    ledger: Ledger
    past: Past
    follower: Follower


class Resource:
    """One URL, with a method ``on_…`` for each of its operations."""

    def __init__(self, service: Service) -> None:
        self.ledger = service.ledger
        self.past = service.past
        self.follower = service.follower
