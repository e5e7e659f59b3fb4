"""The position of a reader of events, as a text that clients hand back unread."""

import base64
import binascii

import msgspec

from roost.web.errors import BadRequest


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The position of a reader.

    ``api``: in the log of the API database. ``cells``: in the log of each cell; None in markers of earlier
    versions, which listed no events of cells. The log of a cell that is not named was not read yet: it is
    read from the time ``since`` on (seconds since the epoch), or from its beginning.
    """

    api: int
    cells: dict[str, int] | None = None
    since: float | None = None

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def marker_of(text: str) -> Marker:
    """Parse a marker. Raises `BadRequest`."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(decoded, type=Marker)
    except (ValueError, binascii.Error, msgspec.DecodeError, msgspec.ValidationError):
        raise _refused(text) from None
    if not all(0 <= position < 1 << 63 for position in (found.api, *(found.cells or {}).values())):
        raise _refused(text)
    return found


def _refused(text: str) -> BadRequest:
    return BadRequest(f"marker {text!r} is not `next` of a page of events")
