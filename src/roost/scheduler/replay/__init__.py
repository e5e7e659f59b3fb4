"""Decisions made again: what a record says, the two histories, and the scheduler's own command.

    recorded    what a record tells of a decision: request, options, seed, versions
    replay      makes a decision again at its versions, or at today's
    comparison  what differs from the record
    changed     the same request with one constraint left out, or with another flavor

The state of placement comes from `roost.ledger.past_fleet`, the node table from
`roost.state.api_database.node_journal`. See ADR 16 for what a decision depends on. Nothing is written.
"""

from roost.scheduler.replay.comparison import Difference
from roost.scheduler.replay.recorded import NotReproducible
from roost.scheduler.replay.replay import Replay, Replayed, in_order

__all__ = ["Difference", "NotReproducible", "Replay", "Replayed", "in_order"]
