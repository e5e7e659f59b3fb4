"""The edge of every service (access log, tokens, limits), composed for all programs in the same way."""

from collections.abc import Collection

from roost.ledger import Ledger
from roost.placement.options import PlacementOptions
from roost.process import tracing
from roost.process.loop_watch import running_watch
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import counting
from roost.web.admission import Admission
from roost.web.connections import Cutter
from roost.web.dispatch import Application
from roost.web.edge import Edge, Watch
from roost.web.health import Health
from roost.web.health_operations import health_paths
from roost.web.watches import AccessLines, RequestLines, RequestMetrics, RequestSpans


def with_edge(
    application: Application,
    ledger: Ledger | None,
    options: PlacementOptions,
    health: Health,
    uncounted: Collection[str] = (),
) -> Edge:
    """Put the edge around the application of a service. Parts that ``options`` turn off are left out.

    ``ledger``: the ledger of this process, if it has one. ``uncounted``: the paths of long polls, which do
    not count as requests under way.
    """
    watches: list[Watch] = [RequestLines()]
    if tracing.is_on():
        watches.append(RequestSpans())
    if options.logs.access:
        watches.append(AccessLines())
    if counting():
        watches.append(RequestMetrics())
    admission = Admission(application, options.limits, uncounted=uncounted, cut_soon=Cutter().cut_soon)
    edge = Edge(application, health_paths(health), watches, admission, running_watch())
    if counting():
        _follow(edge, admission)
        if ledger is not None:
            _follow_ledger(ledger)
    return edge


def _follow(edge: Edge, admission: Admission) -> None:
    """Connect the gauges of a service with the numbers that it keeps."""
    metrics.IN_FLIGHT.follow(lambda: edge.in_flight)
    metrics.ADMITTED.labels("read").follow(lambda: admission.load.reads)
    metrics.ADMITTED.labels("write").follow(lambda: admission.load.writes)
    metrics.BODIES.follow(lambda: admission.load.body_bytes)
    metrics.ANSWERS.follow(lambda: admission.load.answer_bytes)


def _follow_ledger(ledger: Ledger) -> None:
    metrics.VERSION.follow(lambda: ledger.status().version)
    metrics.LAG_COMMITS.follow(lambda: ledger.status().lag_commits)
    metrics.LAG_SECONDS.follow(lambda: ledger.status().lag_seconds)
    metrics.WAITING_COMMANDS.follow(lambda: ledger.status().waiting_commands)
