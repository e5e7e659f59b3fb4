"""What can go wrong in the scheduler.

SchedulerError
├── BadRequestSpec   the request spec cannot be turned into a query
├── UnknownPlugin    a filter or weigher that is configured does not exist
└── NoValidHost      no host, or not enough of them, can take the request
"""

from roost.model.errors import OperatorError
from roost.model.record import Step
from roost.scheduler.outcome import Try


class SchedulerError(Exception):
    """Any failure of the scheduler."""


class BadRequestSpec(SchedulerError):
    """The request spec cannot be turned into a query; the text names the key and the value."""


class UnknownPlugin(SchedulerError, OperatorError):
    """A filter or weigher that is configured does not exist."""


class NoValidHost(SchedulerError):
    """No host, or not enough of them, can take the request.

    ``run`` is the id of the run. ``steps`` say how many hosts each step left, ``tries`` which claims were
    refused and why.
    """

    def __init__(self, run: str, reason: str, steps: tuple[Step, ...], tries: tuple[Try, ...]) -> None:
        super().__init__(reason)
        self.run = run
        self.reason = reason
        self.steps = steps
        self.tries = tries
