"""The limits of a run: refused claims, candidates of a host, seconds, units of work."""

from typing import Final

from roost.fleet.work import WorkBudget
from roost.scheduler.request.scheduling_request import SchedulingRequest

_UNITS_OF_DECISION: Final = 60_000
"""Units of work that a decision inside the ledger's writer may take to search trees for candidates: some 30
ms.

A plain flavor takes some hundreds for a tree that is like no other.
"""

_UNITS_OF_INSTANCE: Final = 4_000
"""Units that each instance of a request adds: each claim leaves a tree that is searched again."""

_MOST_UNITS: Final = 100_000
"""Most units of a decision, however many instances it is for: some 50 ms, 80 in a search.

An instance takes some 30 where trees are alike.
"""

_CACHED_UNITS: Final = 60_000
"""Units of cached work that a decision may take in addition to those for the fleet: some 25 ms."""

_CACHED_UNITS_OF_PROVIDER: Final = 6
"""Units of cached work for each provider of the fleet.

Evaluating a plain flavor for the first time takes less than one for each in trees that are alike, and three
in trees that are like no others.
"""

_CACHED_UNITS_OF_INSTANCE: Final = 5_000
"""Units of cached work for each instance: the tree with its claim is laid out again."""

TOO_MUCH_WORK: Final = (
    "the search for hosts takes more work than one decision may: there are too many ways in which the "
    "providers of a host could serve the request groups; ask for fewer groups"
)
"""The refusal of a decision that exceeds its units."""


def decision_work(instances: int, providers: int) -> WorkBudget:
    """Return the work of a decision on some instances in a fleet of some providers.

    A decision holds the writer, and cannot move to another process.

    Work whose result is cached with the fleet has a limit of its own, which grows with the fleet, because no
    decision can do without it. A flavor of hundreds of groups or amounts exceeds it.
    """
    return WorkBudget(
        min(_MOST_UNITS, _UNITS_OF_DECISION + instances * _UNITS_OF_INSTANCE),
        kept_units=_CACHED_UNITS
        + providers * _CACHED_UNITS_OF_PROVIDER
        + instances * _CACHED_UNITS_OF_INSTANCE,
    )


class Bounds:
    """The options ``max_claims_per_instance`` and ``max_run_seconds`` applied to one run.

    ``candidates`` is ``max_candidates_per_host``; 0 is no bound. It does not end the run: the next host is
    tried.
    """

    def __init__(self, request: SchedulingRequest) -> None:
        self._request = request
        self._claims = request.options.max_claims_per_instance
        self.candidates = request.options.max_candidates_per_host

    def met(self, claims: int) -> str | None:
        """Return option and value of the bound that an instance with so many refused claims meets.

        None: it meets none.
        """
        if self._claims and claims >= self._claims:
            return f"max_claims_per_instance={self._claims}"
        if self._request.expired():
            return f"max_run_seconds={self._request.options.max_run_seconds:g}"
        return None
