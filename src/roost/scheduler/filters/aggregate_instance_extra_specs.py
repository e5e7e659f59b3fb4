"""Hosts whose aggregates match the flavor's extra specs."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import words
from roost.scheduler.request.extra_specs import matches
from roost.scheduler.request.keys.key import ANY, UNSCOPED, Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

SCOPE = "aggregate_instance_extra_specs:"


class AggregateInstanceExtraSpecsFilter:
    """Every extra spec ``aggregate_instance_extra_specs:KEY`` (or an unscoped ``KEY``) must match one of
    the values that the host's aggregates have for ``KEY``. The value ``a,b`` of an aggregate stands for the
    two values ``a`` and ``b``. Operators: see `roost.scheduler.request.extra_specs`.

    ``group_policy`` is unscoped, but is for placement. Source: Nova's filter of this name.
    """

    name = "AggregateInstanceExtraSpecsFilter"
    reads = (Key("extra_spec", SCOPE, ANY), Key("extra_spec", "", UNSCOPED))
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the extra specs that the filter reads."""
        return tuple(_wanted(request).items()) or None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        mask: Bools | None = None
        for full_key, wanted in _wanted(request).items():
            labels = hosts.table.metadata(full_key.removeprefix(SCOPE))
            if labels is None:
                return np.zeros(len(hosts), dtype=np.bool_)

            def any_matches(values: tuple[str, ...], wanted: str = wanted) -> bool:
                return any(matches(value, wanted) for value in words(values))

            matched = labels.judged(any_matches, hosts.index) > 0
            mask = matched if mask is None else mask & matched
        return mask


def _wanted(request: SchedulingRequest) -> dict[str, str]:
    return {
        key: wanted
        for key, wanted in request.spec.flavor.extra_specs.items()
        if key.startswith(SCOPE) or (":" not in key and key != "group_policy")
    }


PLUGIN = AggregateInstanceExtraSpecsFilter
