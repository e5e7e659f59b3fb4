"""A what-if: a request in a scenario."""

from collections.abc import Mapping

import msgspec

from roost.model.spec import RequestSpec
from roost.model.what_if import Scenario
from roost.scheduler.options import SchedulerOptions


class Supposition(msgspec.Struct, frozen=True):
    """A request, of which up to ``limit`` instances are placed in a scenario.

    ``aggregates``: those of network segments, see `FilterFacts`. ``now``: seconds since the epoch.
    """

    spec: RequestSpec
    options: SchedulerOptions
    limit: int
    now: float
    scenario: Scenario = Scenario()
    aggregates: Mapping[str, frozenset[str]] = {}
