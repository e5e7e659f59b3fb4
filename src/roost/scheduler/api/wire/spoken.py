"""`Language`: the protocol by which request specs and selections are read and shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roost.model.spec import Destination, Operation, RequestSpec, Selection
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement
from roost.scheduler.selection.replacement import Replacement


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
