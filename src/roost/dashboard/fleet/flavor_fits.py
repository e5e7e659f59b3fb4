"""The hosts that a flavor fits on now, as the scheduler decides: by candidates and by all filters.

The scheduler's own pool of hosts is asked, without weighers and without a claim. Flavors are those of the
newest decisions, or written as amounts: VCPUs, MiB of memory, GiB of disk, such as ``4,8192,20``.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools
from roost.ledger import Ledger
from roost.model.spec import Flavor, RequestSpec
from roost.model.vocabulary import MAX_INT
from roost.placement.errors import PlacementError
from roost.scheduler.errors import SchedulerError
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.request_reader import RequestReader
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

MOST_FLAVORS: Final = 64
"""Flavors whose hosts are kept at most."""

KEPT_SECONDS: Final = 5.0
"""Seconds for which a request is kept: it depends on aggregates and on the time."""

SHARE: Final = 20
"""Hosts are found again after at least so many times the time that it took."""

_AMOUNTS: Final = re.compile(r"\s*(\d{1,10})\s*,\s*(\d{1,10})\s*(?:,\s*(\d{1,10})\s*)?")

Flavors = Callable[[], Awaitable[Sequence[Flavor]]]
"""Returns the flavors that are known by name."""


class _Prepared(NamedTuple):
    """The request for one instance of a flavor; None: there is no such flavor. ``reason``: why not."""

    request: SchedulingRequest | None
    at: float
    reason: str | None = None


class _Found(NamedTuple):
    """The nodes that a flavor fits on, bool by index in the table, and when they may be found again."""

    fits: Bools
    until: float
    version: int
    structure: int


class FlavorFits:
    """Finds the hosts that flavors fit on.

    ``clock``: seconds since the epoch. ``monotonic``: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        ledger: Ledger,
        table: NodeTable,
        options: SchedulerOptions,
        flavors: Flavors,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        plugins = Plugins.enabled(options)
        self._pools = HostPools(table, options, plugins._replace(weighers=()))
        self._gateway = LocalGateway(ledger, self._pools)
        self._reader = RequestReader(self._pools, self._gateway.aggregates)
        self._flavors = flavors
        self._clock = clock
        self._monotonic = monotonic
        self._prepared: dict[str, _Prepared] = {}
        self._found: dict[str, _Found] = {}

    async def names(self) -> list[str]:
        """Return the names of the known flavors."""
        return [each.name for each in await self._flavors()]

    async def prepare(self, text: str) -> str | None:
        """Make the request for a flavor, so that `fits` can be called. Returns why it fits nowhere at all.

        Raises `StorageError`.
        """
        kept = self._prepared.get(text)
        if kept is not None and self._monotonic() - kept.at < KEPT_SECONDS:
            return kept.reason
        prepared = await self._made(text)
        self._prepared.pop(text, None)
        self._prepared[text] = prepared
        while len(self._prepared) > MOST_FLAVORS:
            del self._prepared[next(iter(self._prepared))]
        return prepared.reason

    def fits(self, fleet: Fleet, text: str) -> Bools:
        """Return the nodes that a prepared flavor fits on: bool[size], by index in the node table."""
        table = self._pools.table
        prepared = self._prepared.get(text)
        if prepared is None or prepared.request is None:
            return np.zeros(table.size, dtype=np.bool_)
        began = self._monotonic()
        kept = self._found.get(text)
        same = kept is not None and (kept.version, kept.structure) == (fleet.version, table.structure)
        longer = KEPT_SECONDS if same else 0.0
        if kept is not None and len(kept.fits) == table.size and began < kept.until + longer:
            return kept.fits
        found: Bools = np.zeros(table.size, dtype=np.bool_)
        # A request on which a plugin fails is refused by the scheduler too.
        with suppress(SchedulerError):
            found[self._pools.fitting(fleet, prepared.request)] = True
        ended = self._monotonic()
        self._found.pop(text, None)
        self._found[text] = _Found(found, ended + SHARE * (ended - began), fleet.version, table.structure)
        while len(self._found) > MOST_FLAVORS:
            del self._found[next(iter(self._found))]
        return found

    async def _made(self, text: str) -> _Prepared:
        at = self._monotonic()
        flavor = await self._flavor(text)
        if flavor is None:
            reason = f"No recent decision was about a flavor {text!r}. Amounts can be written as 4,8192,20."
            return _Prepared(None, at, reason)
        spec = RequestSpec(project_id="", user_id="", flavor=flavor)
        try:
            request = await self._reader.derived(HostRequest.new(spec), self._clock())
            await self._gateway.check(request.queries)
            await self._gateway.evaluate(request.queries)
        except (SchedulerError, PlacementError) as error:
            return _Prepared(None, at, f"The flavor {text!r} fits nowhere: {error}")
        return _Prepared(request, at)

    async def _flavor(self, text: str) -> Flavor | None:
        found = next((each for each in await self._flavors() if each.name == text), None)
        written = _AMOUNTS.fullmatch(text)
        if found is not None or written is None:
            return found
        vcpus, memory_mb, disk_gb = (min(int(each or 0), MAX_INT) for each in written.groups())
        return Flavor(text, vcpus, memory_mb, disk_gb)
