"""Headers by which responses say on which state of the ledger they were made.

A scheduler that asks over HTTP records them, so that its decisions can be made again from the history.
"""

from collections.abc import Mapping

from roost.ledger import Moment

VERSION = "roost-version"
"""The version of the ledger that a response was made on."""

POSITION = "roost-position"
"""Of a write: how many changes the commit after that version had before those of the write."""


def headers_of(moment: Moment) -> dict[str, str]:
    """The headers of a write that was judged at a moment."""
    return {VERSION: str(moment.version), POSITION: str(moment.position)}


def moment_of(headers: Mapping[str, str]) -> Moment | None:
    """The moment that the headers of a response name; position 0 for a query; None if they name none."""
    try:
        return Moment(int(headers[VERSION]), int(headers.get(POSITION, "0")))
    except (KeyError, ValueError):
        return None
