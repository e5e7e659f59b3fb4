"""The bounds of a run: how many claims and candidates it may try, for how long, and with how much work."""

from typing import Final

from roost.fleet.work import Work
from roost.scheduler.request.scheduling_request import SchedulingRequest

_UNITS_OF_DECISION: Final = 100_000
"""Units of work that a decision inside the ledger's writer may take to search trees for candidates: some
50 ms. A plain flavor takes some hundreds for a tree that is alike no other."""

_UNITS_OF_INSTANCE: Final = 5_000
"""Units that each instance of a request adds: each claim leaves a tree that is searched anew."""

_KEPT_UNITS: Final = 60_000
"""Units of work whose result is kept that a decision may take beside that for the fleet: some 25 ms."""

_KEPT_UNITS_OF_PROVIDER: Final = 6
"""Units of such work for each provider of the fleet. To evaluate a plain flavor for the first time takes less
than one for each in trees that are alike, and three in trees that are alike no others."""

_KEPT_UNITS_OF_INSTANCE: Final = 10_000
"""Units of such work for each instance: the tree that its claim is in is laid out anew."""

TOO_MUCH_WORK: Final = (
    "the search for hosts takes more work than one decision may: there are too many ways in which the "
    "providers of a host could serve the request groups; ask for fewer groups"
)
"""Why a decision is refused that takes more."""


def decision_work(instances: int, providers: int) -> Work:
    """The work of a decision on some instances in a fleet of some providers. It holds the writer, and can go
    to no other process.

    What is found out about a fleet once and kept has a limit of its own, which grows with the fleet: a
    decision cannot do without it. A flavor of hundreds of groups or amounts needs more than that.
    """
    return Work(
        _UNITS_OF_DECISION + instances * _UNITS_OF_INSTANCE,
        kept_units=_KEPT_UNITS + providers * _KEPT_UNITS_OF_PROVIDER + instances * _KEPT_UNITS_OF_INSTANCE,
    )


class Bounds:
    """Judges one run by the options ``max_claims_per_instance`` and ``max_run_seconds``.

    ``candidates`` is ``max_candidates_per_host``; 0 is no bound. Another host is tried after it, so that it
    does not end the run.
    """

    def __init__(self, request: SchedulingRequest) -> None:
        self._request = request
        self._claims = request.options.max_claims_per_instance
        self.candidates = request.options.max_candidates_per_host

    def met(self, claims: int) -> str | None:
        """The option and value of the bound that an instance with so many refused claims meets, or None."""
        if self._claims and claims >= self._claims:
            return f"max_claims_per_instance={self._claims}"
        if self._request.expired():
            return f"max_run_seconds={self._request.options.max_run_seconds:g}"
        return None
