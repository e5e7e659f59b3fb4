"""What the gateways have in common: how a claim is written, and a selection under way."""

from roost.ledger import State
from roost.placement.commands.allocations import ConsumerWrite, write_allocations
from roost.placement.errors import PlacementError
from roost.scheduler.claim_result import CLAIMED, ClaimResult, Verdict, result_of
from roost.scheduler.outcome import Claim, Outcome
from roost.scheduler.question import Question
from roost.scheduler.selection import Selecting

INSTANCE = "INSTANCE"
"""Consumer type of what the scheduler claims."""


def claim_write(
    question: Question, claim: Claim, generation: int | None = None, beside: str | None = None
) -> ConsumerWrite:
    """The allocation write that makes a claim.

    ``generation`` is the consumer's present one; None: it holds nothing yet. With a server group the write
    has the group's condition, whether or not a filter for it is enabled. ``beside``: the digest of the
    assignments on the node that the claim was fitted beside.
    """
    return ConsumerWrite(
        consumer=claim.instance,
        allocations=claim.candidate.allocations,
        project_id=question.spec.project_id,
        user_id=question.spec.user_id,
        consumer_type=INSTANCE,
        generation=generation,
        group=None if question.spec.group is None else question.spec.group.claim,
        assignment=claim.candidate.assignment,
        beside=beside,
        mappings=claim.candidate.mappings,
    )


def claimed(state: State, question: Question, claim: Claim) -> ClaimResult:
    """Make a claim in a ledger's state.

    Raises: `PlacementError` that is no refusal of this claim.
    """
    try:
        write_allocations(state, [claim_write(question, claim)])
    except PlacementError as error:
        result = result_of(error)
        if result.verdict is not Verdict.REFUSED:
            raise
        return result
    return CLAIMED


class Driven:
    """A selection under way: the claim that it wants made, None once ``outcome`` is there."""

    claim: Claim | None
    outcome: Outcome

    def __init__(self, selecting: Selecting) -> None:
        self._selecting = selecting
        self._resume(None)

    def answer(self, result: ClaimResult) -> None:
        """Tell the selection the result of the claim."""
        self._resume(result)

    def _resume(self, result: ClaimResult | None) -> None:
        try:
            # A generator that has not begun takes nothing but None.
            self.claim = self._selecting.send(result)  # type: ignore[arg-type]
        except StopIteration as end:
            self.claim, self.outcome = None, end.value
