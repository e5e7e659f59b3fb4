"""Aliases: the names by which flavors request PCI devices.

Source: ``nova/pci/request.py``, which reads Nova's option ``[pci] alias``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, get_args

import msgspec

from roost.model.spec import NumaPolicy, PciRequest

_ID: Final = re.compile("[0-9a-fA-F]{4}")
_DEVICE_TYPES: Final = ("type-PCI", "type-PF", "type-VF")
_POLICIES: Final[tuple[NumaPolicy, ...]] = get_args(NumaPolicy)
_TEXTS: Final = ("vendor_id", "product_id", "resource_class", "traits")
_FIELDS: Final = frozenset(
    ("name", "capability_type", "device_type", "numa_policy", "live_migratable", *_TEXTS)
)
_YES: Final = frozenset(("1", "t", "true", "on", "y", "yes"))
_NO: Final = frozenset(("0", "f", "false", "off", "n", "no"))
_LONGEST_NAME: Final = 256


class PciAlias(msgspec.Struct, frozen=True):
    """An alias for the devices that suit one of ``specs``, see `PciRequest`."""

    name: str
    specs: tuple[dict[str, str | None], ...]
    numa_policy: NumaPolicy = "legacy"


Aliases = Mapping[str, PciAlias]
"""Aliases by name."""


def aliases_from(texts: Iterable[str], *, in_placement: bool = False) -> dict[str, PciAlias]:
    """Read aliases from JSON objects in Nova's form, one object in each text.

    ``in_placement``: see `check_aliases`.

    Raises:
        ValueError: an object is invalid, or two contradict each other.
    """
    aliases = merged_aliases(texts)
    check_aliases(aliases, in_placement=in_placement)
    return aliases


def merged_aliases(texts: Iterable[str]) -> dict[str, PciAlias]:
    """Read aliases that `check_aliases` has yet to check.

    Objects with the same name are alternatives; their device types and NUMA policies must be the same.

    Raises:
        ValueError: an object is invalid, or two contradict each other.
    """
    aliases: dict[str, PciAlias] = {}
    for text in texts:
        alias = _alias(text)
        other = aliases.get(alias.name)
        if other is None:
            aliases[alias.name] = alias
            continue
        if other.numa_policy != alias.numa_policy:
            raise ValueError(f"alias {alias.name!r} has two values of numa_policy")
        if other.specs[0].get("dev_type") != alias.specs[0].get("dev_type"):
            raise ValueError(f"alias {alias.name!r} has two values of device_type")
        aliases[alias.name] = msgspec.structs.replace(other, specs=(*other.specs, *alias.specs))
    return aliases


def check_aliases(aliases: Aliases, *, in_placement: bool) -> None:
    """Check that each alias names its devices.

    ``in_placement``: devices are resource providers, so that there is one object a name, and it has a
    ``resource_class`` or both ids.

    Raises:
        ValueError: an alias names none, or too many.
    """
    for name, alias in aliases.items():
        if in_placement and len(alias.specs) > 1:
            raise ValueError(f"alias {name!r} is given twice, and pci_in_placement allows one spec an alias")
        for spec in alias.specs:
            ids = "vendor_id" in spec and "product_id" in spec
            if not ids and not (in_placement and "resource_class" in spec):
                instead = ", or a resource_class" if in_placement else ""
                raise ValueError(f"alias {name!r} needs vendor_id and product_id{instead}")


def _alias(text: str) -> PciAlias:
    try:
        written = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"{text!r} is not a JSON object of texts: {error}") from error
    name = written.get("name", "").strip()
    if not name or len(name) > _LONGEST_NAME:
        raise ValueError(f"{text!r} has no name of 1 to {_LONGEST_NAME} characters")
    if unknown := sorted(written.keys() - _FIELDS):
        raise ValueError(f"alias {name!r}: {', '.join(unknown)} is unknown")
    for field in ("vendor_id", "product_id"):
        if field in written and not _ID.fullmatch(written[field]):
            raise ValueError(f"alias {name!r}: {field} {written[field]!r} is not four hexadecimal digits")
    spec: dict[str, str | None] = {field: written[field] for field in _TEXTS if field in written}
    device_type = written.get("device_type")
    if device_type is not None:
        if device_type not in _DEVICE_TYPES:
            raise ValueError(
                f"alias {name!r}: device_type {device_type!r} is none of {', '.join(_DEVICE_TYPES)}"
            )
        spec["dev_type"] = device_type
    if "live_migratable" in written:
        spec["live_migratable"] = _yes_or_no(name, written["live_migratable"])
    policy = written.get("numa_policy") or "legacy"
    if policy not in _POLICIES:
        raise ValueError(f"alias {name!r}: numa_policy {policy!r} is none of {', '.join(_POLICIES)}")
    if written.get("capability_type", "pci") != "pci":
        raise ValueError(f"alias {name!r}: capability_type {written['capability_type']!r} is not pci")
    return PciAlias(name, (spec,), policy)


def _yes_or_no(name: str, text: str) -> str:
    said = text.strip().lower()
    if said not in _YES | _NO:
        raise ValueError(f"alias {name!r}: live_migratable {text!r} is neither true nor false")
    return "true" if said in _YES else "false"


def requested_by(text: str, aliases: Aliases, policy: NumaPolicy | None = None) -> tuple[PciRequest, ...]:
    """Return the requests of a flavor's ``pci_passthrough:alias``, in the form ``name:count, name:count``.

    ``policy`` overrides those of the aliases. The ids of the requests are ``pci_0``, ``pci_1`` and so on, the
    same for each instance, so that queries for equal flavors are equal.

    Raises:
        ValueError: the text has another form, or there is no such alias.
    """
    requests: list[PciRequest] = []
    for part in text.split(","):
        name, colon, count = (each.strip() for each in part.partition(":"))
        if not colon or not count.isdecimal() or not 0 < len(count) < 5 or not int(count):
            raise ValueError(f"{part.strip()!r} does not have the form name:count")
        alias = aliases.get(name)
        if alias is None:
            raise ValueError(f"{name!r} is none of the aliases in [pci] alias")
        requests.append(
            PciRequest(
                id=f"pci_{len(requests)}",
                count=int(count),
                specs=alias.specs,
                alias=name,
                numa_policy=policy or alias.numa_policy,
            )
        )
    return tuple(requests)
