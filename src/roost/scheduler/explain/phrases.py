"""The words of conditions: hosts that meet one, and what a near miss lacks."""

import msgspec

from roost.fleet import Fleet
from roost.fleet.constraint import (
    FORBIDDEN,
    FORBIDDEN_AGGREGATES,
    IN_TREE,
    ISOLATE,
    ISOLATED,
    MEMBER_OF,
    REQUIRED,
    RESOURCES,
    ROOT_FORBIDDEN,
    ROOT_REQUIRED,
    SAME_SUBTREE,
    TOGETHER,
    Constraint,
)
from roost.fleet.near_misses import NearMiss
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.demand.wanted_hardware import WORDS
from roost.scheduler.request.demand.wanted_hardware import listed as listed
from roost.scheduler.request.scheduling_request import SchedulingRequest

_SINGULAR = {"have": "has", "are": "is", "pass": "passes", "fit": "fits"}

_PLACES = {
    "ignore_hosts": "are none of the ignored hosts",
    "retried_hosts": "are none of the hosts that have failed the request",
    "force_hosts": "are the host that the request names",
    "force_nodes": "are the node that the request names",
    "requested_destination": "are the requested destination",
    "requested_cell": "are in the requested cell",
    "aggregates": "are in the aggregates that the request is limited to",
}

_REST = {"ComputeFilter": "are up"}
"""The hosts that pass a filter, of those that meet the constraint that stands for a part of it."""

_FILTERS = {
    "ComputeFilter": "are enabled and up",
    "ServerGroupAntiAffinityFilter": "have room for another member of the server group (anti-affinity)",
    "ServerGroupAffinityFilter": "are where the members of the server group (affinity) are",
}


def met_filter(name: str, request: SchedulingRequest, *, repeats: bool = False) -> str:
    """Return in words which hosts pass a filter; they follow a plural subject: ``are enabled and up``.

    ``repeats``: a constraint of the query stands for a part of it.
    """
    if repeats and name in _REST:
        return _REST[name]
    if name == "AvailabilityZoneFilter":
        return met_zone(request.spec.availability_zone or "")
    if name in WORDS:
        return WORDS[name](request)
    return _FILTERS.get(name, f"pass {name}")


def met_place(step: str) -> str:
    """Return in words which hosts a place that the request names allows, as `met_filter`."""
    return _PLACES.get(step, f"are allowed by {step}")


def singular(words: str) -> str:
    """Return the words for a singular subject: ``has 8 VCPU free``."""
    verb, _, rest = words.partition(" ")
    return f"{_SINGULAR[verb]} {rest}"


def negated(words: str) -> str:
    """Return the negated words for a singular subject: ``does not have 8 VCPU free``."""
    verb, _, rest = words.partition(" ")
    if verb != "are":
        return f"does not {verb} {rest}"
    return f"is one {rest.removeprefix('none ')}" if rest.startswith("none of") else f"is not {rest}"


def zone_of(constraint: Constraint, request: SchedulingRequest, table: NodeTable) -> str | None:
    """Return the availability zone whose aggregates a constraint asks for, if it is the request's."""
    zone = request.spec.availability_zone
    if constraint.kind != MEMBER_OF or zone is None:
        return None
    return zone if frozenset(constraint.names) == table.aggregates_with(AVAILABILITY_ZONE, zone) else None


def with_aggregates(constraint: Constraint, table: NodeTable) -> Constraint:
    """Return a constraint with the names of host aggregates in place of their uuids, to be shown."""
    if constraint.kind not in (MEMBER_OF, FORBIDDEN_AGGREGATES):
        return constraint
    names = tuple(table.aggregate_name(each) or each for each in constraint.names)
    return msgspec.structs.replace(constraint, names=names)


def with_names(constraint: Constraint, fleet: Fleet) -> Constraint:
    """Return a constraint with the names of providers in place of their uuids, to be shown."""
    if constraint.kind != IN_TREE:
        return constraint
    names = tuple(fleet.name(fleet.row(each)) if each in fleet else each for each in constraint.names)
    return msgspec.structs.replace(constraint, names=names)


