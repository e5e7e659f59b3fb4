"""Resizes on the instance's own host, in a cloud of several conductors and agents: by steps, and drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from roost.model.instance import ABANDONED, ACTIVE, ERROR, Instance
from roost.model.move import Move, MoveRefused
from roost.model.move_states import (
    CLEANING,
    DELETED,
    DISCARDING,
    DONE,
    FAILED_MOVE,
    FREEING,
    RESTARTING,
    RESUMING,
    RETURNING,
    REVERTED,
    REVERTING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    UNDOING,
)
from roost.model.spec import Flavor
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.guests import VANISHED
from roost.state.cell_database.history import read_history
from roost.state.cell_database.move_work import go_on
from support.simulation.hosts import Host
from support.simulation.process import Process
from support.simulation.promises import promise
from support.simulation.scripted import NONE, Scripted
from support.simulation.world import Faults

ONE = "instance0"
BIG = Flavor("big", 2, 1024)


@contextmanager
def cloud_of_one(faults: Faults = NONE, seed: int = 1, **named: Any) -> Iterator[Scripted]:
    """A cloud of a cell with one host, which has room for both sizes of its instance."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 1, "vcpus": 4} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        # The host's reports say that its driver keeps two sizes.
        cloud.wait(30.0)
        yield cloud


def resize(cloud: Scripted, **named: Any) -> str:
    return cloud.migrate(ONE, **{"in_place": True, "flavor": BIG, "confirms": False} | named)


def row_of(cloud: Scripted) -> Instance:
    row = cloud.row(ONE)
    assert row is not None
    return row


def vcpus_held(cloud: Scripted, consumer: str) -> int:
    held = cloud.placement.held(consumer)
    return 0 if held is None else sum(each["VCPU"] for each in held.allocations.values())


def test_both_sizes_are_held_beside_each_other_until_the_resize_is_confirmed_or_reverted() -> None:
    with cloud_of_one() as cloud:
        host = cloud.guests.hosts[row_of(cloud).host or ""]
        for end, word in ((REVERTED, cloud.revert), (DONE, cloud.confirm)):
            before = row_of(cloud)
            move = resize(cloud)
            moved = cloud.wait_for_move(move, SWITCHED)
            assert moved.target is not None and moved.stays
            assert (vcpus_held(cloud, ONE), vcpus_held(cloud, move)) == (2, 1)
            assert (host.guests[ONE], host.parked) == (moved.target.attempt, {ONE: before.attempt})
            word(move)
            cloud.wait_for_move(move, end)
            after = row_of(cloud)
            size = 1 if end == REVERTED else 2
            assert (after.host, vcpus_held(cloud, ONE), vcpus_held(cloud, move)) == (host.name, size, 0)
            assert after.attempt == (before.attempt if end == REVERTED else moved.target.attempt)
            assert (host.guests[ONE], host.parked, host.stopped) == (after.attempt, {}, {})
        cloud.finish()


def begin_reshape_of(cloud: Scripted, host: Host) -> None:
    """The CPUs of a host become another provider's, as its agent reads at its next start."""
    agent = cloud.process(f"{host.name}-agent")
    agent.crash()
    host.has_cells = not host.has_cells
    agent.start()


def wait_for_reshape(cloud: Scripted, host: Host) -> None:
    until = cloud.loop.now + 300.0
    while not cloud.is_shaped(host):
        promise(cloud.loop.now < until, "the host is not reshaped")
        cloud.wait(1.0)
    cloud.wait(5.0)


@pytest.mark.parametrize("dies", [False, True])
def test_claims_of_equal_amounts_are_exchanged_once_after_a_reshape(dies: bool) -> None:
    with cloud_of_one() as cloud:
        host = cloud.guests.hosts[row_of(cloud).host or ""]
        move = resize(cloud, flavor=Flavor("other", 1, 1024))
        cloud.wait_for_move(move, SWITCHED)
        begin_reshape_of(cloud, host)
        wait_for_reshape(cloud, host)
        exchanges: list[str] = []
        earlier = cloud.network.interrupt

        def count(process: Process, message: Any) -> float:
            if getattr(message, "method", None) == "write_allocations" and cloud.move(move).state == UNDOING:
                exchanges.append(process.name)
            return earlier(process, message)

        cloud.network.interrupt = count
        if dies:
            cloud.before(go_on, lambda process: cloud.restart_after(process, 10.0), "c1-conductor")
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        assert len(exchanges) == 1
        assert (vcpus_held(cloud, ONE), vcpus_held(cloud, move)) == (1, 0)
        cloud.finish()


def test_a_host_is_not_reshaped_while_claims_of_equal_amounts_are_exchanged() -> None:
    with cloud_of_one() as cloud:
        host = cloud.guests.hosts[row_of(cloud).host or ""]
        move = resize(cloud, flavor=Flavor("other", 1, 1024))
        cloud.wait_for_move(move, SWITCHED)
        # The claims are exchanged, and nobody has noted it yet.
        cloud.pause_before(go_on, 60.0, "c1-conductor")
        cloud.revert(move)
        cloud.wait_for_move(move, UNDOING)
        cloud.wait(2.0)
        begin_reshape_of(cloud, host)
        cloud.wait(15.0)
        assert (cloud.move(move).state, cloud.is_shaped(host)) == (UNDOING, False)
        cloud.wait_for_move(move, REVERTED)
        wait_for_reshape(cloud, host)
        cloud.finish()


