"""A host pool that remembers its verdict on each host: the weight, or the step that removed it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.model.record import Step
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.host_pool import OFFERED
from roost.scheduler.request.places import ignored
from roost.scheduler.request.scheduling_request import GroupPlacement

_WEIGHED = -1


class HostVerdict(NamedTuple):
    """The verdict on one host.

    ``step``: the place or filter that removed it, or that of hosts with candidates; None for a host that was
    weighed. ``weight``: of a weighed host. ``rank``: the number of hosts with a greater weight.
    """

    step: str | None
    weight: float | None = None
    rank: int | None = None


class PoolJudgement:
    """The verdicts on all hosts of a pool, before an instance is placed.

    Args:
        index: of the hosts in the node table: intp[n].
        removed: for each host the place in ``steps`` of the step that removed it, -1 for none: int16[n].
        weights: of the hosts, NaN for removed ones: float64[n].
        parts: the parts of the weights by weigher: float64[n].
    """

    def __init__(
        self,
        index: Indexes,
        removed: np.ndarray[tuple[int], np.dtype[np.int16]],
        steps: Sequence[str],
        weights: Float64,
        parts: dict[str, Float64],
    ) -> None:
        self._position = {host: position for position, host in enumerate(index.tolist())}
        self._removed = removed
        self._steps = steps
        self._weights = weights
        self._parts = parts

    def verdict(self, index: int | None) -> HostVerdict:
        """Return the verdict on a host. ``index``: in the node table; None for one that is not there."""
        position = None if index is None else self._position.get(index)
        if position is None:
            return HostVerdict(OFFERED)
        step = int(self._removed[position])
        if step != _WEIGHED:
            return HostVerdict(self._steps[step])
        weight = float(self._weights[position])
        return HostVerdict(None, weight, int(np.count_nonzero(self._weights > weight)))

    def differences(self, better: int, worse: int) -> dict[str, float]:
        """Return by how much each weigher prefers one weighed host to another, both by their index."""
        first, second = self._position[better], self._position[worse]
        return {name: float(part[first] - part[second]) for name, part in self._parts.items()}


class JudgedPool(FreshPool):
    """A `FreshPool` that remembers why each host was not weighed.

    ``judgement``: the verdicts before the first instance; None before the first `ready`.
    """

    judgement: PoolJudgement | None = None

    def ready(self) -> list[Step]:
        if self.judgement is not None:
            return super().ready()
        self._steps: list[str] = []
        self._removed = np.full(self.offered, _WEIGHED, dtype=np.int16)
        steps = super().ready()
        weights = np.full(self.offered, np.nan)
        allowed = np.flatnonzero(self._weights.allowed)
        parts = {}
        for name, part in self._weights.parts().items():
            parts[name] = np.full(self.offered, np.nan)
            parts[name][allowed] = part
        weights[allowed] = self._weights.of_all()
        self.judgement = PoolJudgement(self._source.index, self._removed, self._steps, weights, parts)
        return steps

    def _note(self, gone: Bools, step: str) -> None:
        if gone.any():
            self._steps.append(step)
            self._removed[gone & (self._removed == _WEIGHED)] = len(self._steps) - 1

    def _in_place(self, steps: list[Step]) -> Bools:
        for place in (*ignored(self._request.spec, self._table), *self._request.places):
            self._note(np.isin(self._source.index, place.nodes, invert=place.allowed), place.step)
        return super()._in_place(steps)

    def _filter(
        self,
        remaining: Bools,
        filters: Sequence[tuple[Filter, bool]],
        progress: GroupPlacement,
        steps: list[Step],
    ) -> Bools:
        if self.judgement is not None:
            return super()._filter(remaining, filters, progress, steps)
        for each in filters:
            before = remaining.copy()
            remaining = super()._filter(remaining, [each], progress, steps)
            self._note(before & ~remaining, each[0].name)
        return remaining
