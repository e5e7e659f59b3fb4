"""Requests that their client may send again, and the answers that are kept for them."""

import hashlib
import uuid

import msgspec


class IdempotencyKey(msgspec.Struct, frozen=True):
    """A client's key for one request that creates something.

    ``id``: the digest of the client's key and its scope: project, user and operation. ``request``: the digest
    of what is asked for. ``at``: when the request arrived, in seconds since the epoch.
    """

    id: str
    request: str
    at: float

    def uuid(self, purpose: str) -> str:
        """A uuid that is the same each time that the request is sent, and nobody else's."""
        digest = hashlib.sha256(f"{self.id}/{purpose}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))


class KeyedAnswer(msgspec.Struct, frozen=True):
    """The answer to a request with a key. ``body``: its JSON; None if it has secrets, which are not kept."""

    key: IdempotencyKey
    status: int
    body: bytes | None
