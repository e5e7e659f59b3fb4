"""A lease: its holder, and the epoch of the holder's ownership."""

import msgspec

VACANT = ""
"""The holder of a vacant lease."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of leases.

    ``name`` says what is leased: a process, such as ``conductor/host/pid``, or the session of a host.
    ``kind`` is the part of the name before the first slash. ``holder`` is a nonce that the holder drew at
    its start. ``epoch`` counts the holders from 1, ``counter`` is the number of this one's last renewal.
    ``host`` is the name of the machine that the holder runs on, ``since`` when it became the holder, in
    seconds since the epoch, for people to read.
    """

    name: str
    kind: str
    holder: str
    epoch: int
    counter: int
    host: str
    service_version: int
    since: float

    @property
    def stamp(self) -> tuple[str, int, int]:
        """The value that changes with each sign of life of the holder."""
        return self.holder, self.epoch, self.counter

    @property
    def vacant(self) -> bool:
        """True if the lease has no holder: the last one was seen to stand still."""
        return self.holder == VACANT
