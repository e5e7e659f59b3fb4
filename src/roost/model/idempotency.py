"""Idempotency keys of requests that a client may repeat, and the stored answers."""

import hashlib
import uuid

import msgspec


class IdempotencyKey(msgspec.Struct, frozen=True):
    """A client's key for one request that creates something.

    ``id``: the digest of the client's key and its scope: project, user and operation. ``request``: the digest
    of the request's content. ``at``: when the request arrived, in seconds since the epoch.
    """

    id: str
    request: str
    at: float

    def uuid(self, purpose: str) -> str:
        """Return a uuid that is the same for each repetition of the request and for no other request."""
        digest = hashlib.sha256(f"{self.id}/{purpose}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))


class KeyedAnswer(msgspec.Struct, frozen=True):
    """The answer to a request with a key. ``body``: its JSON; None if it has secrets, which are not kept."""

    key: IdempotencyKey
    status: int
    body: bytes | None
