"""Tokens of hosts: what an agent proves its host with. A cell keeps their digests alone."""

import uuid

PREFIX = "roost-host-"
"""How each token begins, so that people and programs that look for secrets recognise one."""


def new_token() -> str:
    """A token that nobody can guess: 122 random bits."""
    return token_of(str(uuid.uuid4()))


def token_of(nonce: str) -> str:
    """The token that is made of a nonce, which was drawn for it alone."""
    return PREFIX + nonce.replace("-", "")
