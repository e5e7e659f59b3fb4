"""What a language reads and shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roost.model.spec import Destination, Operation, RequestSpec, Selection
from roost.scheduler.api.wire.answers import ShownDestinations, ShownReplacement
from roost.scheduler.selection.replacement import Replacement


@dataclass(frozen=True)
class AskedSpec:
    """A request spec, and what it says of its instances: how many, and their uuids if it names them all.

    ``of_nova``: it is in the form of Nova, whose API has checked it, and whose drivers read it.
    """

    spec: RequestSpec
    count: int = 1
    instances: tuple[str, ...] | None = None
    of_nova: bool = False


class Language(Protocol):
    """Reads and shows JSON values. What cannot be read raises `BadRequestSpec`, which names key and value."""

    def read_spec(self, data: Mapping[str, Any], operation: Operation | None = None) -> AskedSpec:
        """The request spec. ``operation``: what the host is chosen for, if that is said beside the spec."""

    def read_selection(self, data: Mapping[str, Any]) -> Selection:
        """A selection that was shown before."""

    def show_destinations(self, found: Sequence[Destination]) -> ShownDestinations:
        """What was found for at least one instance."""

    def show_replacement(self, found: Replacement) -> ShownReplacement:
        """What an instance is claimed on now."""
