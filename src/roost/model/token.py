"""Tokens by which agents prove their hosts, and the stored form of a token of a host or of a service."""

import hashlib
import uuid


def token_digest(token: str) -> str:
    """Return the stored form of a token: its SHA-256 in hexadecimal. No salt, because tokens are unique."""
    return hashlib.sha256(token.encode()).hexdigest()


HOST_PREFIX = "roost-host-"
"""The prefix of each token of a host, by which people and secret scanners recognise one."""


def new_host_token() -> str:
    """Return a new token of a host, of 122 random bits."""
    return host_token_of(str(uuid.uuid4()))


def host_token_of(nonce: str) -> str:
    """Return the token of a host made of a nonce, which was drawn for it alone."""
    return HOST_PREFIX + nonce.replace("-", "")
