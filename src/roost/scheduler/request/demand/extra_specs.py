"""Resources, traits and the group policy that a flavor names by extra specs."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from roost.model.allocation import Resources
from roost.model.spec import Flavor
from roost.scheduler.errors import BadRequestSpec

_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.+)")
_LONGEST_AMOUNT = 20
"""Most digits of an amount. A longer one is costly to read and fits nowhere."""


@dataclass(slots=True)
class NamedGroup:
    """Resources and traits of one request group by extra specs; an amount of 0 removes the class."""

    resources: Resources = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)


def named_groups(flavor: Flavor) -> defaultdict[str, NamedGroup]:
    """Return the groups of ``resources[S]:CLASS`` and ``trait[S]:NAME`` by suffix; "" is the unsuffixed one.

    Raises:
        BadRequestSpec: an amount is not a number, or a trait is neither required nor forbidden.
    """
    groups: defaultdict[str, NamedGroup] = defaultdict(NamedGroup)
    for key, value in flavor.extra_specs.items():
        parts = _KEY.fullmatch(key)
        if parts is None:
            continue
        kind, suffix, name = parts[1], parts[2] or "", parts[3]
        if kind == "resources":
            if not value.isdecimal() or len(value) > _LONGEST_AMOUNT:
                fault = _fault(value)
                raise BadRequestSpec(f"flavor {flavor.name}: {key}={value!r} {fault}")
            groups[suffix].resources[name] = int(value)
        elif value == "required":
            groups[suffix].required.add(name)
        elif value == "forbidden":
            groups[suffix].forbidden.add(name)
        else:
            raise BadRequestSpec(f"flavor {flavor.name}: {key}={value!r} is neither required nor forbidden")
    return groups


def _fault(value: str) -> str:
    """Return the fault of an amount, as the rest of a sentence."""
    if re.fullmatch(r"\s*-\s*[0-9]+(\.[0-9]+)?\s*", value, re.ASCII):
        return "is negative"
    if re.fullmatch(r"\s*\+?[0-9]*\.[0-9]+\s*", value, re.ASCII):
        return "is not a whole number"
    return f"has more than {_LONGEST_AMOUNT} digits" if value.isdecimal() else "is not a number"


def group_policy(flavor: Flavor) -> str | None:
    """Return ``isolate`` or ``none``, None if the flavor has neither. Raises `BadRequestSpec` for others."""
    policy = flavor.extra_specs.get("group_policy")
    if policy not in (None, "isolate", "none"):
        raise BadRequestSpec(f"flavor {flavor.name}: group_policy={policy!r} is neither isolate nor none")
    return policy
