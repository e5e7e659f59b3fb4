"""Nova's objects as oslo.versionedobjects serialises them: names, versions and fields.

An object is ``{"nova_object.name", "nova_object.namespace", "nova_object.version", "nova_object.data",
"nova_object.changes"}``. A field that is not in ``data`` is not set.

Source: ``VersionedObject.obj_to_primitive`` of oslo.versionedobjects 3.12. Versions are those of Nova 34.0.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from roost.scheduler.errors import BadRequestSpec

T = TypeVar("T")

NAME: Final = "nova_object.name"
_NAMESPACE: Final = "nova_object.namespace"
_VERSION: Final = "nova_object.version"
_DATA: Final = "nova_object.data"
_CHANGES: Final = "nova_object.changes"

VERSIONS: Final[Mapping[str, tuple[tuple[int, int], tuple[int, int]]]] = {
    "CellMapping": ((1, 0), (1, 1)),
    "ComputeNode": ((1, 0), (1, 19)),
    "ComputeNodeList": ((1, 0), (1, 17)),
    "Destination": ((1, 0), (1, 4)),
    "Flavor": ((1, 0), (1, 2)),
    "ImageMeta": ((1, 0), (1, 8)),
    "ImageMetaProps": ((1, 0), (1, 44)),
    "InstanceGroup": ((1, 0), (1, 11)),
    "InstancePCIRequest": ((1, 0), (1, 4)),
    "InstancePCIRequests": ((1, 0), (1, 1)),
    "NetworkMetadata": ((1, 0), (1, 0)),
    "NetworkRequest": ((1, 0), (1, 3)),
    "NetworkRequestList": ((1, 0), (1, 1)),
    "RequestGroup": ((1, 0), (1, 3)),
    "RequestLevelParams": ((1, 0), (1, 1)),
    "RequestSpec": ((1, 9), (1, 15)),
    "SchedulerRetries": ((1, 0), (1, 1)),
    "Selection": ((1, 0), (1, 1)),
}
"""The first and the last version of each object that can be read. RequestSpec has a user since 1.9."""


def is_nova_object(data: Mapping[str, Any]) -> bool:
    """Return whether a value is an object of Nova, in any version."""
    return NAME in data


def nova_object(name: str, version: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with all its fields set and marked as changed, as a new object has them."""
    return {
        NAME: name,
        _NAMESPACE: "nova",
        _VERSION: version,
        _DATA: dict(fields),
        _CHANGES: sorted(fields),
    }


class NovaFields:
    """The fields of an object. ``name`` is the object's; ``path`` says where it is, for errors.

    Raises `BadRequestSpec` for another object, a version that cannot be read, and a field of another type.
    """

    def __init__(self, data: object, name: str, path: str) -> None:
        self.path = path
        if not isinstance(data, Mapping) or data.get(NAME) != name or data.get(_NAMESPACE) != "nova":
            raise BadRequestSpec(f"{path} is no {name} of Nova, as oslo.versionedobjects serialises it")
        fields = data.get(_DATA)
        if not isinstance(fields, Mapping):
            raise BadRequestSpec(f"{path}: {_DATA} is missing")
        _check_version(name, data.get(_VERSION), path)
        self._fields = fields

    def get(self, name: str, form: type[T]) -> T | None:
        """Return a field, None if it is not set or is null."""
        value = self._fields.get(name)
        if value is None:
            return None
        # Python's bool is an int, but JSON's booleans are no numbers.
        if not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
            raise BadRequestSpec(f"{self.path}.{name} is {str(value)[:80]!r}, and must be {_WORDS[form]}")
        return value

    def need(self, name: str, form: type[T]) -> T:
        """Return a field that must be set."""
        value = self.get(name, form)
        if value is None:
            raise BadRequestSpec(f"{self.path}.{name} is missing")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is not set."""
        values = self.get(name, list) or []
        for each in values:
            if not isinstance(each, str):
                raise BadRequestSpec(f"{self.path}.{name} has {str(each)[:80]!r}, and must have texts")
        return tuple(values)

    def lists(self, name: str) -> tuple[frozenset[str], ...]:
        """Return a list of lists of texts, as sets; empty if it is not set."""
        values = self.get(name, list) or []
        for each in values:
            if not isinstance(each, list) or not all(isinstance(text, str) for text in each):
                raise BadRequestSpec(f"{self.path}.{name} must have lists of texts")
        return tuple(map(frozenset, values))

    def object(self, name: str, kind: str) -> "NovaFields | None":
        """Return an object in a field; None if it is not set or is null."""
        value = self._fields.get(name)
        return None if value is None else NovaFields(value, kind, f"{self.path}.{name}")

    def objects(self, name: str, kind: str) -> "list[NovaFields]":
        """Return a list of objects in a field; empty if it is not set."""
        values = self.get(name, list) or []
        return [NovaFields(each, kind, f"{self.path}.{name}[{n}]") for n, each in enumerate(values)]

    def all(self) -> Mapping[str, Any]:
        """Return all fields as they are."""
        return self._fields


_WORDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}


def _check_version(name: str, version: object, path: str) -> None:
    least, most = VERSIONS[name]
    major, _, minor = str(version).partition(".")
    if major.isdecimal() and minor.isdecimal() and least <= (int(major), int(minor)) <= most:
        return
    lowest, highest = (".".join(map(str, each)) for each in (least, most))
    raise BadRequestSpec(f"{path} has version {version}; {name} can be read from {lowest} to {highest}")
