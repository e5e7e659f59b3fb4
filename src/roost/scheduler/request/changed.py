"""A recorded request with something changed: a constraint left out, another flavor."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.fleet.constraint import RESOURCES, Constraint, constraints_of
from roost.fleet.constraint import without as query_without
from roost.model.errors import OperatorError
from roost.model.request import CandidateQuery
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.options import ALL_WEIGHERS, SchedulerOptions
from roost.scheduler.plugins.plugin_names import built_ins_of_nova
from roost.scheduler.request.scheduling_request import PlacementQueries

PLACES = ("ignore_hosts", "force_hosts", "force_nodes")
"""The fields of a spec that name places, each of which `Changes.without` leaves out by its name."""

GROUP = "server group"
"""The name by which `Changes.without` leaves out the request's server group."""


class Changes(msgspec.Struct, frozen=True):
    """Changes of a recorded request before it is decided again.

    ``without``: names of constraints to leave out: a filter; a constraint of the query, as an explanation
    names it ("4 VCPU"), or its resource class, trait or aggregate; a step by which the request names places;
    or `GROUP`; or a weigher. ``flavor``: another flavor. ``now``: decide on today's versions.
    """

    without: tuple[str, ...] = ()
    flavor: Flavor | None = None
    now: bool = False


class NoSuchConstraint(OperatorError):
    """The request has no constraint of that name."""


def changed_spec(spec: RequestSpec, changes: Changes) -> RequestSpec:
    """Return the spec with another flavor, without server group and places, as far as ``changes`` say so."""
    if changes.flavor is not None:
        spec = msgspec.structs.replace(spec, flavor=changes.flavor)
    if GROUP in changes.without:
        spec = msgspec.structs.replace(spec, group=None)
    nothing = {name: type(getattr(spec, name))() for name in PLACES if name in changes.without}
    return msgspec.structs.replace(spec, **nothing) if nothing else spec


def changed_options(options: SchedulerOptions, changes: Changes) -> SchedulerOptions:
    """Return the options without the filters and weighers that ``changes`` leave out."""
    if not changes.without:
        return options

    def left(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in names if not any(_is_plugin(name, each) for name in changes.without))

    return msgspec.structs.replace(
        options, filters=left(options.filters), weighers=left(_weigher_names(options))
    )


def _weigher_names(options: SchedulerOptions) -> Sequence[str]:
    found: list[str] = []
    for name in options.weighers:
        found += built_ins_of_nova() if name == ALL_WEIGHERS else [name]
    return found


def plugins_of(options: SchedulerOptions) -> Sequence[str]:
    """Return the names of all enabled filters and weighers."""
    return [*options.filters, *_weigher_names(options)]


def changed_queries(
    asked: PlacementQueries, spec: RequestSpec, plugins: Sequence[str], changes: Changes
) -> PlacementQueries:
    """Return the queries and places without the constraints that ``changes`` leave out.

    ``plugins``: filters and weighers of the run; `changed_options` leaves them out.

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
        is_one = any(_is_plugin(name, each) for each in plugins) or name in _of_spec(spec)
        if fewer == asked and not is_one:
            names = _names(asked, spec, plugins)
            raise NoSuchConstraint(f"the request has no constraint {name!r}; it has {', '.join(names)}")
        asked = fewer
    return asked


def _is_plugin(name: str, plugin: str) -> bool:
    """Return whether a name is that of a filter or weigher of the options. If that is an import path, the
    steps of a run have its last word.
    """
    return name in (plugin, plugin.rpartition(".")[2])


def _of_spec(spec: RequestSpec) -> Sequence[str]:
    """Return the names of what the spec itself asks for beside the query."""
    return [*([GROUP] if spec.group is not None else []), *(each for each in PLACES if getattr(spec, each))]


def _names(asked: PlacementQueries, spec: RequestSpec, plugins: Sequence[str]) -> Sequence[str]:
    places = (place.step for place in asked.places)
    return list(dict.fromkeys((*map(str, constraints_of(asked.query)), *places, *_of_spec(spec), *plugins)))


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
