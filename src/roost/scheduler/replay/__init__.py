"""Makes recorded decisions again, from the record, two histories and the scheduler's own command.

histories        the histories that decisions are made again on
counterfactuals  the same decision without one of its conditions
replay          makes a decision again at its versions, or at today's
recorded        a decision as its record has it: request, options, seed, versions; differences from it
past_placement  placement over HTTP as it was during a run
kept_consumers  instances that kept what they held beside the claim of a run, or handed it over

The state of placement comes from `roost.ledger.past_fleet`, the node table from
`roost.state.api_database.node_journal`. ADR 16 lists the data that a decision depends on. Nothing is written.
"""

from roost.scheduler.replay.recorded import DecisionDifference, NotReproducible
from roost.scheduler.replay.replay import DecisionReplay, Replayed, in_order

__all__ = ["DecisionDifference", "DecisionReplay", "NotReproducible", "Replayed", "in_order"]
