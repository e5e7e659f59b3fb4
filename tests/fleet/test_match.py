"""The providers that can serve one group alone, against the plain oracle."""

from hypothesis import HealthCheck, given, settings

from roost.fleet.match import match, match_resources
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from support import oracle
from support.fleets import fleet_of, groups, worlds
from support.oracle import Provider, World


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), groups("_1", 0) | groups("", 1))
def test_match_is_that_of_the_oracle(world: World, group: RequestGroup) -> None:
    fleet = fleet_of(world)
    rows = match(fleet, group)
    assert [fleet.uuid(row) for row in rows.tolist()] == [
        uuid for uuid in world if oracle.serves_alone(world, uuid, group)
    ]


def test_rows_ascend_though_inventories_came_in_any_order() -> None:
    fleet = fleet_of({f"p{i}": Provider(None, {"VCPU": Inventory(1)}) for i in range(5)})
    columns = fleet.inventory_columns("VCPU")
    columns.remove(0)
    columns.put(0, Inventory(1))
    assert not columns.ascending
    assert match_resources(fleet, {"VCPU": 1}).tolist() == [0, 1, 2, 3, 4]
