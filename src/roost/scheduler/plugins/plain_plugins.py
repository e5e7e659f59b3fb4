"""Plain filters and weighers: plugins in Nova's manner, which judge one host at a time.

A class with ``host_passes(host_state, spec)`` is a filter, one with ``_weigh_object(host_state, spec)`` a
weigher. Such a class costs a call for each host of each request, so that a class with ``mask`` or ``raw``
is better on a large fleet. It may read anything, so that its results are not cached.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.host_state import HostState
from roost.scheduler.plugins.plain_spec import PlainSpec
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class PlainFilter:
    """A filter that calls a plain one for each host.

    ``RUN_ON_REBUILD`` and ``run_filter_once_per_request`` of the plain filter have the same meaning as in
    Nova.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.depends_on_claims = not getattr(plain, "run_filter_once_per_request", False)
        self.runs_on_rebuild = bool(getattr(plain, "RUN_ON_REBUILD", False))
        self.reads = getattr(plain, "reads", None)
        self._passes = plain.host_passes

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        spec = PlainSpec(request, hosts.table, progress)
        passing = (bool(self._passes(HostState(hosts, position), spec)) for position in range(len(hosts)))
        return np.fromiter(passing, np.bool_, len(hosts))


class PlainWeigher:
    """A weigher that calls a plain one for each host.

    ``minval`` of the plain weigher has the same meaning as in Nova; numbers above its ``maxval`` are lowered
    to it. Its method ``weight_multiplier`` gives the multiplier of each host. Without that method the
    multiplier is an option, and the weigher may set ``multiplier_key`` and ``default_multiplier``.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.multiplier_key = multiplier_key_of(type(plain))
        self.default_multiplier = float(getattr(plain, "default_multiplier", 1.0))
        self.minval = getattr(plain, "minval", None)
        self.reads = getattr(plain, "reads", None)
        self._weigh = plain._weigh_object
        maxval = getattr(plain, "maxval", None)
        self._most = math.inf if maxval is None else float(maxval)
        if _has_own_multiplier(plain):
            self.multipliers = lambda hosts: _numbers(hosts, plain.weight_multiplier)

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        spec = PlainSpec(request, hosts.table, progress)
        found = _numbers(hosts, lambda host_state: self._weigh(host_state, spec))
        return found if self._most == math.inf else np.minimum(found, self._most)


def _numbers(hosts: HostView, number: Callable[[HostState], Any]) -> Float64:
    found = (float(number(HostState(hosts, position))) for position in range(len(hosts)))
    return np.fromiter(found, np.float64, len(hosts))


def _has_own_multiplier(plain: Any) -> bool:
    """Return whether a weigher defines its own multiplier, not the 1 of Nova's base class."""
    own = getattr(type(plain), "weight_multiplier", None)
    return own is not None and own.__module__ != "nova.weights"


def multiplier_key_of(plain: Any) -> str:
    """Return the multiplier's name of a plain weigher: ``quiet_weight_multiplier`` of ``QuietWeigher``."""
    key = getattr(plain, "multiplier_key", None)
    return (
        key if isinstance(key, str) else f"{plain.__name__.removesuffix('Weigher').lower()}_weight_multiplier"
    )
