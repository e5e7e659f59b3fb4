"""The copy of a scheduler's state in the process that explains its refusals.

The process is forked from the scheduler's, so it begins with the same fleet and node table. From then on it
applies the commits of the ledger and the events of the node table.
"""

from collections.abc import Sequence

import msgspec

from roost.fleet import Fleet
from roost.ledger.feed import Commit, decode_changes
from roost.model.node_event import NodeEvent
from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.asked_again import queries_for
from roost.scheduler.explain.explained import explained
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.selection import Plugins

SECONDS_EACH = 2.0
"""Seconds after which no further changes of one request are tried."""


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """A refused request: the parts of its `SchedulingRequest` that are not made anew from the copy's state.

    ``placed``: so many of the first instances hold their hosts. ``silent``: see `NodeTable.silent`.
    """

    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int
    now: float
    seed: int
    placed: int
    silent: dict[str, float]


class CopyMessage(msgspec.Struct, frozen=True, array_like=True):
    """The commits and events since the last message, and a refused request to explain after them.

    ``node_version``: of the node table after the events.
    """

    commits: Sequence[Commit]
    events: Sequence[NodeEvent]
    node_version: int | None
    refused: Refused | None = None


encode_message = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CopyMessage).decode
_encode = msgspec.msgpack.Encoder().encode
_answers: msgspec.msgpack.Decoder[Reasons | None] = msgspec.msgpack.Decoder(Reasons | None)
decode_answer = _answers.decode


class Copy:
    """The copy, and its answers to messages. Fleet and table must belong to nobody else."""

    def __init__(self, fleet: Fleet, table: NodeTable, plugins: Plugins, options: SchedulerOptions) -> None:
        self.fleet = fleet
        self.table = table
        self._plugins = plugins
        self._options = options
        table.become_copy()

    def handle(self, message: bytes) -> bytes | None:
        """Apply a message and explain its refused request, if any. Raises if the state is not the
        scheduler's."""
        received = _decode(message)
        for commit in received.commits:
            self.fleet.advance(commit.seq, decode_changes(commit.changes), commit.at)
        for event in received.events:
            self.table.apply(event)
        self.table.version = received.node_version
        return None if received.refused is None else _encode(self._reasons(received.refused))

    def _reasons(self, refused: Refused) -> Reasons | None:
        fleet, table, options, spec = self.fleet, self.table, self._options, refused.spec
        table.set_silent(refused.silent)
        try:
            asked = queries_for(fleet, table, spec, options)
            request = SchedulingRequest(
                run="",
                spec=spec,
                query=asked.query,
                fallbacks=asked.fallbacks,
                limit=asked.limit,
                places=asked.places,
                instances=refused.instances,
                num_alternates=0,
                min_count=refused.min_count,
                now=refused.now,
                options=options,
                seed=refused.seed,
            )
            return explained(
                fleet, request, table, self._plugins, placed=refused.placed, seconds=SECONDS_EACH
            )
        except SchedulerError:
            # A plugin fails on the present state. The run itself was refused without a fault.
            return None
