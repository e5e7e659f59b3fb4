"""Sentences about a value of the wrong type or size: its place, the value, and the expected type.

msgspec's messages name its own types (``Expected `int`, got `str` - at `$.count` ``) and not the value.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from roost.model.secrets import HIDDEN, is_secret_key

LONGEST_SHOWN = 60
"""Characters of a value that are shown; the rest is left out."""

_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`(?P<place>[^`]*)`)?", re.DOTALL)
_TYPE = re.compile(r"Expected `(?P<meant>[^`]*)`, got `(?P<got>[^`]*)`")
_BOUND = re.compile(r"Expected `(?P<of>int|float)` (?P<sign>>=|<=|>|<) (?P<bound>\S+)")
_LENGTH = re.compile(
    r"Expected `(?P<of>str|bytes|array|object)` of length (?P<sign>>= |<= |)(?P<bound>\d+)(, got \d+)?"
)
_PATTERN = re.compile(r"Expected `str` matching regex (?P<pattern>.*)", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")

_MEANT = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {
    ">=": "small; the least is {}",
    ">": "small; it must be more than {}",
    "<=": "large; the most is {}",
    "<": "large; it must be less than {}",
}
_LENGTHS = {">=": "at least", "<=": "at most", "": "exactly"}
_UNITS = {
    "str": ("character", "characters"),
    "bytes": ("byte", "bytes"),
    "array": ("entry", "entries"),
    "object": ("key", "keys"),
}
_ROOT = "$"

_PARTS = ("type", "types", "item_type", "item_types", "key_type", "value_type")
"""The attributes of msgspec's descriptions of types that have other descriptions."""

Place = tuple[str, object]
"""A place in a document as it is shown, and the value there."""


def wrong_value(
    error: msgspec.ValidationError,
    document: object = msgspec.UNSET,
    *,
    root: str = "the value",
    prefix: str = "",
    known: Callable[[], Iterable[str]] = tuple,
) -> str:
    """Return a sentence about a value that is not of its type: its place, the value, and the expected type.

    ``document`` is the converted document, as values of JSON's types; without it the sentence names no value.
    ``root`` names the document itself, ``prefix`` begins the name of each place in it. ``known`` returns
    names of fields to suggest for an unknown one.
    """
    found = _PLACE.fullmatch(str(error))
    if found is None:
        return str(error)
    what, path = found["what"], found["place"] or _ROOT
    at = list(_places(path, document, prefix, is_key=found["key"] is not None))
    first = at[0][0] or prefix or root
    if told := _TYPE.fullmatch(what):
        return _of_type(at, told["meant"].split(" | "), told["got"], prefix or root)
    if told := _BOUND.fullmatch(what):
        return _of_bound(at, told["sign"], float(told["bound"]), prefix or root)
    if told := _LENGTH.fullmatch(what):
        return _of_length(at, told["of"], told["sign"].strip(), int(told["bound"]), prefix or root)
    if told := _PATTERN.fullmatch(what):
        return f"{first} does not match the pattern {told['pattern']}"
    inside = f"{at[0][0] or prefix}." if at[0][0] or prefix else ""
    if told := _MISSING.fullmatch(what):
        return f"{inside}{told['name']} is missing"
    if told := _UNKNOWN.fullmatch(what):
        near = get_close_matches(told["name"], list(known()), 1)
        hint = f": did you mean {near[0]}?" if near else ""
        return f"{inside}{told['name'][:LONGEST_SHOWN]} is unknown{hint}"
    if what == "Number out of range":
        return f"{first}: the number is out of range"
    return f"{at[0][0] or prefix}: {what}" if at[0][0] or prefix else what


def field_names(form: Any) -> frozenset[str]:
    """Return the names of all fields of a struct, and of the structs in it."""
    names: set[str] = set()
    seen: set[type] = set()
    waiting: list[object] = [inspect.type_info(form)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, inspect.StructType):
            if each.cls in seen:
                continue
            seen.add(each.cls)
            names.update(field.encode_name for field in each.fields)
            waiting += [field.type for field in each.fields]
        elif isinstance(each, inspect.Type):
            parts = (getattr(each, part, ()) for part in _PARTS)
            waiting += [
                one for part in parts for one in (part if isinstance(part, tuple | list) else (part,))
            ]
    return frozenset(names)


