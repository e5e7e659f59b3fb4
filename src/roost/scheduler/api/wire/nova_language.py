"""Nova's language: its RequestSpec and Selection objects, as oslo.versionedobjects serialises them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from roost.model.spec import Destination, Operation, Selection
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement
from roost.scheduler.api.wire.checks import check_spec
from roost.scheduler.api.wire.nova_object import NovaFields
from roost.scheduler.api.wire.nova_selection import nova_selection, selection_of
from roost.scheduler.api.wire.nova_spec import request_spec_of
from roost.scheduler.api.wire.roost_spec import tried
from roost.scheduler.api.wire.spoken import AskedSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.replacement import Replacement


class NovaLanguage:
    """See `roost.scheduler.api.wire.spoken.Language`. ``table`` has the names of nodes."""

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
