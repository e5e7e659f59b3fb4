"""Cursors: which page of which query at which version. Opaque to clients, and of no use if altered.

A cursor is signed with the token of the commit that its version is, which every worker can read in the
database and nobody outside knows. So workers need to share no key, and a cursor of another database, or
of a commit that was lost with one, fits none.
"""

import base64
import binascii
import hashlib
import hmac
import re
import struct

import msgspec

from roost.model.request import CandidateQuery
from roost.web.errors import BadRequest

_FORM = struct.Struct(">BQQ12s")
_FIRST_FORM = 1
_SIGNATURE_BYTES = 16
_TEXT = re.compile(r"[A-Za-z0-9_-]{60}")
_CANONICAL = msgspec.json.Encoder(order="deterministic")


class Cursor(msgspec.Struct, frozen=True):
    """``version`` of the ledger; ``offset``: candidates on the pages before; ``query``: `fingerprint`."""

    version: int
    offset: int
    query: bytes

    def signed(self, token: str) -> str:
        """The text for a client."""
        body = _FORM.pack(_FIRST_FORM, self.version, self.offset, self.query)
        return base64.urlsafe_b64encode(body + _signature(body, token)).decode()

    def is_signed(self, text: str, token: str) -> bool:
        """Whether ``text``, which this was read from, is what was once given to a client."""
        return hmac.compare_digest(text, self.signed(token))


def read_cursor(text: str) -> Cursor:
    """A cursor in its form; whether it is signed remains to be seen. Raises `BadRequest`."""
    if not _TEXT.fullmatch(text):
        raise malformed()
    try:
        form, version, offset, query = _FORM.unpack(base64.urlsafe_b64decode(text)[:-_SIGNATURE_BYTES])
    except (binascii.Error, struct.error):
        raise malformed() from None
    if form != _FIRST_FORM or version >= 2**63:
        raise malformed()
    return Cursor(version, offset, query)


def malformed() -> BadRequest:
    """What is answered to a cursor that was never given to anybody."""
    return BadRequest("Invalid cursor: it is not one that this service gave; begin without one.")


def fingerprint(query: CandidateQuery) -> bytes:
    """Equal for equal queries in canonical form, in every worker."""
    return hashlib.blake2b(_CANONICAL.encode(query), digest_size=12).digest()


def _signature(body: bytes, token: str) -> bytes:
    return hmac.digest(token.encode(), body, "sha256")[:_SIGNATURE_BYTES]
