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


class AggregateExtraSpecs:
    """Every extra spec ``aggregate_instance_extra_specs:KEY`` (or an unscoped ``KEY``) must match one of
    the values that the host's aggregates have for ``KEY``. Operators: see `roost.scheduler.extra_specs`.

    Unscoped keys count only where some aggregate has the key at all, so that extra specs meant for
    others (``hw_rng_allowed`` and the like) do not empty the cloud.
    """

    name = "aggregate_extra_specs"
    depends_on_claims = False
    scope = Scope.REQUEST

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools | None:
        mask: Bools | None = None
        for full_key, wanted in question.spec.flavor.extra_specs.items():
            key = full_key.removeprefix(SCOPE)
            values = hosts.table.metadata(key)
            if ":" in key or (key == full_key and values is None):
                continue
            if values is None:
                return np.zeros(len(hosts), dtype=np.bool_)
            matched = values.judged(partial(_any_matches, wanted), hosts.index) > 0
            mask = matched if mask is None else mask & matched
        return mask


def _any_matches(wanted: str, values: Values) -> bool:
    return any(matches(value, wanted) for value in values)


PLUGIN = AggregateExtraSpecs
