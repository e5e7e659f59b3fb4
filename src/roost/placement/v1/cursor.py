"""Cursors, which name a page by query, version and offset. Opaque to clients, and invalid if altered.

A cursor is signed with the append token of the commit with its version. Every worker reads that from the
database, and no response contains it. So workers need not share a key, and a cursor of another database, or
of a commit that was lost with a restored one, is invalid.
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
    """``version`` of the ledger; ``offset``: candidates on the pages before; ``query``: its `fingerprint`."""

    version: int
    offset: int
    query: bytes

    def signed(self, token: str) -> str:
        """Return the cursor as clients get it: base64, signed with the token of the version's commit."""
        body = _FORM.pack(_FIRST_FORM, self.version, self.offset, self.query)
        return base64.urlsafe_b64encode(body + _signature(body, token)).decode()

    def is_signed(self, text: str, token: str) -> bool:
        """Return whether ``text``, from which this cursor was read, has a valid signature."""
        return hmac.compare_digest(text, self.signed(token))


def read_cursor(text: str) -> Cursor:
    """Decode a cursor without checking its signature. Raises `BadRequest`."""
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
    """Return the error for a cursor that no response contained."""
    return BadRequest("Invalid cursor: it is not one that this service gave; begin without one.")


def fingerprint(query: CandidateQuery) -> bytes:
    """Return a hash of a query in canonical form, 12 bytes, the same in every worker."""
    return hashlib.blake2b(_CANONICAL.encode(query), digest_size=12).digest()


def _signature(body: bytes, token: str) -> bytes:
    return hmac.digest(token.encode(), body, "sha256")[:_SIGNATURE_BYTES]
