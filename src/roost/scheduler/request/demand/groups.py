"""Turns a request spec into the request groups of candidate queries.

Source: ``ResourceRequest.from_request_spec`` of ``nova/scheduler/utils.py``, in its order: later steps
override the amounts of earlier ones, and the flavor's own numbers count only for classes that nothing else
names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from roost.fleet.hardware.guest_topology import GuestTopology
from roost.model.allocation import Resources
from roost.model.request import SPLITTABLE, CandidateQuery, RequestGroup, all_of
from roost.model.spec import Flavor, PciRequest, RequestSpec
from roost.model.vocabulary import MAX_INT
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.demand.cpus import Processors, processors
from roost.scheduler.request.demand.features import resources_of_features, traits_of_features
from roost.scheduler.request.demand.flavor_image import FlavorImage
from roost.scheduler.request.demand.guest_topology import guest_topology
from roost.scheduler.request.demand.numa_groups import NumaModel, is_node, near_nodes, numa_groups, page_sizes

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


_NAME = re.compile(r"[A-Z0-9_]{1,255}")
_SUFFIX = re.compile(r"[a-zA-Z0-9_-]{0,64}")
_HYPERTHREADING = "HW_CPU_HYPERTHREADING"


def queries_of(
    spec: RequestSpec,
    numa_model: NumaModel = "objects",
    *,
    vcpu_for_pcpu: bool = True,
    devices: Sequence[PciRequest] = (),
) -> tuple[CandidateQuery, ...]:
    """Return the queries for one instance: the best first, then others whose candidates serve as well.

    Where NUMA nodes are child providers, a request for NUMA nodes asks for each of them, with one query for
    each page size that may serve. Otherwise a request for dedicated processors asks for PCPU, then, with
    ``vcpu_for_pcpu``, for as many VCPU of hosts that do not offer PCPU yet. ``devices``: the PCI devices that
    placement is asked for; where NUMA nodes are child providers there is a query for each way to have the
    devices close to the nodes. Request filters are not applied.

    Raises:
        BadRequestSpec: placement would refuse a query, or flavor and image contradict each other.
    """
    asked = FlavorImage(spec.flavor, spec.image)
    wanted = processors(asked)
    plain = _query(spec, asked, wanted)
    # Read here, so that a bad topology is refused even if the filter of NUMA topologies is not enabled.
    guest = guest_topology(spec.flavor, spec.image)
    queries: list[CandidateQuery] = []
    if numa_model != "objects" and guest is not None:
        for size in page_sizes(guest, spec.flavor.name):
            queries += _near(_query(spec, asked, wanted, guest, size), devices)
    if numa_model != "trees" or guest is None:
        queries.append(_splitting(plain) if numa_model != "objects" and guest is None else plain)
        if wanted.dedicated and vcpu_for_pcpu:
            queries.append(_query(spec, asked, Processors()))
    return tuple(queries)


def _near(query: CandidateQuery, devices: Sequence[PciRequest]) -> list[CandidateQuery]:
    """Return the queries with devices close to the NUMA nodes, as far as the devices' policies ask for it."""
    nodes = [group for group in query.groups if is_node(group)]
    if not devices or not nodes:
        return [query]
    return [
        msgspec.structs.replace(query, same_subtree=(*query.same_subtree, *subtrees))
        for subtrees in near_nodes(nodes, devices)
    ]


def _splitting(query: CandidateQuery) -> CandidateQuery:
    """Return the query with leave to split resources over providers, for a request without NUMA nodes."""
    allowed = msgspec.structs.replace(query, can_split=SPLITTABLE)
    return msgspec.structs.replace(query, can_split=tuple(sorted(allowed.split)))


