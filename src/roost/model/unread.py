"""Keys of a request that have no effect."""

from typing import Literal

import msgspec

Where = Literal["extra_spec", "image_property", "hint"]
"""The part of a request with free keys: flavor, image, or scheduler hints."""


class UnreadKey(msgspec.Struct, frozen=True):
    """A key of a request that has no effect, because no part of the configured scheduler reads it.

    ``text`` is a sentence that names the key and the reason, or the key that was meant. It omits the value.
    """

    where: Where
    key: str
    text: str
