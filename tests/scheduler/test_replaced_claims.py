"""Claims that replace what instances hold: one write at the generation, and what they hold is no obstacle."""

import pytest

from roost.fleet import Fleet
from roost.ledger import State
from roost.model.change import ResourceClassChanged
from roost.model.inventory import Inventory
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.gateways.local import Decide
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import holding, report, spec
from support.offering import named_filters, plugins, scheduling_request


class Platform:
    """Two hosts with room for one instance each, and a scheduler of one state."""

    def __init__(self) -> None:
        self.state = State(Fleet(), {}, 0.0)
        self.table = NodeTable()
        self.pools = HostPools(
            self.table, plugins=plugins(*named_filters("ComputeFilter", "ServerGroupAntiAffinityFilter"))
        )
        self.state.apply(ResourceClassChanged("VCPU", None, 0))
        for number in range(2):
            self.run(CreateProvider(f"node{number}", f"host{number}", None))
            self.run(SetInventories(f"node{number}", {"VCPU": Inventory(1)}, None))
            self.table.update([report(f"host{number}", f"node{number}")])

    def run(self, command):
        mark = len(self.state.changes)
        self.state.name(command.consumers())
        try:
            return command.run(self.state)
        except Exception:
            self.state.take_back(mark)
            raise

    def decide(self, asked: SchedulingRequest, **generations: int) -> list[str]:
        from msgspec.structs import replace

        asked = replace(asked, generations=generations)
        outcome = self.run(Decide(asked, self.pools)).outcome
        return [each.selected.host for each in outcome.destinations]

    def held(self, *instances: str) -> list[tuple[str, int]]:
        """Node and generation of each."""
        self.state.name(instances)
        found = [self.state.held(each) for each in instances]
        return [(next(iter(each.allocations)), each.consumer.generation) for each in found if each]


def test_what_an_instance_holds_is_free_for_it() -> None:
    cloud = Platform()
    assert sorted(cloud.decide(scheduling_request(2))) == ["host0", "host1"]
    before = cloud.held("i0", "i1")
    assert sorted(cloud.decide(scheduling_request(2), i0=1, i1=1)) == ["host0", "host1"]
    assert [generation for _, generation in cloud.held("i0", "i1")] == [2, 2]
    assert sorted(node for node, _ in before) == sorted(node for node, _ in cloud.held("i0", "i1"))
    used = cloud.state.fleet.inventory_columns("VCPU")
    assert used.used[: used.n].tolist() == [1, 1]


def test_membership_of_the_same_instance_is_no_obstacle() -> None:
    cloud = Platform()
    apart = scheduling_request(2, of=spec(group=ServerGroup("g", "anti-affinity")))
    assert len(cloud.decide(apart)) == 2
    assert len(cloud.decide(apart, i0=1, i1=1)) == 2
    cloud.state.name(["i0"])
    held = cloud.state.held("i0")
    assert held is not None
    assert held.consumer.group == "g"


@pytest.mark.parametrize("generations", [{}, {"i0": 2}, {"i0": 1, "i1": 1}])
def test_another_generation_is_refused_and_changes_nothing(generations: dict[str, int]) -> None:
    cloud = Platform()
    cloud.decide(scheduling_request(1))
    before, changes = cloud.held("i0"), len(cloud.state.changes)
    with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
        cloud.decide(scheduling_request(2), **generations)
    assert cloud.held("i0") == before
    assert len(cloud.state.changes) == changes


def test_a_refusal_leaves_the_claim_as_it_was() -> None:
    cloud = Platform()
    cloud.decide(scheduling_request(1))
    before = cloud.held("i0")
    assert cloud.decide(scheduling_request(3), i0=1) == []
    assert cloud.held("i0", "i1", "i2") == before


def test_a_new_member_and_one_that_held_something_are_placed_together() -> None:
    cloud = Platform()
    cloud.run(WriteAllocations((holding("other", {"node0": {"VCPU": 1}}),)))
    assert cloud.decide(scheduling_request(1)) == ["host1"]
    cloud.run(FreeConsumers(("other",)))
    assert sorted(cloud.decide(scheduling_request(2), i0=1)) == ["host0", "host1"]
    assert [generation for _, generation in cloud.held("i0", "i1")] == [2, 1]
