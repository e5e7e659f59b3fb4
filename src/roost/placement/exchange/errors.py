"""The errors of an import or an export.

ExchangeError
├── NotPlacement    the database is not OpenStack Placement's, or its revision is unknown
└── NotEmpty        the target contains data that is not from the source
"""

from roost.model.errors import OperatorError


class ExchangeError(OperatorError):
    """The base of all errors of an import or an export."""


class NotPlacement(ExchangeError):
    """The database is not OpenStack Placement's, or its revision is unknown."""


class NotEmpty(ExchangeError):
    """The target contains data that the source does not have or has with other values."""
