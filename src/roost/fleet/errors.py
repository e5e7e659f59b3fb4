"""What can go wrong in the fleet.

FleetError
├── UnknownProvider     a provider is named that the fleet does not hold
└── Inconsistent        a change does not fit the state it is applied to
"""


class FleetError(Exception):
    """Any refusal of the fleet."""


class UnknownProvider(FleetError):
    """No provider has this uuid."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"no resource provider {uuid}")
        self.uuid = uuid


class Inconsistent(FleetError):
    """A change contradicts the fleet: the ledger and this replica have parted. Never ignored."""
