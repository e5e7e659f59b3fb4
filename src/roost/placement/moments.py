"""Headers of responses that name the state of the ledger on which the response was made.

A scheduler that uses HTTP records them, so that its decisions can be replayed from the history.
"""

from collections.abc import Mapping

from roost.ledger import Moment

VERSION = "roost-version"
"""The version of the ledger that a response was made on."""

POSITION = "roost-position"
"""Of a write: the number of changes that precede the write's own in the commit after that version."""


def headers_of(moment: Moment) -> dict[str, str]:
    """Return the headers of a write that was checked at a moment."""
    return {VERSION: str(moment.version), POSITION: str(moment.position)}


def moment_of(headers: Mapping[str, str]) -> Moment | None:
    """Return the moment that the headers of a response name, None if none. A query has position 0."""
    try:
        return Moment(int(headers[VERSION]), int(headers.get(POSITION, "0")))
    except (KeyError, ValueError):
        return None
