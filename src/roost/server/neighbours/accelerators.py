"""Device profiles and accelerator requests, as Cyborg's API 2 has them.

Cyborg learns the devices of hosts from its agents. Here the devices of a provider are the numbers from 0: the
claim in placement has checked that a device is left before a request is bound to one.
"""

import re
import uuid as uuids
from itertools import count
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from sqlalchemy.engine import Connection

from roost.server.neighbours.errors import InUse, Missing, Wrong
from roost.server.neighbours.store import (
    Resource,
    ResourceKind,
    add,
    change,
    every,
    find,
    release_units,
    remove,
    take_unit,
)

_Name = Annotated[str, Meta(min_length=1, max_length=255)]
_KEY: Final = re.compile("(resources|trait):[A-Z0-9_]{1,255}|accel:.+")

INITIAL: Final = "Initial"
BOUND: Final = "Bound"

MOST_DEVICES: Final = 64
"""Most devices of one group of a profile; a profile with more is refused."""


class DeviceProfile(msgspec.Struct, forbid_unknown_fields=True):
    """A device profile. Each group has traits that a provider must have, and a number of its devices."""

    name: _Name
    groups: Annotated[list[dict[str, str]], Meta(min_length=1, max_length=16)]
    uuid: str = ""
    description: str | None = None

    def __post_init__(self) -> None:
        for group in self.groups:
            for key, value in group.items():
                if not _KEY.fullmatch(key):
                    raise ValueError(f"{key} is no key of a group of a device profile")
                if key.startswith("trait:") and value not in ("required", "forbidden"):
                    raise ValueError(f"{key}: {value} is neither required nor forbidden")
                if key.startswith("resources:") and not 1 <= int(value) <= MOST_DEVICES:
                    raise ValueError(f"{key}: {value} is not between 1 and {MOST_DEVICES}")


class Arq(msgspec.Struct):
    """An accelerator request: one device of one group of a profile, bound to an instance or not."""

    uuid: str
    device_profile_name: str
    device_profile_group_id: int
    state: str = INITIAL
    hostname: str | None = None
    device_rp_uuid: str | None = None
    instance_uuid: str | None = None
    attach_handle_type: str | None = None
    attach_handle_uuid: str | None = None
    attach_handle_info: dict[str, str] = {}


class WantedArqs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for the devices of a profile."""

    device_profile_name: _Name


class Patch(msgspec.Struct, forbid_unknown_fields=True):
    """A change of one field, as in RFC 6902."""

    path: str
    op: str
    value: str | None = None


PROFILE: Final = ResourceKind("device profile", DeviceProfile, "ResourceNotFound")
ARQ: Final = ResourceKind("accelerator request", Arq, "ResourceNotFound")
_FIELDS: Final = ("hostname", "device_rp_uuid", "instance_uuid")


def add_profile(connection: Connection, profile: DeviceProfile) -> Resource:
    """Add a device profile. Raises `InUse` if another one has its name."""
    uuid = str(uuids.uuid4())
    if take_unit(connection, "device profiles", [profile.name], uuid) is None:
        raise InUse(f"there is a device profile {profile.name}", "DeviceProfileAlreadyExists")
    profile = msgspec.structs.replace(profile, uuid=uuid)
    return add(connection, PROFILE, uuid, profile, None, "")


def remove_profile(connection: Connection, uuid: str) -> None:
    """Remove a device profile. Raises `Missing`, and `InUse` if there are requests of it."""
    find(connection, PROFILE, uuid, locked=True)
    if every(connection, ARQ, parent=uuid):
        raise InUse(f"there are accelerator requests of device profile {uuid}", "DeviceProfileInUse")
    remove(connection, PROFILE, uuid)


def add_arqs(connection: Connection, name: str) -> list[Resource]:
    """Make an accelerator request for each device of a profile. Raises `Missing`."""
    named = [each.value for each in every(connection, PROFILE) if each.value.name == name]
    if not named:
        raise Missing(f"device profile {name} could not be found", "ResourceNotFound")
    profile = find(connection, PROFILE, named[0].uuid, locked=True).value
    made = []
    for number, group in enumerate(profile.groups):
        devices = sum(int(value) for key, value in group.items() if key.startswith("resources:"))
        for _ in range(devices):
            arq = Arq(str(uuids.uuid4()), name, number)
            made.append(add(connection, ARQ, arq.uuid, arq, profile.uuid, ""))
    return made


def patch_arqs(connection: Connection, patches: dict[str, list[Patch]]) -> None:
    """Bind accelerator requests to an instance on a host, or unbind them: all of them, or none.

    Raises `Missing`, `Wrong`, and `InUse` for a request that is bound to another instance.
    """
    for uuid in sorted(patches):
        found = find(connection, ARQ, uuid, locked=True)
        arq: Arq = found.value
        wanted = {name: getattr(arq, name) for name in _FIELDS}
        for patch in patches[uuid]:
            name = patch.path.removeprefix("/")
            if name not in _FIELDS or patch.op not in ("add", "remove"):
                raise Wrong(f"accelerator request {uuid}: {patch.op} {patch.path} is not supported")
            if patch.op == "add" and not patch.value:
                raise Wrong(f"accelerator request {uuid}: {patch.path} has no value")
            wanted[name] = patch.value if patch.op == "add" else None
        given = [value for value in wanted.values() if value is not None]
        if given and len(given) < len(_FIELDS):
            raise Wrong(f"accelerator request {uuid}: {', '.join(_FIELDS)} go together")
        if arq.state == BOUND and given and wanted["instance_uuid"] != arq.instance_uuid:
            raise InUse(f"accelerator request {uuid} is bound to {arq.instance_uuid}", "ARQInUse")
        _bind(connection, arq, found.revision, wanted)


def remove_arqs(connection: Connection, arqs: list[str]) -> None:
    """Remove accelerator requests and free their devices. Unknown ones are ignored."""
    for uuid in arqs:
        remove(connection, ARQ, uuid)


def remove_arqs_of(connection: Connection, instance: str) -> None:
    """Remove all accelerator requests of an instance."""
    remove_arqs(connection, [each.value.uuid for each in every(connection, ARQ, instance=instance)])


def _bind(connection: Connection, arq: Arq, revision: int, wanted: dict[str, str | None]) -> None:
    provider = wanted["device_rp_uuid"]
    if (arq.device_rp_uuid, arq.instance_uuid) == (provider, wanted["instance_uuid"]):
        return
    release_units(connection, arq.uuid)
    fresh = Arq(arq.uuid, arq.device_profile_name, arq.device_profile_group_id)
    if provider is not None:
        number = take_unit(connection, provider, map(str, count()), arq.uuid)
        fresh = msgspec.structs.replace(
            fresh,
            **wanted,
            state=BOUND,
            attach_handle_type="NUMBER",
            attach_handle_uuid=arq.uuid,
            attach_handle_info={"provider": provider, "device": str(number)},
        )
    change(connection, ARQ, arq.uuid, fresh, revision, fresh.instance_uuid or "")
