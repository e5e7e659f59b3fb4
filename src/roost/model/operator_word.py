"""Operators' words: cells, hosts and nodes enabled or disabled, whatever ledger and node reports say."""

from typing import NamedTuple

import msgspec


class Subject(NamedTuple):
    """The subject of an operator's word: a cell, one of its hosts, or a node (the uuid of its root provider).

    Without a node it is the host, without a host the whole cell.
    """

    cell: str
    host: str = ""
    node: str = ""


class SaidWord(msgspec.Struct, frozen=True):
    """The word on a subject. ``enabled``: it may have new instances. ``at``: seconds since the epoch.

    ``moves``: the instances on a disabled subject are moved away. ``live``: while they run, if they can.
    """

    subject: Subject
    enabled: bool
    reason: str | None
    at: float
    moves: bool = False
    live: bool = False
