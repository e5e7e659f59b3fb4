"""The selection of a map: the number that colours its hosts, the resource class, and the filter."""

from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from roost.dashboard.fleet.criteria import EVERY_HOST, HostCriteria, chosen
from roost.dashboard.fleet.hosts import FleetHosts, HostsNow
from roost.dashboard.fleet.levels import Shown
from roost.fleet.columns import Bools

_TOPIC: Final = "levels?"


class MapSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The selection of a map. Maps with equal selections have equal bytes.

    ``resource_class``: empty: the first of the common classes that hosts have.
    """

    by: Shown = "used"
    resource_class: str = ""
    criteria: HostCriteria = EVERY_HOST

    def class_of(self, now: HostsNow) -> str:
        """Return the resource class that the map shows."""
        return self.resource_class or next(iter(now.classes), "VCPU")

    def chosen(self, now: HostsNow, hosts: FleetHosts) -> Bools | None:
        """Return the hosts that the filter chooses: bool[n], None for all."""
        return chosen(now, hosts, self.criteria) if self.criteria.any else None

    @property
    def topic(self) -> str:
        """The topic of events with the changes of this map: it names the selection."""
        fields = {"by": self.by, "class": self.resource_class, **msgspec.structs.asdict(self.criteria)}
        return _TOPIC + urlencode({name: value for name, value in fields.items() if value})


def selection_of(topic: str) -> MapSelection | None:
    """Return the selection that a topic names; None if it is not one of a map, in the form of `topic`."""
    if not topic.startswith(_TOPIC):
        return None
    fields = dict(parse_qsl(topic.removeprefix(_TOPIC)))
    by, resource_class = fields.pop("by", "used"), fields.pop("class", "")
    try:
        criteria = msgspec.convert(fields, HostCriteria)
        found = msgspec.convert({"by": by, "resource_class": resource_class}, MapSelection)
    except msgspec.ValidationError:
        return None
    selection = msgspec.structs.replace(found, criteria=criteria)
    return selection if selection.topic == topic else None
