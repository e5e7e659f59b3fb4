"""The hosts that a filter chooses: by place, state, trait, aggregate and name."""

from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from roost.dashboard.fleet.hosts import FleetHosts, HostsNow
from roost.fleet.columns import Bools
from roost.model.vocabulary import MAX_NAME
from roost.scheduler.nodes.host_states import STATES

NOWHERE: Final = "-"
"""The value of a filter by rack or cell that chooses hosts in no rack, or without a cell."""

MOST_CHOICES: Final = 100
"""Names of a kind that a form offers at most."""

Text = Annotated[str, Meta(max_length=MAX_NAME)]


class HostCriteria(msgspec.Struct, frozen=True, kw_only=True):
    """The criteria of a filter. A host is chosen if it meets all of them; an empty one is met by every host.

    ``trait``: a provider of the host's tree has it. ``aggregate``: the name or uuid of a host aggregate, or
    the uuid of one in placement. ``search``: a part of the name, in capitals or not. ``flavor``: one more
    instance of it fits now, see `FleetHosts.fitting`.
    """

    zone: str = ""
    rack: str = ""
    cell: str = ""
    state: str = ""
    trait: str = ""
    aggregate: str = ""
    search: str = ""
    flavor: str = ""

    @property
    def any(self) -> bool:
        """True if there is a criterion."""
        return self != EVERY_HOST


EVERY_HOST: Final = HostCriteria()


def chosen(now: HostsNow, hosts: FleetHosts, criteria: HostCriteria) -> Bools:
    """Return the hosts that meet the criteria: bool[n]."""
    found = in_place(now, criteria)
    if criteria.state:
        found &= now.states == STATES.index(criteria.state) if criteria.state in STATES else False
    if criteria.trait:
        found &= with_trait(now, criteria.trait)
    if criteria.aggregate:
        found &= in_aggregate(now, criteria.aggregate)
    if criteria.flavor and now.states_known:
        found &= hosts.fitting(now, criteria.flavor)
    if criteria.search:
        wanted = criteria.search.strip().lower()
        found &= np.fromiter((wanted in name for name in hosts.names(now)), dtype=np.bool_, count=len(now))
    return found


def in_place(now: HostsNow, criteria: HostCriteria) -> Bools:
    """Return the hosts in the zone, rack and cell of the criteria: bool[n]."""
    found: Bools = np.ones(len(now), dtype=np.bool_)
    if criteria.zone or criteria.rack or criteria.cell:
        for each in now.layout.groups:
            if not (
                criteria.zone in ("", each.zone)
                and criteria.rack in ("", each.label or NOWHERE)
                and criteria.cell in ("", each.cell or NOWHERE)
            ):
                found[each.first : each.first + each.hosts] = False
    return found


def with_trait(now: HostsNow, trait: str) -> Bools:
    """Return the hosts of which some provider has a trait: bool[n]."""
    fleet = now.fleet
    if fleet is None:
        return np.zeros(len(now), dtype=np.bool_)
    return now.at_roots(fleet.roots(fleet.with_trait(trait).rows()))


def in_aggregate(now: HostsNow, aggregate: str) -> Bools:
    """Return the hosts in a host aggregate, by name or uuid, or in one of placement, by uuid: bool[n]."""
    named = frozenset(each.uuid for each in now.table.all_aggregates() if aggregate in (each.uuid, each.name))
    found = now.at_nodes(now.table.in_aggregates((named,), frozenset())) if named else None
    if found is None:
        found = np.zeros(len(now), dtype=np.bool_)
    if now.fleet is not None:
        found |= now.at_roots(now.fleet.roots(now.fleet.in_aggregate(aggregate).rows()))
    return found


class FilterChoices(msgspec.Struct, frozen=True):
    """The names that a form offers: at most `MOST_CHOICES` of each kind. Others can be typed."""

    classes: tuple[str, ...]
    zones: tuple[str, ...]
    racks: tuple[str, ...]
    cells: tuple[str, ...]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]


def filter_choices(now: HostsNow) -> FilterChoices:
    """Return the names that forms offer: those that hosts have now."""
    groups, fleet = now.layout.groups, now.fleet
    traits = () if fleet is None else sorted(name for name in fleet.traits if len(fleet.with_trait(name)))
    aggregates = (each.name for each in now.table.all_aggregates())
    return FilterChoices(
        tuple(now.classes)[:MOST_CHOICES],
        tuple(sorted({each.zone for each in groups}))[:MOST_CHOICES],
        tuple(sorted({each.label for each in groups if each.label}))[:MOST_CHOICES],
        tuple(sorted({each.cell for each in groups}))[:MOST_CHOICES],
        tuple(traits)[:MOST_CHOICES],
        tuple(aggregates)[:MOST_CHOICES],
    )
