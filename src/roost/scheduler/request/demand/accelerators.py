"""Device profiles as request groups.

Source: ``nova/accelerator/cyborg.py``. Cyborg is not called: the scheduler is given the profiles, or the
request groups made of them.
"""

from collections.abc import Iterator

import msgspec

from roost.model.device_profiles import PROFILE, SUFFIX
from roost.model.request import RequestGroup, all_of
from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request.accelerator_options import Profiles


def with_accelerator_groups(spec: RequestSpec, options: SchedulerOptions) -> RequestSpec:
    """Return the spec with the request groups of its device profiles.

    Groups are named ``device_profile_0`` and so on, with the id of the port behind the number for a port's
    profile. Groups that the spec has already stay as they are. The mappings of the claim tell the provider
    that serves each group.

    Raises:
        BadRequestSpec: there is no profile of a name, or that of a port has several devices.
    """
    named = spec.flavor.extra_specs.get(PROFILE)
    of_ports = [each for each in spec.requested_networks if each.device_profile is not None]
    if not named and not of_ports:
        return spec
    there = {group.suffix for group in spec.requested_resources}
    groups: list[RequestGroup] = []
    if named and f"{SUFFIX}0" not in there:
        groups.extend(profile_groups(named, options.accelerators.profiles, f"flavor {spec.flavor.name}"))
    for port in of_ports:
        owner, profile = port.port_id or "", port.device_profile or ""
        if f"{SUFFIX}0{owner}" in there:
            continue
        found = list(profile_groups(profile, options.accelerators.profiles, f"port {owner}", owner))
        if sum(amount for group in found for amount in group.resources.values()) > 1:
            raise BadRequestSpec(f"port {owner}: device profile {profile!r} has several devices")
        groups.extend(found)
    if not groups:
        return spec
    return msgspec.structs.replace(spec, requested_resources=(*spec.requested_resources, *groups))


def profile_groups(name: str, profiles: Profiles, what: str, owner: str = "") -> Iterator[RequestGroup]:
    """Yield the request groups of a device profile. ``what``: its requester in words; ``owner``: its port.

    Raises `BadRequestSpec` if there is no profile of this name.
    """
    profile = profiles.get(name)
    if profile is None:
        raise BadRequestSpec(f"{what}: {name!r} is none of the device profiles")
    for number, group in enumerate(profile):
        yield RequestGroup(
            resources=group.resources,
            suffix=f"{SUFFIX}{number}{owner}",
            required=all_of(*sorted(group.required)),
            forbidden=group.forbidden,
        )
