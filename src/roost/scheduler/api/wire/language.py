"""`Language`: the protocol by which request specs and selections are read and shown, in two languages.

Roost's own has the types of `roost.model.spec`, with the names of their fields as keys. Nova's has its
RequestSpec and Selection objects, as oslo.versionedobjects serialises them. A key that a struct lacks is an
error, because it may be misspelled; so are values that their types allow and that are invalid nevertheless.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import inspect

from roost.model.spec import Destination, Operation, RequestSpec, Selection
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement, TriedAlternate
from roost.scheduler.api.wire.nova_object import NovaFields, is_nova_object
from roost.scheduler.api.wire.nova_selection import nova_selection, selection_of
from roost.scheduler.api.wire.nova_spec import request_spec_of
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import Replacement
from roost.web.validation_messages import invalid_value

MOST_GROUPS = 100
"""Most request groups of one request spec, beside the flavor's. More are refused."""


def check_spec(spec: RequestSpec) -> RequestSpec:
    """Return the request spec. Raises `BadRequestSpec` for a value that it may not have."""
    for name, value in _names(spec):
        if not is_storable(value, MAX_NAME):
            raise BadRequestSpec(f"{name} {value[:40]!r} is empty, too long or not storable text")
    for name, amount, least in _amounts(spec):
        if not least <= amount <= MAX_INT:
            raise BadRequestSpec(f"{name} is {amount}, and must be from {least} to {MAX_INT}")
    if len(spec.requested_resources) > MOST_GROUPS:
        raise BadRequestSpec(f"{len(spec.requested_resources)} request groups, at most {MOST_GROUPS} may be")
    return spec


def without_contradiction(request: HostRequest) -> HostRequest:
    """Return the request. Raises `BadRequestSpec` if it contradicts itself, see `HostRequest.check`."""
    try:
        request.check()
    except ValueError as error:
        raise BadRequestSpec(str(error)) from error
    return request


def _names(spec: RequestSpec) -> Iterator[tuple[str, str]]:
    yield "project_id", spec.project_id
    yield "user_id", spec.user_id
    yield "flavor.name", spec.flavor.name
    if spec.group is not None:
        yield "group.uuid", spec.group.uuid


def _amounts(spec: RequestSpec) -> Iterator[tuple[str, int, int]]:
    """Yield each amount with its name and its least allowed value."""
    flavor = spec.flavor
    for name in ("vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "swap_mb"):
        yield f"flavor.{name}", getattr(flavor, name), 0
    if spec.group is not None:
        yield "group.max_server_per_host", spec.group.max_server_per_host, 1
    for group in spec.requested_resources:
        for name, amount in group.resources.items():
            yield f"{name} of request group {group.suffix!r}", amount, 1


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


@dataclass(frozen=True)
class AskedSpec:
    """A request spec, with the number of its instances and, if it names them all, their uuids.

    ``of_nova``: it is in the form of Nova, whose API has checked it, and whose drivers read it.
    """

    spec: RequestSpec
    count: int = 1
    instances: tuple[str, ...] | None = None
    of_nova: bool = False


class Language(Protocol):
    """Reads and shows JSON values. An unreadable one raises `BadRequestSpec`, which names key and value."""

    def read_spec(self, data: Mapping[str, Any], operation: Operation | None = None) -> AskedSpec:
        """Read a request spec. ``operation``: the purpose of the host, if it is given beside the spec."""

    def read_selection(self, data: Mapping[str, Any]) -> Selection:
        """Read a selection from an earlier response."""

    def show_destinations(self, found: Sequence[Destination]) -> ShownDestinations:
        """Return the response with the destinations of at least one instance."""

    def show_replacement(self, found: Replacement) -> ShownReplacement:
        """Return the response with the host that an instance is claimed on now."""


class RoostLanguage:
    """Roost's own language. See `Language`."""

    def read_spec(self, data: Mapping[str, Any], operation: Operation | None = None) -> AskedSpec:
        try:
            spec = convert(data, RequestSpec)
            if operation is not None:
                spec = msgspec.structs.replace(spec, operation=operation)
            return AskedSpec(check_spec(spec))
        except msgspec.ValidationError as error:
            raise BadRequestSpec(invalid_value(error, RequestSpec, data, "request_spec")) from error

    def read_selection(self, data: Mapping[str, Any]) -> Selection:
        try:
            return convert(data, Selection)
        except msgspec.ValidationError as error:
            raise BadRequestSpec(invalid_value(error, Selection, data, "selection")) from error

    def show_destinations(self, found: Sequence[Destination]) -> ShownDestinations:
        return ShownDestinations(run=found[0].run, destinations=tuple(found))

    def show_replacement(self, found: Replacement) -> ShownReplacement:
        return ShownReplacement(tried=tried(found), selected=found.selected, alternates=found.alternates)


def tried(found: Replacement) -> tuple[TriedAlternate, ...]:
    """Return the alternates that were tried."""
    return tuple(TriedAlternate(each.host, each.cell, each.refusal) for each in found.tries)


class NovaLanguage:
    """Nova's language. See `Language`. ``table`` has the names of nodes."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def read_spec(self, data: Mapping[str, Any], operation: Operation | None = None) -> AskedSpec:
        fields = NovaFields(data, "RequestSpec", "request_spec")
        try:
            spec = check_spec(request_spec_of(fields, operation))
        except msgspec.ValidationError as error:
            raise BadRequestSpec(f"request_spec: {error}") from error
        count = fields.get("num_instances", int) or 1
        instance = fields.get("instance_uuid", str)
        return AskedSpec(spec, count, None if instance is None or count != 1 else (instance,), of_nova=True)

    def read_selection(self, data: Mapping[str, Any]) -> Selection:
        return selection_of(data)

    def show_destinations(self, found: Sequence[Destination]) -> ShownDestinations:
        return ShownDestinations(
            run=found[0].run,
            instances=tuple(each.instance for each in found),
            selections=tuple(map(tuple, self.selections(found))),
        )

    def selections(self, found: Sequence[Destination]) -> list[list[dict[str, Any]]]:
        """Return the selections of each instance as Nova has them: the claimed host, then the alternates."""
        return [[self._shown(each) for each in (one.selected, *one.alternates)] for one in found]

    def show_replacement(self, found: Replacement) -> ShownReplacement:
        selected = () if found.selected is None else (found.selected,)
        return ShownReplacement(
            tried=tried(found), selections=tuple(map(self._shown, (*selected, *found.alternates)))
        )

    def _shown(self, selection: Selection) -> dict[str, Any]:
        index = self._table.index_of_node(selection.node)
        return nova_selection(selection, selection.host if index is None else self._table.nodenames[index])


def language_of(spec: Mapping[str, Any], table: NodeTable) -> Language:
    """Return the language of a request spec. ``table`` has the names of nodes."""
    return NovaLanguage(table) if is_nova_object(spec) else RoostLanguage()
