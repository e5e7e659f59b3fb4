"""Exceptions of the scheduler.

SchedulerError
├── BadRequestSpec         the request spec cannot be turned into a query that placement understands
│   ├── RequestFilterFailed  a request filter leaves no place for the request
│   └── UnknownZone          no aggregate is the availability zone that the request names
├── BadOptions             an option has a value that it cannot have
├── UnknownPlugin          a filter or weigher that is configured does not exist or is none
├── CannotWeigh            a host that the request may use has no weight, and the options forbid that
├── SchedulerFault         a filter, a weigher or the scheduler itself raised an unexpected error
├── PlacementUnavailable   placement cannot be reached, or is unavailable; trying again will help
│   ├── PlacementFailed    placement fails at what the scheduler asks; trying again may help
│   ├── ClaimsInDoubt      placement has not answered a claim, and may still carry it out
│   └── WordsInTheWay      operators have said something each time that the request was decided anew
├── PlacementRefused       placement refuses what the scheduler asks; trying again will not help
├── SchedulerUnavailable   a scheduler over HTTP cannot be reached, or is unavailable; trying again will help
├── SchedulerRefused       a scheduler over HTTP refuses to answer; trying again will not help
├── NewerWord              an operator has said something since the request was turned into queries
├── NothingClaimed         the instance whose host is to be replaced holds nothing
├── StaleClaim             the claim of an instance was moved by others since it was read
├── NoAlternate            no alternate of an instance can be used
└── NoValidHost            no host, or not enough of them, can take the request

Beside these, a consumer that holds something already is `roost.placement.errors.ConcurrentUpdate`, as in
placement itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from roost.model.errors import OperatorError
from roost.model.reasons import Reasons
from roost.model.record import Step
from roost.model.spec import Selection, UnreadKey
from roost.scheduler.selection.outcome import Basis, ClaimAttempt


class SchedulerError(Exception):
    """Any failure of the scheduler. ``basis``: the versions that the run was decided on, as far as known."""

    basis = Basis()


class BadRequestSpec(SchedulerError):
    """The request spec cannot be turned into a query that placement understands; the text names the key
    and the value."""


class RequestFilterFailed(BadRequestSpec):
    """A request filter leaves no place for the request; the text names the project, network or port."""


class UnknownZone(BadRequestSpec):
    """No aggregate is the availability zone that a request names."""


class BadOptions(SchedulerError, OperatorError):
    """An option has a value that it cannot have; the text names both."""


class CannotWeigh(SchedulerError):
    """A host that the request may use has no weight, and the options forbid that. The text names host and
    reason."""


class UnknownPlugin(SchedulerError, OperatorError):
    """A filter or weigher that is configured does not exist, cannot be loaded, or is none."""


class SchedulerFault(SchedulerError):
    """A filter, a weigher or the scheduler itself raised an unexpected error; the text names its type."""


class PlacementUnavailable(SchedulerError):
    """Placement cannot be reached, or is unavailable. Trying again helps when it is back."""


class PlacementFailed(PlacementUnavailable):
    """Placement answers what the scheduler asks with an error of its own. Trying again may help."""


class ClaimsInDoubt(PlacementUnavailable):
    """Placement has not answered a claim. It holds the claim, or may still make it; the text names the
    consumers."""


class PlacementRefused(SchedulerError):
    """Placement refuses the scheduler's request, such as for its token or version, or is no Placement API.

    Trying again will not help.
    """


class SchedulerUnavailable(SchedulerError):
    """A scheduler over HTTP cannot be reached, or is unavailable. Its claims for the request are not known.

    Trying again helps when it is back.
    """


class SchedulerRefused(SchedulerError):
    """A scheduler over HTTP refuses to answer, such as for the token, or there is none at the URL.

    Trying again will not help.
    """


class TakenAway(NamedTuple):
    """An alternate that was claimed, and that an operator has taken away meanwhile.

    ``alternates`` are left. ``tries``: the claim attempts, this one among them.
    """

    selected: Selection
    alternates: tuple[Selection, ...]
    tries: tuple[ClaimAttempt, ...]


class NewerWord(SchedulerError):
    """An operator has said something since the request was turned into queries: it is decided anew.

    The scheduler catches it. ``mark``: the announcement in the ledger, None where none is made.
    ``generations``: that instances which held something have reached meanwhile. ``taken_away``: the alternate
    that holds the claim now.
    """

    def __init__(
        self,
        mark: int | None = None,
        generations: Mapping[str, int] | None = None,
        taken_away: TakenAway | None = None,
    ) -> None:
        super().__init__("an operator has said something that the decision does not know of")
        self.mark = mark
        self.generations = generations or {}
        self.taken_away = taken_away


class WordsInTheWay(PlacementUnavailable):
    """Operators have said something each time that a request was decided anew. Trying again will help."""


class NothingClaimed(SchedulerError):
    """The instance whose host is to be replaced holds nothing: it has ended, or it was never placed."""

    def __init__(self, instance: str) -> None:
        super().__init__(f"instance {instance} holds nothing that could be moved to an alternate")


class StaleClaim(SchedulerError):
    """Others have moved the claim of an instance since the caller read it, so the caller may not move it.

    ``generation`` is the present one of the consumer.
    """

    def __init__(self, instance: str, expected: int, generation: int) -> None:
        super().__init__(
            f"the claim of instance {instance} is at generation {generation}, not {expected}: "
            "others have moved it"
        )
        self.generation = generation


class NoAlternate(SchedulerError):
    """No alternate of an instance can be used. Its claim is as it was.

    ``tries`` has each passed-over alternate with its reason; it is empty if there was none.
    """

    def __init__(self, tries: tuple[ClaimAttempt, ...]) -> None:
        reasons = [f"alternate {each.host}: {each.refusal}" for each in tries]
        super().__init__("; ".join(reasons) or "no alternate is left")
        self.tries = tries


class NoValidHost(SchedulerError):
    """No host, or not enough of them, can take the request.

    ``run``: the id of the run. ``reason``: one sentence, for the user. ``steps``: how many hosts each step
    left. ``tries``: the claim attempts, refused ones with their reasons. ``reasons``: the whole explanation
    for the operator, None if it did not come in time: the record gets it then. ``warnings``: keys of the
    request that had no effect.
    """

    def __init__(
        self,
        run: str,
        reason: str,
        steps: tuple[Step, ...],
        tries: tuple[ClaimAttempt, ...],
        reasons: Reasons | None = None,
        warnings: tuple[UnreadKey, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.run = run
        self.reason = reason
        self.steps = steps
        self.tries = tries
        self.reasons = reasons
        self.warnings = warnings
