"""From a request spec to the candidate query that placement is asked.

The forms of extra specs are Nova's: ``resources[S]:CLASS=N``, ``trait[S]:NAME=required|forbidden``,
``group_policy=isolate|none``; ``resources:VCPU=0`` takes the flavor's own amount of a class out. A request
that names VCPU or PCPU gets neither from the flavor's number of processors.
"""

import re
from collections import Counter, defaultdict
from typing import get_args

import msgspec

from roost.model.allocation import GroupPolicy
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import Flavor, RequestSpec, ServerGroup
from roost.model.vocabulary import MAX_INT
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters import REQUEST_FILTERS

GROUP_POLICIES: tuple[str, ...] = get_args(GroupPolicy)
"""The policies of server groups. A request with another one is refused."""

_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.+)")
_NAME = re.compile(r"[A-Z0-9_]{1,255}")
_SUFFIX = re.compile(r"[a-zA-Z0-9_-]{0,64}")
_LONGEST_AMOUNT = 20
"""Digits; one of more is costly to read and fits nowhere."""

_KNOWN: dict[bytes, CandidateQuery] = {}
"""What flavors and the like come to, before the request filters: the same few are asked for all the time."""
_MOST_KNOWN = 1_000
_encode = msgspec.msgpack.Encoder().encode


def candidate_query(spec: RequestSpec, table: NodeTable, options: SchedulerOptions) -> CandidateQuery:
    """The query for one instance of ``spec``, request filters applied. Raises `BadRequestSpec`."""
    _check_server_group(spec.group)
    key = _encode((spec.flavor, spec.requested_resources, spec.required_traits, spec.forbidden_traits))
    query = _KNOWN.get(key)
    if query is None:
        query = CandidateQuery(groups=_groups(spec), isolate=_isolate(spec.flavor))
        if len(_KNOWN) == _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = query
    for request_filter in REQUEST_FILTERS:
        query = request_filter(query, spec, table, options)
    return query


def _check_server_group(group: ServerGroup | None) -> None:
    if group is not None and group.policy not in GROUP_POLICIES:
        raise BadRequestSpec(
            f"server group {group.uuid}: policy {group.policy!r} is none of {', '.join(GROUP_POLICIES)}"
        )


def _groups(spec: RequestSpec) -> tuple[RequestGroup, ...]:
    resources, required, forbidden = _extra_specs(spec.flavor)
    named = {name for amounts in resources.values() for name in amounts}
    named.update(name for group in spec.requested_resources for name in group.resources)
    flavor = spec.flavor
    sizes = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.disk_gb}
    if "PCPU" in named:
        named.add("VCPU")
    own = {name: amount for name, amount in sizes.items() if name not in named}
    resources[""] = {**own, **resources[""]}
    required[""] |= spec.required_traits
    forbidden[""] |= spec.forbidden_traits
    groups = [
        RequestGroup(
            resources={name: amount for name, amount in resources[suffix].items() if amount},
            suffix=suffix,
            required=all_of(*sorted(required[suffix])),
            forbidden=frozenset(forbidden[suffix]),
        )
        for suffix in sorted(resources.keys() | required.keys() | forbidden.keys())
    ]
    groups = [group for group in groups if group.resources or group.required or group.forbidden]
    groups.extend(spec.requested_resources)
    if not groups:
        raise BadRequestSpec(f"flavor {flavor.name} asks for no resources")
    for suffix, count in Counter(group.suffix for group in groups).items():
        if count > 1:
            raise BadRequestSpec(f"two request groups have the suffix {suffix!r}")
    for group in groups:
        _check(group)
    return tuple(groups)


def _check(group: RequestGroup) -> None:
    """Raise `BadRequestSpec` for what placement would refuse, or could never serve."""
    what = f"request group {group.suffix!r}" if group.suffix else "the request"
    if not _SUFFIX.fullmatch(group.suffix):
        raise BadRequestSpec(f"{what}: a suffix is 1 to 64 letters, digits, _ or -")
    if not group.resources:
        raise BadRequestSpec(f"{what} asks for traits or places, but for no resources that have them")
    for name, amount in group.resources.items():
        if not _NAME.fullmatch(name):
            raise BadRequestSpec(f"{what}: {name!r} is no name of a resource class")
        if not 0 < amount <= MAX_INT:
            raise BadRequestSpec(f"{what}: {name}={amount} is not from 1 to {MAX_INT}")
    for trait in frozenset[str]().union(*group.required, group.forbidden):
        if not _NAME.fullmatch(trait):
            raise BadRequestSpec(f"{what}: {trait!r} is no name of a trait")
    for any_of in group.required:
        if any_of <= group.forbidden:
            raise BadRequestSpec(f"{what}: {' or '.join(sorted(any_of))} is both required and forbidden")


def _extra_specs(
    flavor: Flavor,
) -> tuple[defaultdict[str, dict[str, int]], defaultdict[str, set[str]], defaultdict[str, set[str]]]:
    """Resources, required and forbidden traits by suffix."""
    resources: defaultdict[str, dict[str, int]] = defaultdict(dict)
    required: defaultdict[str, set[str]] = defaultdict(set)
    forbidden: defaultdict[str, set[str]] = defaultdict(set)
    for key, value in flavor.extra_specs.items():
        parts = _KEY.fullmatch(key)
        if parts is None:
            continue
        kind, suffix, name = parts[1], parts[2] or "", parts[3]
        if kind == "resources":
            if not value.isdecimal() or len(value) > _LONGEST_AMOUNT:
                raise BadRequestSpec(f"flavor {flavor.name}: {key}={value!r} is not a number")
            resources[suffix][name] = int(value)
        elif value == "required":
            required[suffix].add(name)
        elif value == "forbidden":
            forbidden[suffix].add(name)
        else:
            raise BadRequestSpec(f"flavor {flavor.name}: {key}={value!r} is neither required nor forbidden")
    return resources, required, forbidden


def _isolate(flavor: Flavor) -> bool:
    policy = flavor.extra_specs.get("group_policy", "none")
    if policy not in ("isolate", "none"):
        raise BadRequestSpec(f"flavor {flavor.name}: group_policy={policy!r} is neither isolate nor none")
    return policy == "isolate"
