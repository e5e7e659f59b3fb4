"""Converts JSON values to structs. A key that a struct lacks is an error: it may be misspelled."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")


def convert(value: object, form: type[T]) -> T:
    """Return the value as a struct. Raises `msgspec.ValidationError`, which names the place of the fault."""
    described = _described(form)  # type: ignore[arg-type]
    unknown = next(_unknown(value, described, "$"), None)
    if unknown is not None:
        raise msgspec.ValidationError(f"Object contains unknown field {unknown}")
    return msgspec.convert(value, form)


_described = cache(inspect.type_info)


def _unknown(value: object, form: inspect.Type, place: str) -> Iterator[str]:
    """Yield the keys of a value that its type has no field for, each with its place."""
    if isinstance(form, inspect.Metadata):
        yield from _unknown(value, form.type, place)
    elif isinstance(form, inspect.UnionType):
        for each in form.types:
            if _may_be(value, each):
                yield from _unknown(value, each, place)
    elif isinstance(form, inspect.StructType) and isinstance(value, Mapping):
        fields = {each.encode_name: each.type for each in form.fields}
        for key, item in value.items():
            if key in fields:
                yield from _unknown(item, fields[key], f"{place}.{key}")
            elif key != form.tag_field:
                yield f"`{key}` - at `{place}`"
    elif isinstance(form, inspect.DictType) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unknown(item, form.value_type, f"{place}[{key!r}]")
    elif isinstance(form, inspect.CollectionType) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _unknown(item, form.item_type, f"{place}[{number}]")
    elif isinstance(form, inspect.TupleType) and isinstance(value, list):
        for number, (item, each) in enumerate(zip(value, form.item_types, strict=False)):
            yield from _unknown(item, each, f"{place}[{number}]")


def _may_be(value: object, form: inspect.Type) -> bool:
    """Return whether a value may be of this member of a union. All structs in a union have tags."""
    if isinstance(form, inspect.StructType) and isinstance(value, Mapping):
        return form.tag_field is None or value.get(form.tag_field, form.tag) == form.tag
    if isinstance(form, inspect.DictType):
        return isinstance(value, Mapping)
    return isinstance(value, list)
