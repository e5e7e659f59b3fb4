"""A recorded request with something changed: a constraint left out, another flavor."""

from collections.abc import Sequence

import msgspec

from roost.fleet.constraint import RESOURCES, Constraint, constraints_of
from roost.fleet.constraint import without as query_without
from roost.model.errors import OperatorError
from roost.model.request import CandidateQuery
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.scheduling_request import PlacementQueries

GROUP = "server group"
"""The name by which `Changes.without` leaves out the request's server group."""


class Changes(msgspec.Struct, frozen=True):
    """Changes of a recorded request before it is decided again.

    ``without``: names of constraints to leave out: a filter; a constraint of the query, as an explanation
    names it ("4 VCPU"), or its resource class, trait or aggregate; a step by which the request names places;
    or `GROUP`. ``flavor``: another flavor. ``now``: decide on today's versions.
    """

    without: tuple[str, ...] = ()
    flavor: Flavor | None = None
    now: bool = False


class NoSuchConstraint(OperatorError):
    """The request has no constraint of that name."""


def changed_spec(spec: RequestSpec, changes: Changes) -> RequestSpec:
    """Return the spec with another flavor and without its server group, as far as ``changes`` say so."""
    if changes.flavor is not None:
        spec = msgspec.structs.replace(spec, flavor=changes.flavor)
    if GROUP in changes.without:
        spec = msgspec.structs.replace(spec, group=None)
    return spec


def changed_options(options: SchedulerOptions, changes: Changes) -> SchedulerOptions:
    """Return the options without the filters that ``changes`` leave out."""
    filters = tuple(
        each for each in options.filters if not any(_is_filter(name, each) for name in changes.without)
    )
    return msgspec.structs.replace(options, filters=filters)


def changed_queries(
    asked: PlacementQueries, spec: RequestSpec, filters: Sequence[str], changes: Changes
) -> PlacementQueries:
    """Return the queries and places without the constraints that ``changes`` leave out.

    ``filters``: those of the run; `changed_options` leaves them out.

    Raises:
        NoSuchConstraint: the request has no constraint of a name that is to be left out.
    """
    for name in changes.without:
        fewer = msgspec.structs.replace(
            asked,
            query=_without(asked.query, name),
            fallbacks=tuple(_without(each, name) for each in asked.fallbacks),
            places=tuple(place for place in asked.places if place.step != name),
        )
        is_one = any(_is_filter(name, each) for each in filters) or (name == GROUP and spec.group is not None)
        if fewer == asked and not is_one:
            names = _names(asked, spec, filters)
            raise NoSuchConstraint(f"the request has no constraint {name!r}; it has {', '.join(names)}")
        asked = fewer
    return asked


def _is_filter(name: str, filter_: str) -> bool:
    """Return whether a name is that of a filter of the options. If that is an import path, the steps of a run
    have its last word.
    """
    return name in (filter_, filter_.rpartition(".")[2])


def _names(asked: PlacementQueries, spec: RequestSpec, filters: Sequence[str]) -> Sequence[str]:
    return [
        *map(str, constraints_of(asked.query)),
        *(place.step for place in asked.places),
        *([GROUP] if spec.group is not None else []),
        *filters,
    ]


def _without(query: CandidateQuery, name: str) -> CandidateQuery:
    for constraint in constraints_of(query):
        if name == str(constraint) or constraint.names == (name,):
            left_out = constraint.kind == RESOURCES
            query = _without_amount(query, constraint) if left_out else query_without(query, constraint)
    return query


def _without_amount(query: CandidateQuery, constraint: Constraint) -> CandidateQuery:
    """Return the query without an amount of a resource class; a group that would be empty is removed."""
    groups = []
    for group in query.groups:
        if group.suffix == constraint.group:
            left = {name: amount for name, amount in group.resources.items() if name not in constraint.names}
            group = msgspec.structs.replace(group, resources=left)
            if not left and len(query.groups) > 1:
                continue
        groups.append(group)
    return msgspec.structs.replace(query, groups=tuple(groups))


_NUMBERS = ("vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "swap_mb")


def flavor_from(flavor: Flavor, text: str) -> Flavor:
    """Return a flavor with changes such as ``vcpus=2,hw:cpu_policy=dedicated``.

    A key that is no field of a flavor is an extra spec; an empty value removes it.

    Raises:
        OperatorError: the text does not have this form, or the value of a numeric field is no number.
    """
    fields: dict[str, int] = {}
    extra_specs = dict(flavor.extra_specs)
    for part in text.split(","):
        key, separator, value = part.strip().partition("=")
        if not separator or not key:
            raise OperatorError(f"flavor: {part!r} is not of the form KEY=VALUE")
        if key in _NUMBERS:
            if not value.isdecimal():
                raise OperatorError(f"flavor: {key} is {value!r}, which is not a number")
            fields[key] = int(value)
        elif value:
            extra_specs[key] = value
        else:
            extra_specs.pop(key, None)
    return msgspec.structs.replace(flavor, **fields, extra_specs=extra_specs)
