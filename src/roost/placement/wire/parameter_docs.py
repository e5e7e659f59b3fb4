"""The query parameters of the Placement API as OpenAPI has them, by URL and microversion.

`query.PARAMETERS` and `query.GROUP_PARAMETERS` have the parameters and their first versions. The tables here
add the descriptions and, for parameters that are more than a text, a schema.
"""

from typing import Any, Final

import msgspec

from roost.placement.wire.microversions import Since
from roost.placement.wire.query import GROUP_PARAMETERS, PARAMETERS

Parameter = dict[str, Any]

_CANDIDATES: Final = "/allocation_candidates"
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_LONGEST_SUFFIX: Final = 64

_DESCRIPTIONS: Final = {
    "name": "The name.",
    "uuid": "The uuid.",
    "resources": "Amounts by resource class, `CLASS:amount,…`.",
    "required": "Traits, `A,!B` or `in:A,B`; may be repeated.",
    "member_of": "Aggregates, `U`, `in:U,V`, `!U` or `!in:U,V`; may be repeated.",
    "in_tree": "Any provider of a tree: only providers of that tree.",
    "limit": "Candidates at most.",
    "group_policy": "Whether suffixed groups may share a provider; needed if there are several.",
    "root_required": "Traits of the root of the tree, `A,!B`.",
    "same_subtree": "Suffixes of groups whose providers have one of them as ancestor; may be repeated.",
    "associated": "Only traits that a provider has (true) or that none has (false).",
    "project_id": "The project whose usages are asked for.",
    "user_id": "Only consumers of this user.",
    "consumer_type": "Only consumers of this type; `all`: all types in one sum; `unknown`: without a type.",
}
_TRAITS_NAME: Final = "`in:A,B` or `startswith:PREFIX`."
_SCHEMAS: Final[dict[str, Any]] = {
    "resources": {"type": "string", "example": "VCPU:2,MEMORY_MB:1024"},
    "limit": {"type": "integer", "minimum": 1},
    "in_tree": {"type": "string", "format": "uuid"},
    "uuid": {"type": "string", "format": "uuid"},
    "associated": {"type": "boolean"},
}
_REPEATED_SINCE: Final = {
    "required": Since.ANY_TRAITS,
    "member_of": Since.MEMBER_OF_REPEATED,
    "same_subtree": Since.SAME_SUBTREE,
}
_REQUIRED: Final = {("/usages", "project_id")}


def parameters_of(url: str, version: int) -> list[Parameter]:
    """Return the query parameters of GET on a URL of the Placement API at a microversion."""
    if url == _CANDIDATES:
        return candidate_parameters(version)
    return [
        _parameter(url, name, kind, version)
        for name, (since, kind) in PARAMETERS.get(url, {}).items()
        if since <= version
    ]


def candidate_parameters(version: int) -> list[Parameter]:
    """Return the query parameters of GET /allocation_candidates at a microversion."""
    described = [
        _parameter(_CANDIDATES, name, str, version)
        for name, since in GROUP_PARAMETERS.items()
        if since <= version
    ]
    described += [
        _parameter(_CANDIDATES, name, kind, version)
        for name, (since, kind) in PARAMETERS[_CANDIDATES].items()
        if since <= version
    ]
    if version >= Since.ANY_SUFFIX:
        described.append(_suffixed_groups())
    return described


def _parameter(url: str, name: str, kind: Any, version: int) -> Parameter:
    text = _TRAITS_NAME if (url, name) == ("/traits", "name") else _DESCRIPTIONS[name]
    described: Parameter = {"name": name, "in": "query", "description": text}
    if version >= _REPEATED_SINCE.get(name, version + 1):
        return {**described, "schema": _TEXTS, "style": "form", "explode": True}
    if (url, name) in _REQUIRED:
        described["required"] = True
    return {**described, "schema": _SCHEMAS.get(name) or msgspec.json.schema(kind)}


def _suffixed_groups() -> Parameter:
    """Return the parameters of suffixed groups. In OpenAPI only properties have names by pattern."""
    names = "|".join(GROUP_PARAMETERS)
    pattern = f"^({names})[a-zA-Z0-9_-]{{1,{_LONGEST_SUFFIX}}}$"
    return {
        "name": "groups",
        "in": "query",
        "description": (
            "Not a parameter of this name, but those of suffixed groups: `resources_1`, `required_1` and so "
            "on."
        ),
        "schema": {
            "type": "object",
            "maxProperties": 8,
            "patternProperties": {pattern: {"type": "string"}},
            "additionalProperties": False,
        },
        "style": "form",
        "explode": True,
    }
