"""Hosts whose aggregates match the flavor's extra specs."""

from functools import partial

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.extra_specs import matches
from roost.scheduler.labels import Values
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Scope
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
    depends_on_claims = False
    scope = Scope.REQUEST

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        mask: Bools | None = None
        for full_key, wanted in question.spec.flavor.extra_specs.items():
            scoped = full_key.startswith(SCOPE)
            if not scoped and ":" in full_key:
                continue
            labels = hosts.table.metadata(full_key.removeprefix(SCOPE))
            if labels is None:
                if scoped:
                    return np.zeros(len(hosts), dtype=np.bool_)
                continue
            matched = labels.judged(partial(_any_matches, wanted), hosts.index) > 0
            mask = matched if mask is None else mask & matched
        return mask


def _any_matches(wanted: str, values: Values) -> bool:
    return any(matches(value.strip(), wanted) for joined in values for value in joined.split(","))


PLUGIN = AggregateInstanceExtraSpecsFilter
