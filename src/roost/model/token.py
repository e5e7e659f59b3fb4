"""The stored form of a token of a host or of a service."""

import hashlib


def token_digest(token: str) -> str:
    """Return the stored form of a token: its SHA-256 in hexadecimal. No salt, because tokens are unique."""
    return hashlib.sha256(token.encode()).hexdigest()