def shown_value(value: object, name: str = "") -> str:
    """Return a value as JSON, cut after `LONGEST_SHOWN`; ``***`` if its field has the name of a secret."""
    if is_secret_key(name):
        return HIDDEN
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _of_type(at: list[Place], meant: list[str], got: str, root: str) -> str:
    place, value = _first(at, lambda each: _type_of(each) == got)
    words = [_MEANT.get(each, each) for each in meant if each != "null" or len(meant) == 1]
    wanted = " or ".join(words)
    where = place or root
    if got in ("array", "object"):
        return f"{where} is {_MEANT[got]}, not {wanted}"
    if value is msgspec.UNSET:
        return f"{where} is {_MEANT.get(got, got)}, not {wanted}"
    shown = f"{where}: {shown_value(value, place)} is"
    if got in ("str", "int", "float") and not (got == "float" and "int" in meant):
        kind = "a text" if got == "str" else "a number"
        return f"{shown} {kind}, not {wanted}"
    return f"{shown} not {wanted}"


def _of_bound(at: list[Place], sign: str, bound: float, root: str) -> str:
    def is_outside(value: object) -> bool:
        if not isinstance(value, int | float):
            return False
        inside = {">=": value >= bound, ">": value > bound, "<=": value <= bound, "<": value < bound}
        return not inside[sign]

    place, value = _first(at, is_outside)
    shown = "" if value is msgspec.UNSET else f" {shown_value(value, place)} is"
    limit = _BOUNDS[sign].format(f"{bound:.15g}")
    return f"{place or root}:{shown or ' is'} too {limit}"


def _of_length(at: list[Place], of: str, sign: str, bound: int, root: str) -> str:
    def is_outside(value: object) -> bool:
        if not isinstance(value, str | list | tuple | Mapping):
            return False
        return not {">=": len(value) >= bound, "<=": len(value) <= bound}.get(sign, len(value) == bound)

    place, value = _first(at, is_outside)
    limit = f"{_LENGTHS[sign]} {_count(bound, of)}"
    where = place or root
    if isinstance(value, str | list | tuple | Mapping):
        return f"{where} {'is empty' if not value else f'has {_count(len(value), of)}'}; it must have {limit}"
    return f"{where} must have {limit}"


def _count(number: int, of: str) -> str:
    one, several = _UNITS[of]
    return f"{number} {one if number == 1 else several}"


def _first(at: list[Place], is_wrong: Callable[[object], bool]) -> Place:
    """Return the first place with a wrong value. msgspec omits the key of an object's value."""
    found = next((each for each in at if each[1] is not msgspec.UNSET and is_wrong(each[1])), None)
    return found or (at[0][0] if len(at) == 1 else "a value", msgspec.UNSET)


def _places(path: str, document: object, prefix: str, *, is_key: bool) -> Iterator[Place]:
    """Yield the places that a path may mean: one, or those of all values, or all keys, of an object."""
    places: list[Place] = [(prefix, document)]
    for step in _STEP.finditer(path.removeprefix(_ROOT)):
        places = list(_stepped(places, step["name"], step["index"]))
    if not is_key:
        yield from places
        return
    for place, value in places:
        named = f"a key of {place}" if place else "a key"
        keys = value if isinstance(value, Mapping) and value else (msgspec.UNSET,)
        yield from ((named, key) for key in keys)


def _stepped(places: list[Place], name: str | None, index: str | None) -> Iterator[Place]:
    for place, value in places:
        if name is not None:
            inner = value.get(name, msgspec.UNSET) if isinstance(value, Mapping) else msgspec.UNSET
            yield f"{place}.{name}" if place else name, inner
        elif index == "...":
            if isinstance(value, Mapping) and value:
                for key, each in value.items():
                    yield f"{place}.{key}" if place else str(key), each
            else:
                yield f"a value of {place}" if place else "a value", msgspec.UNSET
        else:
            position = int(index or 0)
            is_there = isinstance(value, list | tuple) and position < len(value)
            yield f"{place}[{position}]", value[position] if is_there else msgspec.UNSET  # type: ignore[index]


def _type_of(value: object) -> str:
    """Return the type of a value by msgspec's name."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case Mapping():
            return "object"
        case list() | tuple():
            return "array"
    return type(value).__name__
