"""From the weighers' raw numbers to one weight for each host."""

from collections.abc import Sequence

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.offers import HostView
from roost.scheduler.plugins import Weigher
from roost.scheduler.question import Question


def weigh(hosts: HostView, weighers: Sequence[Weigher], question: Question) -> Float64:
    """The sum of multiplier × normalised weight: float64[len(hosts)].

    Each weigher's numbers are stretched to 0..1 between the least and the greatest of the hosts in play;
    where all are equal they count nothing (Nova's rule).
    """
    total = np.zeros(len(hosts))
    for weigher in weighers:
        raw = weigher.raw(hosts, question)
        if raw is None:
            continue
        least, greatest = raw.min(), raw.max()
        if least == greatest:
            continue
        total += _multipliers(hosts, weigher, question) * ((raw - least) / (greatest - least))
    return total


def _multipliers(hosts: HostView, weigher: Weigher, question: Question) -> Float64 | float:
    multiplier = question.options.multipliers.get(weigher.name, weigher.default_multiplier)
    overrides = hosts.table.metadata(weigher.multiplier_key)
    if not overrides:
        return multiplier
    return np.array([_override(overrides.get(index), multiplier) for index in hosts.index.tolist()])


def _override(values: tuple[str, ...] | None, multiplier: float) -> float:
    """The least of the aggregates' values; what is not a number is passed over, as in Nova."""
    numbers = []
    for value in values or ():
        try:
            numbers.append(float(value))
        except ValueError:
            continue
    return min(numbers, default=multiplier)
