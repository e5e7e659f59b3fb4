"""What can go wrong in an exchange.

ExchangeError
├── NotPlacement    the database is not one of OpenStack Placement's, or has a revision that is not known
└── NotEmpty        the target holds something that is not from the source
"""

from roost.model.errors import OperatorError


class ExchangeError(OperatorError):
    """Any failure of an exchange."""


class NotPlacement(ExchangeError):
    """This database cannot be read as OpenStack Placement's."""


class NotEmpty(ExchangeError):
    """The target holds something that is not from the source, or is not as it is there."""
