"""Filters and weighers that are asked about one host at a time, in the manner of Nova's.

A class with ``host_passes(host_state, spec)`` is a filter, one with ``_weigh_object(host_state, spec)`` a
weigher. Such a class costs a call for each host of each request, so that a class with ``mask`` or ``raw``
is better on a large fleet. It may look at anything, so that its answers are not kept.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.host_state import HostState
from roost.scheduler.plugins.plain_spec import PlainSpec

if TYPE_CHECKING:  # the options that a question has find plugins by name
    from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class PlainFilter:
    """A filter that asks a plain one about each host.

    ``RUN_ON_REBUILD`` and ``run_filter_once_per_request`` of the plain one mean what they mean to Nova.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.depends_on_claims = not getattr(plain, "run_filter_once_per_request", False)
        self.runs_on_rebuild = bool(getattr(plain, "RUN_ON_REBUILD", False))
        if hasattr(plain, "reads"):
            self.reads = plain.reads
        self._passes = plain.host_passes

    def mask(self, hosts: HostView, request: "SchedulingRequest", progress: "GroupPlacement") -> Bools | None:
        spec = PlainSpec(request, hosts.table, progress)
        passing = (bool(self._passes(HostState(hosts, position), spec)) for position in range(len(hosts)))
        return np.fromiter(passing, np.bool_, len(hosts))


class PlainWeigher:
    """A weigher that asks a plain one about each host.

    ``minval`` of the plain one means what it means to Nova. No number is greater than its ``maxval``. Its
    method ``weight_multiplier`` gives the multiplier of each host. Without one the multiplier is an option,
    and ``multiplier_key`` and ``default_multiplier`` may be set.
    """

    def __init__(self, plain: Any) -> None:
        self.name = type(plain).__name__
        self.multiplier_key = multiplier_key_of(type(plain))
        self.default_multiplier = float(getattr(plain, "default_multiplier", 1.0))
        self.minval = getattr(plain, "minval", None)
        if hasattr(plain, "reads"):
            self.reads = plain.reads
        self._weigh = plain._weigh_object
        maxval = getattr(plain, "maxval", None)
        self._most = math.inf if maxval is None else float(maxval)
        if _has_own_multiplier(plain):
            self.multipliers = lambda hosts: _numbers(hosts, plain.weight_multiplier)

    def raw(
        self, hosts: HostView, request: "SchedulingRequest", progress: "GroupPlacement"
    ) -> Float64 | None:
        spec = PlainSpec(request, hosts.table, progress)
        found = _numbers(hosts, lambda host_state: self._weigh(host_state, spec))
        return found if self._most == math.inf else np.minimum(found, self._most)


def _numbers(hosts: HostView, number: Callable[[HostState], Any]) -> Float64:
    found = (float(number(HostState(hosts, position))) for position in range(len(hosts)))
    return np.fromiter(found, np.float64, len(hosts))


def _has_own_multiplier(plain: Any) -> bool:
    """Whether a weigher says its multiplier itself. Nova's base class says 1 for all that do not."""
    own = getattr(type(plain), "weight_multiplier", None)
    return own is not None and own.__module__ != "nova.weights"


def multiplier_key_of(plain: Any) -> str:
    """The name of the multiplier of a plain weigher: ``quiet_weight_multiplier`` of ``QuietWeigher``."""
    key = getattr(plain, "multiplier_key", None)
    return (
        key if isinstance(key, str) else f"{plain.__name__.removesuffix('Weigher').lower()}_weight_multiplier"
    )


def wrapped(found: Any) -> Any:
    """A plugin's class as it is, or what makes a plugin of a plain class."""
    for method, wrapper in (("host_passes", PlainFilter), ("_weigh_object", PlainWeigher)):
        if hasattr(found, method) and not (hasattr(found, "mask") or hasattr(found, "raw")):
            return _Plain(found, wrapper)
    return found


class _Plain:
    """A plain class with what the options read of a plugin's class."""

    def __init__(self, plain: Any, wrapper: Callable[[Any], Any]) -> None:
        self.name = plain.__name__
        self.__module__ = plain.__module__
        self.OPTIONS = getattr(plain, "OPTIONS", None)
        self._plain = plain
        self._wrapper = wrapper
        if wrapper is PlainFilter:
            self.mask = None
        else:
            self.raw = None
            self.multiplier_key = multiplier_key_of(plain)
            self.default_multiplier = float(getattr(plain, "default_multiplier", 1.0))

    def __call__(self, *options: Any) -> Any:
        return self._wrapper(self._plain(*options))
