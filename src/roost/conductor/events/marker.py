"""The position of a reader of events, as a text that clients hand back unread."""

import base64
import binascii

import msgspec

from roost.web.errors import BadRequest


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The position of a reader. ``api``: in the log of the API database."""

    api: int

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def marker_of(text: str) -> Marker:
    """The marker of a text. Raises `BadRequest`."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(decoded, type=Marker)
    except (ValueError, binascii.Error, msgspec.DecodeError, msgspec.ValidationError):
        raise _refused(text) from None
    if not 0 <= found.api < 1 << 63:
        raise _refused(text)
    return found


def _refused(text: str) -> BadRequest:
    return BadRequest(f"marker {text!r} is not `next` of a page of events")
