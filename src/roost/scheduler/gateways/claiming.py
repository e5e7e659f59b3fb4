"""What the gateways have in common: how a claim is written, and what a refusal of it means."""

from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate, Conflict, PlacementError
from roost.scheduler.outcome import Claim, Outcome
from roost.scheduler.question import Question
from roost.scheduler.selection import Selecting

INSTANCE = "INSTANCE"
"""Consumer type of what the scheduler claims."""

_CONSUMER_CONFLICT = "consumer generation conflict"
"""Part of the text, here and upstream: code and status are those of a provider's generation as well."""


def claim_write(question: Question, claim: Claim) -> ConsumerWrite:
    """The allocation write that makes a claim: for a consumer that holds nothing yet."""
    return ConsumerWrite(
        consumer=claim.instance,
        allocations=claim.candidate.allocations,
        project_id=question.spec.project_id,
        user_id=question.spec.user_id,
        consumer_type=INSTANCE,
        generation=None,
    )


def refusal(error: PlacementError) -> str | None:
    """Why a claim was refused, in one line; None if this is no refusal of this host alone.

    A conflict is: no capacity, or another was faster on a provider. But where the consumer holds
    something already, no other host would change that.
    """
    if not isinstance(error, Conflict):
        return None
    if isinstance(error, ConcurrentUpdate) and _CONSUMER_CONFLICT in str(error):
        return None
    return " ".join(str(error).split())


class Driven:
    """A selection under way: the claim that it wants made, None once ``outcome`` is there."""

    claim: Claim | None
    outcome: Outcome

    def __init__(self, selecting: Selecting) -> None:
        self._selecting = selecting
        self.answer(None)

    def answer(self, refusal: str | None) -> None:
        """Say what became of the claim: None if it was made."""
        try:
            self.claim = self._selecting.send(refusal)
        except StopIteration as end:
            self.claim, self.outcome = None, end.value
