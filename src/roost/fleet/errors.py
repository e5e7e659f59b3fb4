"""The errors of the fleet.

FleetError
├── ProviderNotFound    no provider has the uuid
├── Inconsistent        a change contradicts the fleet that it is applied to
└── TooMuchWork         a query takes more work than its caller allows
"""


class FleetError(Exception):
    """The base class of the errors of the fleet."""


class ProviderNotFound(FleetError):
    """No provider has this uuid."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"no resource provider {uuid}")
        self.uuid = uuid


class Inconsistent(FleetError):
    """A change contradicts the fleet: this replica differs from the ledger. It must not be ignored."""


class TooMuchWork(FleetError):
    """A query takes more work than its caller allows. Nothing is wrong with the query or the fleet."""
