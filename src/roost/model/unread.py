"""Keys of a request that have no effect."""

from typing import Literal

import msgspec

Where = Literal["extra_spec", "image_property", "hint"]
"""The part of a request that has keys of its own choice: flavor, image, or scheduler hints."""


class UnreadKey(msgspec.Struct, frozen=True):
    """A key of a request that nothing reads as it is configured, so that it has no effect.

    ``text`` is a sentence: it names the key, and says why, or which key was meant. The value is not in it.
    """

    where: Where
    key: str
    text: str
