"""The query of the map and of its bytes."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.dashboard.fleet.criteria import HostCriteria, Text
from roost.dashboard.fleet.groups import GroupedBy, GroupSort
from roost.dashboard.fleet.levels import Shown
from roost.dashboard.fleet.selection import MapSelection
from roost.dashboard.page import TimedQuery


class MapQuery(TimedQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the map: what it shows, the filter, the selected host, and the table of groups.

    ``host``: the root provider of the host that is selected at first.
    """

    by: Shown = "used"
    resource_class: Text = msgspec.field(name="class", default="")
    zone: Text = ""
    rack: Text = ""
    cell: Text = ""
    trait: Text = ""
    aggregate: Text = ""
    flavor: Text = ""
    host: Text = ""
    group: GroupedBy = "rack"
    sort: GroupSort = "share"
    page: Annotated[int, Meta(ge=1, le=100_000)] = 1

    @property
    def selection(self) -> MapSelection:
        """The selection of the map."""
        return MapSelection(by=self.by, resource_class=self.resource_class, criteria=self.criteria)

    @property
    def criteria(self) -> HostCriteria:
        """The hosts that the filter chooses."""
        return HostCriteria(
            zone=self.zone,
            rack=self.rack,
            cell=self.cell,
            trait=self.trait,
            aggregate=self.aggregate,
            flavor=self.flavor,
        )
