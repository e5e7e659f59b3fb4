"""Calls filters and weighers. An error that they raise, or a result of the wrong form, is a `SchedulerFault`.

The fault names plugin and host. A plugin is called for many hosts at once, so the host is found by calling it
again for half of them, then for half of these, and so on.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.model.allocation import Candidate
from roost.model.text import error_text
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import SchedulerError, SchedulerFault
from roost.scheduler.plugins.plugin_class import FILTER, WEIGHER
from roost.scheduler.plugins.plugins import Filter, Named, Plugin, Weigher
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

T = TypeVar("T")


def ask_key(plugin: Plugin, request: SchedulingRequest) -> Hashable | None:
    """Return all parts of the request that a plugin's results depend on; None if it does not apply.

    Raises: `SchedulerFault`.
    """
    try:
        key = plugin.key_of(request)
        hash(key)
    except SchedulerError:
        raise
    except Exception as error:
        raise fault(plugin, None, error) from error
    return key


def verdict(
    plugin: Filter, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
) -> Bools | None:
    """As `ask_filter`, for any request: None also if the filter does not apply to it."""
    judges = ask_key(plugin, request) is not None
    return ask_filter(plugin, hosts, request, progress) if judges else None


def ask_filter(
    plugin: Filter, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
) -> Bools | None:
    """Return the hosts that may be used: bool[len(hosts)]; None if all may. Raises: `SchedulerFault`."""
    if plugin.named is not None:
        named = ask_named(plugin, hosts, request, progress)
        if named is None:
            return None
        there: Bools = np.isin(hosts.index, list(named.hosts))
        return there if named.allowed else ~there

    def ask(some: HostView) -> Bools | None:
        assert plugin.mask is not None
        mask = plugin.mask(some, request, progress)
        if mask is not None and (mask.shape != (len(some),) or mask.dtype != np.bool_):
            raise TypeError(f"a mask of {mask.dtype}{list(mask.shape)} for {len(some)} hosts")
        return mask

    return _of_hosts(plugin, hosts, ask)


def ask_named(
    plugin: Filter, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
) -> Named | None:
    """Return the hosts that a filter with ``named`` names. Raises: `SchedulerFault`."""
    assert plugin.named is not None
    try:
        return plugin.named(hosts, request, progress)
    except SchedulerError:
        raise
    except Exception as error:
        raise fault(plugin, None, error) from error


def ask_weigher(
    plugin: Weigher, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement
) -> Float64 | None:
    """Return a number for each host: float64[len(hosts)]; None if the weigher does not apply.

    Raises: `SchedulerFault`, `CannotWeigh`.
    """

    def ask(some: HostView) -> Float64 | None:
        raw = plugin.raw(some, request, progress)
        if raw is not None and np.shape(raw) != (len(some),):
            raise TypeError(f"numbers of the shape {list(np.shape(raw))} for {len(some)} hosts")
        return raw

    return _of_hosts(plugin, hosts, ask)


def ask_multipliers(plugin: Weigher, hosts: HostView) -> Float64:
    """Return the multiplier of each host, of a weigher with ``multipliers``: float64[len(hosts)].

    A number that is not finite is replaced by 0. Raises: `SchedulerFault`.
    """

    def ask(some: HostView) -> Float64:
        assert plugin.multipliers is not None
        found = np.asarray(plugin.multipliers(some), dtype=np.float64)
        if found.shape != (len(some),):
            raise TypeError(f"multipliers of the shape {list(found.shape)} for {len(some)} hosts")
        return found

    return np.nan_to_num(_of_hosts(plugin, hosts, ask), nan=0.0, posinf=0.0, neginf=0.0)


def ask_to_narrow(
    plugin: Filter, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
) -> Sequence[Candidate]:
    """Return the candidates of one host that a filter with ``narrow`` keeps. Raises: `SchedulerFault`."""
    narrow = plugin.narrow
    assert narrow is not None
    return _of_one(plugin, host, lambda: narrow(host, candidates, request))


def ask_to_rank(
    plugin: Weigher, host: OneHost, candidates: Sequence[Candidate], request: SchedulingRequest
) -> Sequence[float] | None:
    """Return a number for each candidate of one host; None if the weigher does not rank them. Raises:
    `SchedulerFault`."""

    def ask() -> Sequence[float] | None:
        assert plugin.rank is not None
        numbers = plugin.rank(host, candidates, request)
        if numbers is not None and len(numbers) != len(candidates):
            raise TypeError(f"{len(numbers)} numbers for {len(candidates)} candidates")
        if numbers is not None and not all(map(math.isfinite, numbers)):
            raise ValueError("a number that is not finite")
        return numbers

    return _of_one(plugin, host, ask)


def fault(plugin: Plugin, host: str | None, error: Exception) -> SchedulerFault:
    """Return the fault for a plugin's error."""
    kind = WEIGHER if isinstance(plugin, Weigher) else FILTER
    where = "" if host is None else f" on host {host}"
    text = f"{type(error).__name__}: {error_text(error)}"
    return SchedulerFault(f"{kind} {plugin.name} failed{where}: {text}")


def _of_hosts(plugin: Plugin, hosts: HostView, ask: Callable[[HostView], T]) -> T:
    try:
        return ask(hosts)
    except SchedulerError:
        raise
    except Exception as error:
        raise fault(plugin, _culprit(hosts, ask), error) from error


def _of_one(plugin: Plugin, host: OneHost, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except SchedulerError:
        raise
    except Exception as error:
        raise fault(plugin, host.name, error) from error


def _culprit(hosts: HostView, ask: Callable[[HostView], object]) -> str | None:
    """Return the name of a host that makes a plugin fail when it is called for that host alone; None without
    any."""
    positions = np.arange(len(hosts))
    while len(positions) > 1:
        half = positions[: len(positions) // 2]
        positions = half if _fails(hosts.some(half), ask) else positions[len(half) :]
    if len(positions) and _fails(hosts.some(positions), ask):
        return hosts.table.hosts[hosts.index.item(positions.item())]
    return None


def _fails(hosts: HostView, ask: Callable[[HostView], object]) -> bool:
    try:
        ask(hosts)
    except Exception:
        # The kind of error does not matter here: the first error is the one that is reported.
        return True
    return False
