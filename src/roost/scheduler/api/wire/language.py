"""`Language`: the protocol by which request specs and selections are read and shown, in two languages.

Roost's own has the types of `roost.model.spec`, with the names of their fields as keys. Nova's has its
RequestSpec and Selection objects, as oslo.versionedobjects serialises them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from roost.model.spec import Destination, Operation, RequestSpec, Selection
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement, TriedAlternate
from roost.scheduler.api.wire.checks import check_spec
from roost.scheduler.api.wire.nova_object import NovaFields, is_nova_object
from roost.scheduler.api.wire.nova_selection import nova_selection, selection_of
from roost.scheduler.api.wire.nova_spec import request_spec_of
from roost.scheduler.api.wire.strict import convert
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.replacement import Replacement
from roost.web.validation_messages import invalid_value


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
            selections=tuple(tuple(map(self._shown, (each.selected, *each.alternates))) for each in found),
        )

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
