"""Microversions: their header, values that depend on them, and the first one of each feature.

A version is written here as its minor number, 27 for 1.27: the major number is always 1.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from roost.web import request
from roost.web.dispatch import Message
from roost.web.errors import BadRequest, NotAcceptable

T = TypeVar("T")

LATEST: Final = 39
HEADER: Final = "openstack-api-version"
SERVICE: Final = "placement"

_REMEMBERED = 1_000
"""Headers whose versions are cached. Clients send the same few again and again."""

_LONGEST_REMEMBERED = 100
"""Characters of a header. A longer one is not cached."""


class Since:
    """The first version of each feature that is in no table of operations, bodies or parameters."""

    PROVIDER_TREE = 14
    CACHE_HEADERS = 15
    SUMMARY_TRAITS = 17
    AGGREGATE_GENERATIONS = 19
    PROVIDER_IN_ANSWER_TO_POST = 20
    FORBIDDEN_TRAITS = 22
    ERROR_CODES = 23
    MEMBER_OF_REPEATED = 24
    RESERVED_MAY_EQUAL_TOTAL = 26
    SUMMARY_OF_ALL_CLASSES = 27
    CANDIDATES_IN_TREES = 29
    FORBIDDEN_AGGREGATES = 32
    ANY_SUFFIX = 33
    SAME_SUBTREE = 36
    PROVIDERS_MOVE = 37
    CONSUMER_TYPES = 38
    ANY_TRAITS = 39


class ByVersion(Generic[T]):
    """A value for each range of versions: ``ByVersion({0: a, 12: b})`` is a up to 1.11 and b from 1.12."""

    def __init__(self, starts: Mapping[int, T]) -> None:
        self._values: list[T] = []
        for version in range(LATEST + 1):
            self._values.append(starts[version] if version in starts else self._values[-1])

    def at(self, version: int) -> T:
        """Return the value at a version."""
        return self._values[version]


def parse_version(header: str | None) -> int:
    """Read the version from a header ``placement X.Y[, service X.Y...]``; without a header, the oldest.

    Raises `BadRequest` for a malformed version, `NotAcceptable` for one that does not exist.
    """
    if header is None:
        return 0
    return _remembered(header) if len(header) <= _LONGEST_REMEMBERED else _parse(header)


def _parse(header: str) -> int:
    text = _of_this_service(header)
    if text is None:
        return 0
    if text == "latest":
        return LATEST
    try:
        major, minor = (int(part) for part in text.split(".", 1))
    except ValueError:
        raise BadRequest(f"Invalid microversion: invalid version string: {text}") from None
    if major != 1 or not 0 <= minor <= LATEST:
        raise NotAcceptable(f"Invalid microversion: Unacceptable version header: {text}")
    return minor


_remembered = lru_cache(_REMEMBERED)(_parse)


def _of_this_service(header: str) -> str | None:
    for part in reversed(header.split(",")):
        service, _, version = part.strip().partition(" ")
        if service.lower() == SERVICE and version:
            return version.strip()
    return None


def version_text(version: int) -> str:
    """Return a version as it is written on the wire."""
    return f"1.{version}"


Response = request.Response


class PlacementRequest(request.Request):
    """A request with its microversion: ``version_asked``, None until the header is read or if it is wrong."""

    __slots__ = ("version_asked",)

    def __init__(self, scope: Message, *args: object, **kwargs: object) -> None:
        super().__init__(scope, *args, **kwargs)
        self.version_asked: int | None = None

    @property
    def version(self) -> int:
        """The microversion; the oldest if ``version_asked`` is None."""
        return self.version_asked or 0