def test_a_guest_is_listed_while_the_other_size_is_destroyed() -> None:
    for seed in range(4):
        with cloud_of_one(seed=seed) as cloud:
            move = resize(cloud)
            cloud.wait_for_move(move, SWITCHED)
            cloud.revert(move)
            cloud.wait_for_move(move, REVERTED)
            cloud.wait(30.0)
            told = [each.reason for each in cloud.read("cell/c1", read_history(ONE)).transitions]
            assert VANISHED not in told
            cloud.finish()


def test_a_new_size_that_cannot_be_built_leaves_the_former_one() -> None:
    for late in (False, True):
        with cloud_of_one() as cloud:
            (cloud.fail_late if late else cloud.fail)(ONE, 2)
            cloud.wait_for_move(resize(cloud), FAILED_MOVE)
            row = cloud.wait_for(ONE, ACTIVE)
            assert (row.attempt, vcpus_held(cloud, ONE)) == (1, 1)
            cloud.finish()


def test_without_room_for_both_sizes_another_host_is_the_target() -> None:
    with cloud_of_one(hosts=3, vcpus=3) as cloud:
        before = row_of(cloud).host
        move = resize(cloud, confirms=True, flavor=Flavor("bigger", 3, 1024))
        cloud.wait_for_move(move, DONE)
        assert row_of(cloud).host != before
        cloud.finish()


def test_the_own_host_is_a_target_only_where_that_is_asked_for() -> None:
    with cloud_of_one() as cloud:
        move = resize(cloud, in_place=False)
        assert "No valid host" in (cloud.wait_for_move(move, FAILED_MOVE).reason or "")
        cloud.migrate(ONE, to_host=row_of(cloud).host)
        cloud.wait(5.0)
        assert isinstance(cloud.answers[-1], MoveRefused)
        cloud.finish()


FORTH = (STOPPING, STOPPED, STARTING, SWITCHED, CLEANING, FREEING)
BACK = (REVERTING, RESUMING, UNDOING, DISCARDING, FREEING)
FAILS = (RESTARTING, RETURNING)


def reach(cloud: Scripted, state: str, **named: Any) -> Move:
    """Have a resize enter a state."""
    if state in FAILS:
        cloud.fail(ONE, 2)
    move = resize(cloud, confirms=state in (CLEANING, FREEING), **named)
    if state in BACK and state != FREEING:
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
    return cloud.wait_for_move(move, state)


@pytest.mark.parametrize("state", [*FORTH, *BACK[:-1], *FAILS])
def test_a_deletion_wins_in_each_state(state: str) -> None:
    with cloud_of_one() as cloud:
        reach(cloud, state)
        cloud.delete(ONE)
        cloud.finish()


@pytest.mark.parametrize("state", [*FORTH, *BACK[:-1], *FAILS])
def test_an_agent_that_dies_in_each_state_goes_on_when_it_is_back(state: str) -> None:
    with cloud_of_one() as cloud:
        move = reach(cloud, state)
        agent = cloud.process(f"{move.source.host}-agent")
        agent.crash()
        cloud.wait(5.0)
        agent.start()
        cloud.wait(120.0)
        if cloud.move(move.uuid).state == SWITCHED:
            cloud.confirm(move.uuid)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


@pytest.mark.parametrize("state", [STOPPING, STOPPED])
def test_an_aborted_resize_leaves_the_former_size(state: str) -> None:
    with cloud_of_one() as cloud:
        cloud.build_in(20.0)
        move = reach(cloud, state)
        cloud.abort(move.uuid)
        cloud.wait_for_move(move.uuid, FAILED_MOVE)
        row = cloud.wait_for(ONE, ACTIVE)
        assert (row.attempt, vcpus_held(cloud, ONE)) == (1, 1)
        cloud.finish()


def dead_host(cloud: Scripted) -> Any:
    """The host of the instance loses its power. Returns the process of its agent, which has ended."""
    name = row_of(cloud).host or ""
    agent = cloud.process(f"{name}-agent")
    agent.crash()
    cloud.guests.hosts[name].die()
    return agent


@pytest.mark.parametrize("state", [STOPPED, STARTING, SWITCHED, CLEANING, REVERTING, RESUMING])
def test_an_instance_whose_host_dies_during_its_resize_is_evacuated(state: str) -> None:
    with cloud_of_one(hosts=3) as cloud:
        host = row_of(cloud).host or ""
        move = reach(cloud, state, to_host=host)
        agent = dead_host(cloud)
        evacuation = cloud.evacuate(ONE)
        assert cloud.move(move.uuid).state in (DONE, FAILED_MOVE)
        cloud.wait_for_move(evacuation, CLEANING)
        row = row_of(cloud)
        assert cloud.guests.running(ONE) == [(row.host, row.attempt)] != [(host, row.attempt)]
        assert vcpus_held(cloud, ONE) == (1 if state in (STOPPED, STARTING) else 2)
        agent.start()
        cloud.wait_for_move(evacuation, DONE)
        assert not cloud.guests.hosts[host].off and not cloud.guests.hosts[host].parked
        cloud.finish()


def test_a_host_that_is_given_up_while_a_resize_waits_for_its_word_is_rid_of_both_sizes() -> None:
    with cloud_of_one() as cloud:
        move = reach(cloud, SWITCHED)
        agent = dead_host(cloud)
        host = move.source.host
        gone = give_up_on_host(host=host, reason="it burnt", at=0.0, cell="c1")
        cloud.network.databases["cell/c1"].run(gone, True)
        assert row_of(cloud).state in (ABANDONED, ERROR)
        assert cloud.move(move.uuid).state == DELETED
        agent.start()
        cloud.wait(60.0)
        assert not cloud.guests.hosts[host].off and not cloud.guests.hosts[host].parked
        cloud.delete(ONE)
        cloud.finish()
