"""Hosts that satisfy a query which users write in a hint.

The language of the scheduler hint ``query`` has JSON lists of an operator and its arguments:
``["and", [">=", "$free_ram_mb", 1024], ["in", "$host", "a", "b"]]``. A text that begins with ``$`` names an
attribute of the host, and after dots keys in it. An argument whose attribute is missing is left out.

    =  <  >  <=  >=     the comparison holds between the first argument and each other one
    in                  the first argument is one of the others
    and  or             of all arguments
    not                 one of the arguments is false

Source: ``scheduler/filters/json_filter.py`` of Nova.
"""

import json
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from roost.fleet.columns import Bools
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.plugins.base_classes import hint
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plain_plugins import ATTRIBUTES, HostState
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

Query = list[Any]
Lookup = Callable[[str], Any]
"""The value of a variable such as ``$stats.pci``, None if there is none."""

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_OTHERS: Final = ("in", "not", "and", "or")


def query_of(text: str) -> Query:
    """Read a query. ``[]``, ``null`` and ``""`` are the empty query.

    Raises:
        ValueError: it is no JSON, has an unknown operator, or is nested too deeply.
    """
    try:
        query = json.loads(text)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not query:
        return []
    if not isinstance(query, list):
        raise ValueError("no list")
    _check(query)
    return query


def variables(query: Query) -> Iterator[str]:
    """Yield the variables of a query."""
    for argument in query[1:]:
        if isinstance(argument, list):
            yield from variables(argument)
        elif isinstance(argument, str) and argument.startswith("$"):
            yield argument


def is_true(query: Query, lookup: Lookup) -> bool:
    """Return whether a host satisfies a query. An empty query is satisfied."""
    if not query:
        return True
    arguments = [value for each in query[1:] if (value := _value(each, lookup)) is not None]
    word = query[0]
    if word in _COMPARISONS:
        return _compares(_COMPARISONS[word], arguments)
    if word == "in":
        return len(arguments) > 1 and arguments[0] in arguments[1:]
    if word == "not":
        return any(not argument for argument in arguments)
    return (any if word == "or" else all)(arguments)


def _value(argument: Any, lookup: Lookup) -> Any:
    if isinstance(argument, list):
        return is_true(argument, lookup)
    if isinstance(argument, str):
        return lookup(argument) if argument.startswith("$") else argument or None
    return argument


def _compares(comparison: Callable[[Any, Any], bool], arguments: Sequence[Any]) -> bool:
    """Return whether a comparison holds; False if values cannot be compared, as a number and a text."""
    try:
        return len(arguments) > 1 and all(comparison(arguments[0], each) for each in arguments[1:])
    except TypeError:
        return False


def _check(query: Query) -> None:
    if query and (not isinstance(query[0], str) or query[0] not in (*_COMPARISONS, *_OTHERS)):
        raise ValueError(f"{query[0]!r} is no operator")
    for argument in query[1:]:
        if isinstance(argument, list):
            _check(argument)


class JsonFilter:
    """The host satisfies the scheduler hint ``query``: see `roost.scheduler.filters.json`. Variables
    are the attributes of `roost.scheduler.plugins.plain_plugins.HostState`. Source: Nova's filter of this
    name."""

    name = "JsonFilter"
    reads = (Key("hint", "query"),)
    looks_at = Looks.REPORT | Looks.TREE
    depends_on_claims = True

    def key(self, request: SchedulingRequest) -> Hashable | None:
        text = hint(request, "query")
        if not text:
            return None
        _read(text)  # A query that cannot be read is refused, even if no host is left to judge.
        return text

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        text = hint(request, "query")
        if not text:
            return None
        query = _read(text)
        names = sorted(set(variables(query)))
        known: dict[str, bool] = {}

        def passes(position: int) -> bool:
            state = HostState(hosts, position)
            values = {name: _attribute(state, name) for name in names}
            same = repr(values)
            if same not in known:
                known[same] = is_true(query, values.__getitem__)
            return known[same]

        return np.fromiter(map(passes, range(len(hosts))), np.bool_, len(hosts))


def _read(text: str) -> Query:
    try:
        return query_of(text)
    except ValueError as error:
        raise BadRequestSpec(f"scheduler hint 'query': {error}") from error


def _attribute(state: HostState, variable: str) -> Any:
    first, *keys = variable[1:].split(".")
    found = getattr(state, first) if first in ATTRIBUTES else None
    for key in keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


PLUGIN = JsonFilter
