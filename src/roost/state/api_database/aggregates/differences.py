"""The differences between aggregates in placement and the host aggregates."""

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple


class AggregateDifference(NamedTuple):
    """The aggregates that a provider is to join and those that it is to leave."""

    join: frozenset[str]
    leave: frozenset[str]


def differences(
    wanted: Mapping[str, AbstractSet[str]],
    present: Mapping[str, AbstractSet[str]],
    nodes: AbstractSet[str],
) -> dict[str, AggregateDifference]:
    """Return the aggregates that providers have to join and leave, by provider.

    ``wanted``: the members of each aggregate. ``present``: the providers that each aggregate has in
    placement, for all wanted aggregates and for deleted ones. Only ``nodes``, the root providers of compute
    nodes, leave an aggregate: an operator may have put another provider into it, such as a shared disk.
    """
    join: defaultdict[str, set[str]] = defaultdict(set)
    leave: defaultdict[str, set[str]] = defaultdict(set)
    for aggregate, providers in present.items():
        members = wanted.get(aggregate, frozenset())
        for provider in members - providers:
            join[provider].add(aggregate)
        for provider in (providers - members) & nodes:
            leave[provider].add(aggregate)
    return {
        provider: AggregateDifference(frozenset(join[provider]), frozenset(leave[provider]))
        for provider in sorted(join.keys() | leave.keys())
    }
