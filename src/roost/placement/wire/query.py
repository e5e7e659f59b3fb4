"""Query strings: the parameters of each microversion, and their conversion to values of the model."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from roost.model.allocation import Resources
from roost.placement.errors import BadRequest
from roost.placement.wire.microversions import PlacementRequest, Since
from roost.placement.wire.uuids import DASHED_UUID, is_uuid_like
from roost.web.query import Parameters, read_parameters

TraitTerms = tuple[tuple[frozenset[str], ...], frozenset[str]]
"""Required traits or aggregates (one of each set must be there), and forbidden ones."""

_Uuid = Annotated[str, Meta(pattern=DASHED_UUID, extra_json_schema={"format": "uuid"})]
_Owner = Annotated[str, Meta(min_length=1, max_length=255)]
_ConsumerType = Annotated[str, Meta(min_length=1, max_length=255, pattern="^[A-Z0-9_]+$|^all$|^unknown$")]
_Limit = Annotated[str, Meta(pattern="^[1-9][0-9]*$")]
# Messages list the values of a Literal in alphabetical order; clients match upstream's order.
_GroupPolicy = Annotated[
    str, Meta(pattern=r"^(none|isolate)\Z", extra_json_schema={"enum": ["none", "isolate"], "pattern": ""})
]

PARAMETERS: dict[str, dict[str, tuple[int, Any]]] = {
    "/resource_providers": {
        "name": (0, str),
        "uuid": (0, _Uuid),
        "member_of": (3, str),
        "resources": (4, str),
        "in_tree": (14, _Uuid),
        "required": (18, str),
    },
    "/traits": {"name": (6, str), "associated": (6, str)},
    "/usages": {
        "project_id": (9, _Owner),
        "user_id": (9, _Owner),
        "consumer_type": (38, _ConsumerType),
    },
    "/allocation_candidates": {
        "limit": (16, _Limit),
        "group_policy": (25, _GroupPolicy),
        "root_required": (35, str),
        "same_subtree": (36, str),
    },
}
"""URL -> parameter -> its first microversion, and the type of its value."""

GROUP_PARAMETERS = {"resources": 10, "required": 17, "member_of": 21, "in_tree": 31}
"""Parameter of a request group of candidates -> its first microversion."""

SUFFIXES = {0: "", 25: "([1-9][0-9]*)?", 33: "([a-zA-Z0-9_-]{1,64})?"}
"""Microversion -> pattern of the suffixes of these parameters from then on."""

_CANDIDATES = "/allocation_candidates"
_REQUIRED = {"/usages": ["project_id"]}
_AMOUNT = re.compile(r"\s*[+-]?[0-9]+\s*")
_LONGEST_AMOUNT = 20
"""Characters of an amount. A longer one is refused: it fits nowhere and is costly to convert."""


def parse_parameters(req: PlacementRequest) -> Parameters:
    """Return the parameters of a request, checked against `PARAMETERS`. Raises `BadRequest`."""
    found = read_parameters(req)
    check_parameters(found, req.uri_template or "", req.version)
    return found


def check_parameters(found: Parameters, url: str, version: int) -> None:
    """Check that ``url`` takes these parameters at a microversion. Raises `BadRequest`."""
    form, group = _form(url, version), _group_name(url, version)
    # Every value of a repeated parameter is checked, also those that do not count.
    for place in range(max(map(len, found.values()), default=1)):
        values = {name: several[min(place, len(several) - 1)] for name, several in found.items()}
        try:
            msgspec.convert({name: each for name, each in values.items() if not group(name)}, form)
        except msgspec.ValidationError as error:
            fault = _describe_error(url, version, values) or error
            raise BadRequest(f"Invalid query string parameters: {fault}") from error


def last(parameters: Mapping[str, list[str]], name: str) -> str | None:
    """Return the last value of a parameter, which is the one that counts; None without the parameter."""
    return parameters[name][-1] if name in parameters else None


def parse_resources(text: str) -> Resources:
    """Parse ``CLASS:amount,...``. Raises `BadRequest`."""
    expected = (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024."
    )
    if not text.strip():
        raise BadRequest(f"{expected} Got: empty string.")
    resources: Resources = {}
    for part in text.split(","):
        name, colon, amount = part.partition(":")
        if not colon or ":" in amount:
            raise BadRequest(f"{expected} Got: {part}.")
        if not _AMOUNT.fullmatch(amount) or len(amount) > _LONGEST_AMOUNT:
            raise BadRequest(f"Requested resource {name} expected positive integer amount. Got: {amount}.")
        if int(amount) < 1:
            raise BadRequest(f"Requested resource {name} requires amount >= 1. Got: {int(amount)}.")
        resources[name] = int(amount)
    return resources


def parse_required(values: list[str], version: int) -> TraitTerms:
    """Parse ``required``: ``A,B``; from 1.22 ``!C``; from 1.39 ``in:A,B``, repeated. Raises `BadRequest`."""
    if version < Since.ANY_TRAITS:
        values = values[-1:]
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required.append(_any_of(value, version))
        else:
            wanted, unwanted = _all_of(value, version >= Since.FORBIDDEN_TRAITS)
            required.extend(frozenset((trait,)) for trait in wanted)
            forbidden.update(unwanted)
    return tuple(required), frozenset(forbidden)


def parse_root_required(value: str) -> tuple[frozenset[str], frozenset[str]]:
    """Parse ``root_required``: traits required and forbidden. Raises `BadRequest`."""
    if value.startswith("in:"):
        _any_of(value, 0)
    required, forbidden = _all_of(value, True)
    return frozenset(required), frozenset(forbidden)


def parse_member_of(values: list[str], version: int, suffix: str = "") -> TraitTerms:
    """Parse ``member_of``: ``U``, ``in:U,V``; from 1.24 repeated, from 1.32 ``!U``, ``!in:U,V``.

    Raises `BadRequest`.
    """
    if len(values) > 1 and version < Since.MEMBER_OF_REPEATED:
        raise BadRequest(f"Multiple member_of{suffix} parameters are not supported")
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        refused = value.startswith("!")
        aggregates = _aggregates(value.removeprefix("!"), value)
        if not refused:
            required.append(aggregates)
            continue
        if version < Since.FORBIDDEN_AGGREGATES:
            raise BadRequest(
                f"Forbidden member_of{suffix} parameters are not supported in the specified microversion"
            )
        forbidden.update(aggregates)
    return tuple(required), frozenset(forbidden)


def parse_in_tree(value: str) -> str:
    """Parse ``in_tree``: the uuid of a provider. Raises `BadRequest`."""
    if not is_uuid_like(value.strip()):
        raise BadRequest(
            "Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. "
            f"Got: {value}"
        )
    return value.strip()


def _any_of(value: str, version: int) -> frozenset[str]:
    form = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'"
    if version < Since.ANY_TRAITS:
        raise BadRequest(
            f"Invalid query string parameters: {form} only supported since microversion 1.39. Got: {value}"
        )
    traits = frozenset(part.strip() for part in value.removeprefix("in:").split(","))
    if "" in traits:
        raise _bad_required("in:HW_CPU_X86_VMX,CUSTOM_MAGIC", f"Got an empty trait in: {value}")
    if any(trait.startswith("!") for trait in traits):
        raise BadRequest(
            f"Invalid query string parameters: {form} does not support forbidden traits. Got: {value}"
        )
    return traits


def _all_of(value: str, forbidding: bool) -> tuple[list[str], list[str]]:
    """Return the required and the forbidden traits of ``A,!B``. Several ``!`` count as one, as upstream."""
    parts = [part.strip() for part in value.split(",")]
    required = [part for part in parts if not part.startswith("!")]
    forbidden = [part.lstrip("!") for part in parts if part.startswith("!")]
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if forbidding else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    if "" in required or "" in forbidden:
        raise _bad_required(form, f"Got an empty trait in: {value}")
    if forbidden and not forbidding:
        raise _bad_required(form, f"Got: {value}")
    return required, forbidden


def _bad_required(form: str, got: str) -> BadRequest:
    return BadRequest(
        f"Invalid query string parameters: Expected 'required' parameter value of the form: {form}. {got}"
    )


def _aggregates(value: str, whole: str) -> frozenset[str]:
    if "," in value and not value.startswith("in:"):
        raise BadRequest(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the "
            f"valid microversion. Got: {whole}"
        )
    aggregates = frozenset(value.removeprefix("in:").split(","))
    wrong = sorted(aggregate for aggregate in aggregates if not is_uuid_like(aggregate))
    if wrong:
        raise BadRequest(
            "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). "
            f"Got: {wrong[0]}"
        )
    return aggregates


@cache
def _form(url: str, version: int) -> type[msgspec.Struct]:
    """Return the type of a query string, without the parameters of granular groups."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (name, kind) if name in _REQUIRED.get(url, ()) else (name, kind | UnsetType, UNSET)
        for name, (since, kind) in PARAMETERS[url].items()
        if since <= version
    ]
    if url == _CANDIDATES and not _suffix(version):
        # Before granular groups there was one group, and it had to have resources.
        fields += [
            (name, str) if name == "resources" else (name, str | UnsetType, UNSET)
            for name in _group_parameters(version)
        ]
    return msgspec.defstruct("Parameters", fields, forbid_unknown_fields=True, kw_only=True)


@cache
def _group_name(url: str, version: int) -> Callable[[str], object]:
    """Return a function that tells whether a name is a parameter of a granular group."""
    patterns = _group_patterns(url, version)
    # The whole name must match: "$" would let a newline at its end through.
    return re.compile("|".join(patterns)).fullmatch if patterns else lambda name: False


def _group_patterns(url: str, version: int) -> list[str]:
    suffix = _suffix(version)
    if url != _CANDIDATES or not suffix:
        return []
    return [f"^{name}{suffix}$" for name in _group_parameters(version)]


def _group_parameters(version: int) -> list[str]:
    return [name for name, since in GROUP_PARAMETERS.items() if since <= version]


def _suffix(version: int) -> str:
    return SUFFIXES[max(since for since in SUFFIXES if since <= version)]


def _describe_error(url: str, version: int, values: Mapping[str, str]) -> str | None:
    from roost.placement.wire.json_schema import describe_error, schema_of

    schema = dict(schema_of(_form(url, version)))
    if patterns := _group_patterns(url, version):
        schema["patternProperties"] = {pattern: {"type": "string"} for pattern in patterns}
    return describe_error(schema, values)
