"""Tokens by which agents prove their hosts. A cell keeps only their digests."""

import uuid

PREFIX = "roost-host-"
"""The prefix of each token, by which people and secret scanners recognise one."""


def new_token() -> str:
    """Return a new token of 122 random bits."""
    return token_of(str(uuid.uuid4()))


def token_of(nonce: str) -> str:
    """Return the token made of a nonce, which was drawn for it alone."""
    return PREFIX + nonce.replace("-", "")
