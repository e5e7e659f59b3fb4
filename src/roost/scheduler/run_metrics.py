"""Metrics of the scheduler's runs: results, causes of refusals, hosts removed by filters, claim attempts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter

from roost.model.record import Step
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import OTHER, counting
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.selection.outcome import BOUND, CLAIMS, FULL, WORK, Outcome

_CAUSES = {KNOWN: "no_hosts", OFFERED: "placement", CLAIMS: CLAIMS, FULL: FULL, BOUND: BOUND, WORK: BOUND}
_CLAIMED, _REFUSED = (metrics.ATTEMPTS.labels(outcome) for outcome in ("claimed", "refused"))


class RunMetrics:
    """Counts the runs of one scheduler. ``filters``: the names of its filters."""

    def __init__(self, filters: Sequence[str]) -> None:
        self._filters = frozenset(filters)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the run that happens in the context, and count the error that ends it."""
        start = perf_counter()
        try:
            yield
        except BadRequestSpec:
            metrics.DECISIONS.labels("invalid").inc()
            raise
        except Exception:
            metrics.DECISIONS.labels("failed").inc()
            raise
        finally:
            metrics.DECISION_DURATION.observe(perf_counter() - start)

    def decided(self, outcome: Outcome) -> None:
        """Count a run that came to an outcome."""
        if not counting():
            return
        result = "placed" if outcome.cause is None else "partly" if outcome.destinations else "refused"
        metrics.DECISIONS.labels(result).inc()
        if outcome.cause is not None:
            metrics.REFUSALS.labels(self._cause(outcome.cause)).inc()
        refused = sum(tried.refusal is not None for tried in outcome.tries)
        _REFUSED.inc(refused)
        _CLAIMED.inc(len(outcome.tries) - refused)
        for name, removed in removed_by(outcome.steps, self._filters).items():
            metrics.REMOVED_HOSTS.labels(name).inc(removed)
        metrics.OFFERED_HOSTS.inc(sum(step.left for step in outcome.steps if step.name == OFFERED))

    def _cause(self, cause: str) -> str:
        return _CAUSES.get(cause) or (cause if cause in self._filters else OTHER)


def removed_by(steps: Sequence[Step], filters: frozenset[str]) -> Counter[str]:
    """Return the number of hosts that each filter removed, given the number that each step left."""
    removed: Counter[str] = Counter()
    for before, step in pairwise(steps):
        if step.name in filters:
            removed[step.name] += before.left - step.left
    return removed
