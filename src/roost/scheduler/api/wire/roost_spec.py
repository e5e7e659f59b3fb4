"""Roost's own language: the types of `roost.model.spec`, with the names of their fields as keys."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from roost.model.spec import Destination, Operation, RequestSpec, Selection
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement, TriedAlternate
from roost.scheduler.api.wire.checks import check_spec
from roost.scheduler.api.wire.spoken import AskedSpec
from roost.scheduler.api.wire.strict import convert
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.selection.replacement import Replacement
from roost.web.validation_messages import invalid_value


class RoostLanguage:
    """See `roost.scheduler.api.wire.spoken.Language`."""

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
