"""Ports and devices of instances that move, in a cloud of several conductors and agents."""

import pytest

from roost.model.instance import ACTIVE, STOPPED
from roost.model.move_states import DONE, FAILED_MOVE, RETRYING, REVERTED, SWITCHED
from roost.model.request import RequestGroup
from support.simulation import faults as put_in
from support.simulation.scripted import NONE, Scripted, found
from support.simulation.world import Faults

ONE = "instance0"


def cloud_of_one(faults: Faults = NONE, seed: int = 1, hosts: int = 3) -> Scripted:
    cloud = Scripted(faults, seed, cells=("c1",), hosts=hosts).__enter__()
    cloud.request(ONE)
    cloud.wait_for(ONE, ACTIVE)
    return cloud


def a_target_fails_when_it_starts_the_guest(faults: Faults, seed: int) -> None:
    """The port is bound to the target then, and the source takes it back."""
    with cloud_of_one(faults, seed, hosts=2) as cloud:
        cloud.fail_late(ONE, 2)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, FAILED_MOVE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


def an_instance_is_deleted_when_its_target_has_failed(faults: Faults, seed: int) -> None:
    """The port is bound to a host that has destroyed its guest already."""
    with cloud_of_one(faults, seed) as cloud:
        cloud.fail_late(ONE, 2)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, RETRYING)
        cloud.delete(ONE)
        cloud.finish()


@pytest.mark.parametrize(
    ("script", "fault", "broken"),
    [
        (
            a_target_fails_when_it_starts_the_guest,
            put_in.PORTS_RELEASED_BY_EACH_GUEST,
            "its port has been deleted",
        ),
        (a_target_fails_when_it_starts_the_guest, put_in.PORTS_NOT_TAKEN_BACK, "state='restarting'"),
        (an_instance_is_deleted_when_its_target_has_failed, put_in.PORTS_OF_OTHERS_LEFT, "is gone and has"),
    ],
)
def test_ports_stay_with_the_instance_and_end_with_it(script, fault, broken) -> None:
    for seed in range(2):
        script(NONE, seed)
    assert broken in found(script, fault)


def test_a_stopped_instance_that_has_come_back_has_its_port_where_it_is_started() -> None:
    for seed in range(2):
        with cloud_of_one(NONE, seed, hosts=2) as cloud:
            host = cloud.wait_for(ONE, ACTIVE).host
            cloud.stop(ONE)
            cloud.wait_for(ONE, STOPPED)
            cloud.fail(ONE, 2)
            cloud.wait_for_move(cloud.migrate(ONE), FAILED_MOVE)
            move = cloud.migrate(ONE, confirms=False)
            cloud.wait_for_move(move, SWITCHED)
            cloud.revert(move)
            cloud.wait_for_move(move, REVERTED)
            assert cloud.guests.ports[ONE][0] != host
            cloud.start(ONE)
            assert cloud.wait_for(ONE, ACTIVE).host == host
            assert cloud.guests.ports[ONE][0] == host
            cloud.finish()


def test_the_target_is_told_the_providers_of_its_own_claim_and_a_revert_brings_those_of_before_back() -> None:
    with Scripted(NONE, 1, cells=("c1",), hosts=2) as cloud:
        cloud.request(ONE, resources=(RequestGroup({"CUSTOM_GPU": 1}, "port1"),))
        before = cloud.wait_for(ONE, ACTIVE).selection
        assert before is not None
        for end, word in ((REVERTED, cloud.revert), (DONE, cloud.confirm)):
            move = cloud.migrate(ONE, confirms=False)
            target = cloud.wait_for_move(move, SWITCHED).target
            assert target is not None
            told = cloud.guests.hosts[target.host].mappings[ONE, target.attempt]
            assert told == target.selection.mappings
            assert told["port1"] != before.mappings["port1"]
            word(move)
            cloud.wait_for_move(move, end)
            row = cloud.row(ONE)
            assert row is not None and row.selection is not None
            held = before if end == REVERTED else target.selection
            assert (row.selection.mappings, row.selection.allocations) == (held.mappings, held.allocations)
        cloud.finish()
