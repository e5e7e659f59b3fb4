"""The PCI devices that a request asks for, by its ports and by the aliases of its flavor.

Source: ``get_pci_requests_from_flavor`` of ``nova/pci/request.py``, and ``create_resource_requests`` of
``nova/network/neutron.py`` for the policies of ports.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, cast, get_args

import msgspec

from roost.fleet.hardware.pci_aliases import requested_by
from roost.fleet.hardware.pci_placement import groups_of
from roost.model.spec import NumaPolicy, PciRequest, RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.demand.flavor_image import FlavorImage

ALIAS: Final = "pci_passthrough:alias"
NUMA_POLICIES: Final[tuple[str, ...]] = get_args(NumaPolicy)
_ID: Final = re.compile("[a-zA-Z0-9_-]{1,56}")
_MOST_DEVICES: Final = 1_000


def pci_requests(spec: RequestSpec, options: SchedulerOptions) -> tuple[PciRequest, ...]:
    """Return all requests for PCI devices: the spec's own, and those of its flavor's aliases, each once.

    The NUMA policy of flavor and image takes precedence over an alias's, that of a port over both.

    Raises:
        BadRequestSpec: the flavor names an alias that is unknown, flavor and image contradict each other, or
            a request is invalid.
    """
    given = spec.pci_requests
    text = spec.flavor.extra_specs.get(ALIAS)
    if not given and not text:
        return ()
    asked = FlavorImage(spec.flavor, spec.image)
    policy = cast(NumaPolicy | None, asked.agreed("pci_numa_affinity_policy", NUMA_POLICIES))
    requests = tuple(
        msgspec.structs.replace(each, numa_policy=policy) if each.numa_policy is None and policy else each
        for each in given
    )
    if text and all(each.alias is None for each in given):
        try:
            requests = (*requested_by(text, options.pci.aliases, policy), *requests)
        except ValueError as error:
            raise BadRequestSpec(f"flavor {spec.flavor.name}: {ALIAS}={text!r}: {error}") from error
    _check(requests)
    return requests


def with_pci_groups(
    spec: RequestSpec, requests: Sequence[PciRequest], options: SchedulerOptions
) -> RequestSpec:
    """Return the spec with request groups for the PCI devices of aliases, by the option ``pci_in_placement``.

    ``requests``: those of `pci_requests`. Raises: `BadRequestSpec`.
    """
    if not requests or not options.pci.in_placement:
        return spec
    try:
        groups = [group for each in requests if each.alias is not None for group in groups_of(each)]
    except ValueError as error:
        raise BadRequestSpec(f"flavor {spec.flavor.name}: {error}") from error
    there = {group.suffix for group in spec.requested_resources}
    return msgspec.structs.replace(
        spec,
        requested_resources=(
            *spec.requested_resources,
            *(group for group in groups if group.suffix not in there),
        ),
        pci_groups=spec.pci_groups.union(group.suffix for group in groups),
    )


def _check(requests: tuple[PciRequest, ...]) -> None:
    for name, times in Counter(each.id for each in requests).items():
        if times > 1:
            raise BadRequestSpec(f"two PCI requests have the id {name!r}")
        if not _ID.fullmatch(name):
            raise BadRequestSpec(f"PCI request {name!r}: an id is 1 to 56 letters, digits, _ or -")
    for each in requests:
        if not 0 < each.count <= _MOST_DEVICES:
            raise BadRequestSpec(
                f"PCI request {each.id}: count {each.count} is not from 1 to {_MOST_DEVICES}"
            )
        if each.numa_policy is not None and each.numa_policy not in NUMA_POLICIES:
            allowed = ", ".join(NUMA_POLICIES)
            raise BadRequestSpec(
                f"PCI request {each.id}: numa_policy {each.numa_policy!r} is none of {allowed}"
            )