def met_constraint(constraint: Constraint, *, in_trees: bool) -> str:
    """Return in words which hosts meet a constraint of the query, as `met_filter`.

    ``in_trees``: True if some host has several providers.
    """
    names = " or ".join(constraint.names)
    kind = constraint.kind
    if kind in (FORBIDDEN, ROOT_FORBIDDEN) and constraint.names == (DISABLED_TRAIT,):
        return "are enabled"
    where = f" for group {constraint.group}" if constraint.group else ""
    if constraint.is_amount:
        one = " on one provider" if in_trees and kind == RESOURCES else ""
        return f"have {constraint.amount} {names} free{one}{where}"
    words = _CONSTRAINTS.get(kind, "have a provider")
    return words.format(names=names, groups=", ".join(constraint.names)) + where


def met_constraint_in_public(constraint: Constraint, *, in_trees: bool) -> str:
    """Return `met_constraint` for the project, without names of hosts and aggregates.

    An administrator or a filter may have put these names into the request.
    """
    if constraint.kind in (IN_TREE, MEMBER_OF, FORBIDDEN_AGGREGATES):
        return "are where the request may be placed"
    return met_constraint(constraint, in_trees=in_trees)


def met_zone(zone: str) -> str:
    """Return in words which hosts are in an availability zone, as `met_filter`."""
    return f"are in the availability zone {zone}"


def without_constraint(constraint: Constraint) -> str:
    """Return in words a request without a constraint."""
    if constraint.names == (DISABLED_TRAIT,):
        return "with disabled hosts"
    if constraint.kind == IN_TREE:
        return f"without the place {' or '.join(constraint.names)}"
    if constraint.kind == MEMBER_OF:
        return f"without the aggregate {' or '.join(constraint.names)}"
    return f"without {constraint}"


_CONSTRAINTS = {
    REQUIRED: "have the trait {names}",
    FORBIDDEN: "are without the trait {names}",
    MEMBER_OF: "are in the aggregate {names}",
    FORBIDDEN_AGGREGATES: "are outside of the aggregate {names}",
    IN_TREE: "are in the tree of {names}",
    ROOT_REQUIRED: "have the trait {names} at the root",
    ROOT_FORBIDDEN: "are without the trait {names} at the root",
    SAME_SUBTREE: "have the groups {groups} in one subtree",
    ISOLATE: "have a provider for each group by itself",
    ISOLATED: "have a provider for each of the groups {groups} by itself",
    TOGETHER: "have all that is asked for at once",
}

_LACKS = {
    REQUIRED: "lacks the trait {names}",
    FORBIDDEN: "has the forbidden trait {names}",
    MEMBER_OF: "is not in the aggregate {names}",
    FORBIDDEN_AGGREGATES: "is in the forbidden aggregate {names}",
    IN_TREE: "is not in the tree of {names}",
    ROOT_REQUIRED: "lacks the trait {names} at its root",
    ROOT_FORBIDDEN: "has the forbidden trait {names} at its root",
    SAME_SUBTREE: "has no common subtree for the groups {groups}",
    ISOLATE: "has no provider for each group by itself",
    ISOLATED: "has no provider for each of the groups {groups} by itself",
}


def lack_of(miss: NearMiss, fleet: Fleet, table: NodeTable) -> str:
    """Return in words what the host of a near miss of the query lacks."""
    constraint = with_aggregates(with_names(miss.constraint, fleet), table)
    names = " or ".join(constraint.names)
    on = ""
    if miss.provider is not None and miss.provider != miss.root:
        on = f" on {fleet.name(fleet.row(miss.provider))}"
    if not constraint.is_amount:
        if constraint.names == (DISABLED_TRAIT,):
            return "is disabled"
        return _LACKS[constraint.kind].format(names=names, groups=", ".join(constraint.names)) + on
    wanted, free = constraint.amount, miss.free or 0
    if miss.unit is None:
        return f"has {free} of the {wanted} {names} wanted{on}"
    return f"has an inventory whose {miss.unit} forbids {wanted} {names}{on}"
