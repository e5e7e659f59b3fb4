"""The part of the edge that measures requests."""

from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import Distribution
from roost.web.observation import Observation


class RequestMetrics:
    """A `roost.web.edge.Watch` that counts each request and its duration, by operation and status."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, int | None], Distribution] = {}

    def begin(self, request: Observation) -> None:
        """Do nothing: a request is counted at its end, and the edge has the number of those in flight."""

    def end(self, request: Observation) -> None:
        """Count the request."""
        key = (request.operation, request.status)
        series = self._series.get(key)
        if series is None:
            status = "none" if request.status is None else str(request.status)
            series = self._series[key] = metrics.REQUEST_DURATION.labels(request.operation, status)
        series.observe(request.seconds)
