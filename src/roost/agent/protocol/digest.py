"""The digest of a host's guests.

It is a sum, so that both sides can update it guest by guest without a list, in any order: a new guest adds
its part, a removed guest subtracts it.
"""

import hashlib
from collections.abc import Iterable

SIZE = 2**64
"""Digests are integers from 0 to ``SIZE`` - 1."""

EMPTY = 0
"""The digest of no guests."""


def digest_of(guests: Iterable[tuple[str, int]]) -> int:
    """Return the digest of guests, each an instance's uuid and the attempt that built the guest."""
    return sum(map(part_of, guests)) % SIZE


def part_of(guest: tuple[str, int]) -> int:
    """Return the part of one guest in the digest."""
    instance, attempt = guest
    text = hashlib.blake2b(f"{instance} {attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(text, "big")
