"""`Departure`: an instance that is to leave its host."""

import msgspec


class Departure(msgspec.Struct, frozen=True):
    """An instance that is to leave its host, as that is drained or dead.

    ``attempt``: that of its guest. ``tries``: its moves from there that have ended.
    """

    instance: str
    host: str
    attempt: int
    tries: int
