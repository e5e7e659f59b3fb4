"""From a request spec to the candidate query that placement is asked.

The forms of extra specs are Nova's: ``resources[S]:CLASS=N``, ``trait[S]:NAME=required|forbidden``,
``group_policy=isolate|none``; ``resources:VCPU=0`` takes the flavor's own amount of a class out.
"""

import re
from collections import defaultdict

from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.hosts import HostTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters import REQUEST_FILTERS

_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.+)")


def candidate_query(spec: RequestSpec, table: HostTable, options: SchedulerOptions) -> CandidateQuery:
    """The query for one instance of ``spec``, request filters applied. Raises `BadRequestSpec`."""
    query = CandidateQuery(groups=_groups(spec), isolate=_isolate(spec.flavor))
    if not any(group.resources for group in query.groups):
        raise BadRequestSpec(f"flavor {spec.flavor.name} asks for no resources")
    for request_filter in REQUEST_FILTERS:
        query = request_filter(query, spec, table, options)
    return query


def _groups(spec: RequestSpec) -> tuple[RequestGroup, ...]:
    resources, required, forbidden = _extra_specs(spec.flavor)
    named = {name for amounts in resources.values() for name in amounts}
    named.update(name for group in spec.requested_resources for name in group.resources)
    flavor = spec.flavor
    sizes = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.disk_gb}
    unsuffixed = {name: amount for name, amount in sizes.items() if amount and name not in named}
    unsuffixed.update(resources.pop("", {}))
    unsuffixed = {name: amount for name, amount in unsuffixed.items() if amount}
    groups = []
    if unsuffixed:
        groups.append(
            RequestGroup(
                resources=unsuffixed,
                required=all_of(*sorted(required.pop("", set()) | spec.required_traits)),
                forbidden=frozenset(forbidden.pop("", set()) | spec.forbidden_traits),
            )
        )
    for suffix in sorted(resources.keys() | required.keys() | forbidden.keys()):
        groups.append(
            RequestGroup(
                resources=resources[suffix],
                suffix=suffix,
                required=all_of(*sorted(required[suffix])),
                forbidden=frozenset(forbidden[suffix]),
            )
        )
    groups.extend(spec.requested_resources)
    suffixes = [group.suffix for group in groups]
    for suffix in suffixes:
        if suffixes.count(suffix) > 1:
            raise BadRequestSpec(f"two request groups have the suffix {suffix!r}")
    return tuple(groups)


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
            if not value.isdecimal():
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
