"""Which nodes change their availability zone, in every change of two aggregates that share nodes."""

from itertools import product

import pytest

from roost.model.aggregate import Aggregate
from roost.state.api_database.aggregates.errors import SeveralZones
from roost.state.api_database.aggregates.zones import ZoneChange, zone_changes

NODE = "node"
ZONES = (None, "az1", "az2")


def aggregate(zone: str | None, member: bool) -> Aggregate:
    metadata = {} if zone is None else {"availability_zone": zone}
    return Aggregate(uuid="a", name="a", metadata=metadata, members=frozenset({NODE} if member else ()))


@pytest.mark.parametrize("other", ZONES)
def test_a_node_is_in_one_zone_and_each_change_of_it_is_found(other: str | None) -> None:
    for old_zone, new_zone, was, is_ in product(ZONES, ZONES, (False, True), (False, True)):
        old, new = aggregate(old_zone, was), aggregate(new_zone, is_)
        before = {zone for zone in (old_zone if was else None, other) if zone is not None}
        after = {zone for zone in (new_zone if is_ else None, other) if zone is not None}
        if len(before) > 1:
            continue
        elsewhere = {} if other is None else {NODE: other}
        if len(after) > 1 and (old_zone, was) != (new_zone, is_):
            with pytest.raises(SeveralZones, match=r"'az[12]' by another aggregate, and"):
                zone_changes(old, new, elsewhere)
            continue
        change = ZoneChange(min(before, default=None), min(after, default=None))
        expected = {} if before == after else {NODE: change}
        assert zone_changes(old, new, elsewhere) == expected, (old, new, other)


def test_a_change_says_what_it_changes() -> None:
    assert str(ZoneChange(None, "az1")) == "from none to 'az1'"
