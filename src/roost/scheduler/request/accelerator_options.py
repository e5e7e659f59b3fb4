"""Device profiles: the accelerators that flavors and ports ask for by the name of a profile."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from roost.model.allocation import Resources
from roost.model.vocabulary import MAX_INT
from roost.process.options import OptionStruct, option

_KEY: Final = re.compile("(resources|trait):([A-Z0-9_]{1,255})")


class ProfileGroup(msgspec.Struct, frozen=True):
    """The resources and traits that one provider must have for a device profile."""

    resources: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


Profiles = Mapping[str, tuple[ProfileGroup, ...]]
"""The groups of each device profile, by its name."""


class _Written(msgspec.Struct):
    name: str
    groups: list[dict[str, str | int]]


def profiles_from(texts: Iterable[str]) -> dict[str, tuple[ProfileGroup, ...]]:
    """Return the device profiles from JSON objects in Cyborg's form, one each.

    Raises:
        ValueError: an object is invalid, or a name is given twice.
    """
    profiles: dict[str, tuple[ProfileGroup, ...]] = {}
    for text in texts:
        try:
            written = msgspec.json.decode(text, type=_Written)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise ValueError(f"{text!r} is not a JSON object with name and groups: {error}") from error
        if not written.name or not written.groups:
            raise ValueError(f"{text!r} has no name or no groups")
        if written.name in profiles:
            raise ValueError(f"device profile {written.name!r} is given twice")
        profiles[written.name] = tuple(_group(written.name, each) for each in written.groups)
    return profiles


def _profiles(texts: Sequence[str]) -> dict[str, tuple[ProfileGroup, ...]]:
    try:
        return profiles_from(texts)
    except ValueError as error:
        raise ValueError(f"device_profile: {error}") from error


class AcceleratorOptions(OptionStruct, frozen=True, group="accelerators"):
    """``profiles``: the device profiles by name."""

    profiles: dict[str, tuple[ProfileGroup, ...]] = option(
        (),
        name="device_profile",
        parse=_profiles,
        multi=True,
        help="A device profile, which flavors ask for by the extra spec accel:device_profile=NAME and "
        "ports by their device_profile. A JSON object in the form of Cyborg: name, and groups, each with "
        "keys resources:CLASS and trait:NAME; keys that begin with accel: are left to the host.",
    )


def _group(profile: str, written: Mapping[str, Any]) -> ProfileGroup:
    resources: Resources = {}
    traits: dict[str, set[str]] = {"required": set(), "forbidden": set()}
    for key, value in written.items():
        if key.startswith("accel:"):
            continue
        what = f"device profile {profile!r}: {key}={value!r}"
        parts = _KEY.fullmatch(key)
        if parts is None:
            raise ValueError(f"{what} is neither resources:CLASS nor trait:NAME nor accel:")
        if parts[1] == "trait":
            if value not in traits:
                raise ValueError(f"{what} is neither required nor forbidden")
            traits[value].add(parts[2])
            continue
        number = str(value)
        if not number.isdecimal() or len(number) > len(str(MAX_INT)) or not 0 < int(number) <= MAX_INT:
            raise ValueError(f"{what} is not a number from 1 to {MAX_INT}")
        resources[parts[2]] = int(number)
    if not resources:
        raise ValueError(f"device profile {profile!r} has a group without resources")
    return ProfileGroup(resources, frozenset(traits["required"]), frozenset(traits["forbidden"]))
