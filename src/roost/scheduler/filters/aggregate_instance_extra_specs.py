"""Hosts whose aggregates match the flavor's extra specs."""

from collections.abc import Hashable
from functools import partial

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.extra_specs import matches
from roost.scheduler.labels import Values
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Looks
from roost.scheduler.question import Progress, Question

SCOPE = "aggregate_instance_extra_specs:"


class AggregateInstanceExtraSpecsFilter:
    """Every extra spec ``aggregate_instance_extra_specs:KEY`` (or an unscoped ``KEY``) must match one of
    the values that the host's aggregates have for ``KEY``. The value ``a,b`` of an aggregate stands for the
    two values ``a`` and ``b``. Operators: see `roost.scheduler.extra_specs`.

    An unscoped key counts only while an aggregate of some host has the key. Extra specs that are meant for
    others (``hw_rng_allowed`` and the like) would exclude every host otherwise.
    """

    name = "AggregateInstanceExtraSpecsFilter"
    looks_at = Looks.REPORT

    def key(self, question: Question) -> Hashable | None:
        return tuple(sorted(_own_specs(question))) or None

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        mask: Bools | None = None
        for full_key, wanted in _own_specs(question):
            labels = hosts.table.metadata(full_key.removeprefix(SCOPE))
            if labels is None:
                if full_key.startswith(SCOPE):
                    return np.zeros(len(hosts), dtype=np.bool_)
                continue
            matched = labels.judged(partial(_any_matches, wanted), hosts.index) > 0
            mask = matched if mask is None else mask & matched
        return mask


def _own_specs(question: Question) -> list[tuple[str, str]]:
    """The extra specs that are meant for this filter, or may be."""
    specs = question.spec.flavor.extra_specs
    return [(key, wanted) for key, wanted in specs.items() if key.startswith(SCOPE) or ":" not in key]


def _any_matches(wanted: str, values: Values) -> bool:
    return any(matches(value.strip(), wanted) for joined in values for value in joined.split(","))


PLUGIN = AggregateInstanceExtraSpecsFilter