def _query(
    spec: RequestSpec,
    asked: FlavorImage,
    wanted: Processors,
    guest: GuestTopology | None = None,
    page_size: int | None = None,
) -> CandidateQuery:
    """Return a query. With ``guest`` each cell is a group, in pages of ``page_size`` KiB (None: small)."""
    named = named_groups(spec.flavor)
    suffixed = len(named) - ("" in named)
    unsuffixed = named[""]
    unsuffixed.required |= {
        name.removeprefix("trait:")
        for name, value in spec.image_properties.items()
        if name.startswith("trait:") and value == "required"
    }
    everywhere = {name for group in named.values() for name in group.resources}
    everywhere.update(name for group in spec.requested_resources for name in group.resources)
    cells = () if guest is None else tuple(numa_groups(guest, page_size, everywhere))
    _add_processors(unsuffixed, wanted if guest is None else wanted._replace(vcpus=None, pcpus=None))
    everywhere.update(unsuffixed.resources)
    if "PCPU" in everywhere:
        everywhere.add("VCPU")
    if guest is not None:
        everywhere.update(("VCPU", "PCPU", "MEMORY_MB"))
    for name, amount in _sizes(spec).items():
        if name not in everywhere:
            unsuffixed.resources[name] = amount
    unsuffixed.resources |= resources_of_features(asked)
    unsuffixed.required.update(traits_of_features(asked), spec.required_traits)
    unsuffixed.forbidden |= spec.forbidden_traits
    root_required, root_forbidden = spec.root_required, spec.root_forbidden
    if guest is not None:
        # The processors are in other groups, and this group may be left without resources that have traits.
        _check_traits(
            "the request", [frozenset((each,)) for each in unsuffixed.required], unsuffixed.forbidden
        )
        root_required, root_forbidden = (
            root_required | unsuffixed.required,
            root_forbidden | unsuffixed.forbidden,
        )
        unsuffixed.required, unsuffixed.forbidden = set(), set()
    _check_suffixes([*named, *(group.suffix for group in (*spec.requested_resources, *cells))])
    groups = [_group(suffix, named[suffix]) for suffix in sorted(named)]
    groups = [group for group in groups if group.resources or group.required or group.forbidden]
    groups.extend(spec.requested_resources)
    groups.extend(cells)
    together = frozenset[str]().union(*spec.same_subtree)
    _check(groups, together, spec.flavor.name)
    policy = group_policy(spec.flavor)
    granular = sum(group.granular for group in groups)
    if granular > 1 and policy is None and suffixed > 1:
        raise BadRequestSpec(
            f"flavor {spec.flavor.name} has {suffixed} request groups with suffixes: "
            "set group_policy to none or isolate"
        )
    return CandidateQuery(
        groups=tuple(groups),
        isolate=policy == "isolate",
        same_subtree=spec.same_subtree,
        root_required=frozenset(root_required),
        root_forbidden=frozenset(root_forbidden),
        isolated=frozenset(group.suffix for group in cells) if len(cells) > 1 else frozenset(),
    )


def _add_processors(group: NamedGroup, wanted: Processors) -> None:
    if wanted.vcpus is not None:
        group.resources["VCPU"] = wanted.vcpus
    if wanted.pcpus is not None:
        group.resources["PCPU"] = wanted.pcpus
    if wanted.hyperthreading is not None:
        (group.required if wanted.hyperthreading else group.forbidden).add(_HYPERTHREADING)


def _sizes(spec: RequestSpec) -> Resources:
    """Return the resources of the flavor's own numbers. PCPU replaces VCPU; disks are rounded up to GiB."""
    flavor = spec.flavor
    root = 0 if spec.volume_backed else flavor.disk_gb
    return {
        "VCPU": flavor.vcpus,
        "MEMORY_MB": flavor.memory_mb,
        "DISK_GB": root + flavor.ephemeral_gb - (-flavor.swap_mb // 1024),
    }


def _group(suffix: str, named: NamedGroup) -> RequestGroup:
    return RequestGroup(
        resources={name: amount for name, amount in named.resources.items() if amount},
        suffix=suffix,
        required=all_of(*sorted(named.required)),
        forbidden=frozenset(named.forbidden),
    )


def _check_suffixes(suffixes: Iterable[str]) -> None:
    for suffix, count in Counter(suffixes).items():
        if count > 1:
            raise BadRequestSpec(f"two request groups have the suffix {suffix!r}")


def _check(groups: list[RequestGroup], together: frozenset[str], flavor: str) -> None:
    """Raise `BadRequestSpec` for groups that placement would refuse, or could never serve."""
    if not groups:
        raise BadRequestSpec(f"flavor {flavor} asks for no resources")
    suffixes = {group.suffix for group in groups}
    for suffix in sorted(together):
        if not suffix or suffix not in suffixes:
            raise BadRequestSpec(f"same_subtree names {suffix!r}, which is no suffix of a request group")
    for group in groups:
        _check_group(group, group.suffix in together)
    if not any(group.resources for group in groups):
        raise BadRequestSpec(f"flavor {flavor} asks for no resources")


def _check_group(group: RequestGroup, may_be_empty: bool) -> None:
    what = f"request group {group.suffix!r}" if group.suffix else "the request"
    if not _SUFFIX.fullmatch(group.suffix):
        raise BadRequestSpec(f"{what}: a suffix is 1 to 64 letters, digits, _ or -")
    if not group.resources and not may_be_empty:
        raise BadRequestSpec(f"{what} asks for traits or places, but for no resources that have them")
    for name, amount in group.resources.items():
        if not _NAME.fullmatch(name):
            raise BadRequestSpec(f"{what}: {name!r} is no name of a resource class")
        if not 0 < amount <= MAX_INT:
            raise BadRequestSpec(f"{what}: {name}={amount} is not from 1 to {MAX_INT}")
    for trait in frozenset[str]().union(*group.required, group.forbidden):
        if not _NAME.fullmatch(trait):
            raise BadRequestSpec(f"{what}: {trait!r} is no name of a trait")
    _check_traits(what, group.required, group.forbidden)


def _check_traits(what: str, required: Iterable[frozenset[str]], forbidden: Set[str]) -> None:
    for any_of in required:
        if any_of <= forbidden:
            raise BadRequestSpec(f"{what}: {' or '.join(sorted(any_of))} is both required and forbidden")
