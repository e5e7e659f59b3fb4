"""Hosts whose aggregates match the flavor's extra specs."""

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.extra_specs import matches
from roost.scheduler.offers import HostView
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

    def mask(self, hosts: HostView, question: Question, progress: Progress) -> Bools:
        mask = np.ones(len(hosts), dtype=np.bool_)
        for full_key, wanted in question.spec.flavor.extra_specs.items():
            key = full_key.removeprefix(SCOPE)
            values = hosts.table.metadata(key)
            if ":" in key or (key == full_key and not values):
                continue
            mask &= np.array(
                [
                    any(matches(value, wanted) for value in values.get(index, ()))
                    for index in hosts.index.tolist()
                ],
                dtype=np.bool_,
            )
        return mask


PLUGIN = AggregateExtraSpecs
