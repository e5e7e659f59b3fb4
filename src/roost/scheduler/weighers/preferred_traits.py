"""Prefers hosts with traits that the flavor or the user names."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.keys.key import ANY, Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

SCOPE = "preferred_trait:"
HINT = "preferred_traits"


class PreferredTraitsWeigher:
    """The sum of the numbers of the preferred traits that a host has, in any provider of its tree.

    The extra spec ``preferred_trait:NAME`` gives a trait its number, which is negative for a trait to
    avoid; a trait of the scheduler hint ``preferred_traits`` counts 1. A host without the trait may still
    be used.
    """

    name = "PreferredTraitsWeigher"
    reads = (Key("extra_spec", SCOPE, ANY), Key("hint", HINT))
    multiplier_key = "preferred_traits_weight_multiplier"
    default_multiplier = 1.0
    beyond_nova = True
    looks_at = Looks.TREE

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the traits, each with its number."""
        numbers = dict.fromkeys(request.spec.scheduler_hints.get(HINT, ()), 1.0)
        for key, text in request.spec.flavor.extra_specs.items():
            if key.startswith(SCOPE):
                numbers[key.removeprefix(SCOPE)] = _number(key, text)
        return tuple(sorted(numbers.items())) or None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        numbers = self.key(request)
        if not isinstance(numbers, tuple):
            return None
        total = np.zeros(len(hosts))
        for trait, number in numbers:
            total += number * hosts.with_trait(trait)
        return total


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not -1e300 < number < 1e300:
        raise BadRequestSpec(f"extra spec {key}: {text!r} is not a number to weigh with")
    return number


PLUGIN = PreferredTraitsWeigher
