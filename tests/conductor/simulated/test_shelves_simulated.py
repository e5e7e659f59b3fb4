"""Instances that are shelved and unshelved, in a cloud of several conductors, cells and agents.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

from contextlib import contextmanager

import msgspec
import pytest
import sqlalchemy as sa

from roost.conductor.agent_endpoint.transactions import StorePoll
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    OFFLOADED,
    SHELVED,
    SHELVING,
    STARTING,
    STOPPED,
    UNSHELVING,
    ChangeRefused,
)
from roost.model.move import MoveRefused
from roost.model.move_states import DONE, REVERTED, SWITCHED
from roost.state.cell_database.conductor_work import take_work
from roost.state.cell_database.history import read_history
from roost.state.cell_database.moves import SHELVED_WITHOUT_HOST
from roost.state.cell_database.shelves import NO_SHELF, assign_unshelved, put_on_shelf
from roost.state.cell_database.tables import nodes
from support.simulation import faults
from support.simulation.promises import promise
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"


class RemoveNode(msgspec.Struct, frozen=True):
    """The report of a node is gone, as after the removal of its host."""

    node: str

    def __call__(self, connection):
        connection.execute(sa.delete(nodes).where(nodes.c.node == self.node))


@contextmanager
def cloud_of_one(faults=NONE, seed=1, *, shelved=False, **named):
    """A cloud of a cell with three hosts and two conductors; its one instance is ``shelved`` or runs."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 3, "conductors": 2} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        if shelved:
            cloud.shelve(ONE)
            cloud.wait_for(ONE, SHELVED)
        yield cloud


def test_an_instance_is_shelved_and_runs_again_as_its_next_attempt_with_another_consumer():
    with cloud_of_one() as cloud:
        cloud.shelve(ONE)
        shelved = cloud.wait_for(ONE, SHELVED)
        assert (shelved.host, shelved.selection, cloud.guests.running(ONE)) == (None, None, [])
        assert cloud.placement.held(ONE) is None
        cloud.wait(400.0)
        assert cloud.row(ONE).state == SHELVED
        consumer = cloud.unshelve(ONE)
        row = cloud.wait_for(ONE, ACTIVE)
        assert (row.attempt, row.consumer, row.shelf) == (2, consumer, None)
        assert cloud.placement.held(consumer) is not None and cloud.placement.held(ONE) is None
        cloud.finish()


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(2):
        script(NONE, seed)


def host_of(cloud):
    return cloud.guests.hosts[cloud.row(ONE).host]


def test_a_stopped_instance_runs_when_it_is_unshelved_and_is_shelved_again():
    with cloud_of_one() as cloud:
        cloud.stop(ONE)
        cloud.wait_for(ONE, STOPPED)
        consumers = [ONE]
        for _ in range(2):
            cloud.shelve(ONE)
            cloud.wait_for(ONE, SHELVED)
            consumers.append(cloud.unshelve(ONE))
            assert cloud.wait_for(ONE, ACTIVE).consumer == consumers[-1]
        assert cloud.placement.emptied == consumers[:-1]
        # It moves, is rebuilt and moves back by its consumer.
        cloud.wait_for_move(cloud.migrate(ONE), DONE)
        before = cloud.row(ONE).attempt
        cloud.rebuild(ONE)
        while cloud.row(ONE).attempt == before:
            cloud.wait(0.1)
        cloud.wait_for(ONE, ACTIVE)
        move = cloud.migrate(ONE, confirms=False)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        assert cloud.row(ONE).consumer == consumers[-1]
        cloud.delete(ONE)
        cloud.finish()


def test_words_are_refused_or_change_nothing_while_it_is_shelved_or_about_to_be():
    with cloud_of_one() as cloud:
        host_of(cloud).keeps_shelved = False
        cloud.wait(40.0)
        cloud.shelve(ONE)
        cloud.wait(1.0)
        assert cloud.answers[-1] == ChangeRefused(NO_SHELF)
        cloud.shelve(ONE, discards_disks=True)
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, SHELVED)
        cloud.shelve(ONE)
        cloud.start(ONE)
        cloud.migrate(ONE)
        cloud.wait(1.0)
        refused = [each.reason for each in cloud.answers if isinstance(each, ChangeRefused | MoveRefused)]
        assert all(SHELVED in reason or SHELVING in reason for reason in refused[1:]), refused
        assert cloud.row(ONE).state == SHELVED
        cloud.unshelve(ONE)
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE)
        assert not cloud.row(ONE).finds_disks
        cloud.finish()


def test_builds_that_fail_are_tried_on_other_hosts_and_in_the_end_it_is_shelved():
    with cloud_of_one(shelved=True) as cloud:
        cloud.fail(ONE, 2, 3, 4)
        consumer = cloud.unshelve(ONE)
        cloud.wait_for(ONE, ASSIGNED)
        row = cloud.wait_for(ONE, SHELVED, seconds=200.0)
        assert (row.attempt, row.consumer) == (4, consumer)
        assert "No more IP addresses" in row.reason
        assert cloud.placement.held(consumer) is None
        cloud.unshelve(ONE)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 5
        cloud.finish()


def test_without_room_it_stays_shelved_and_says_why():
    with cloud_of_one(shelved=True) as cloud:
        blocked = cloud.placement.block(keep="")
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, UNSHELVING, ABANDONED, SHELVED)
        row = cloud.wait_for(ONE, SHELVED)
        cloud.wait(10.0)
        row = cloud.row(ONE)
        assert row.reason.startswith("No valid host was found")
        cloud.placement.free(blocked)
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


# Crashes, two owners and deletions at each step

STEPS = (
    StorePoll,
    "write_allocations",
    put_on_shelf,
    take_work,
    "select_destinations",
    assign_unshelved,
)
"""What a conductor, or the endpoint in its process, writes and asks from the word to shelve on."""


@pytest.mark.parametrize("step", STEPS, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("pauses", [False, True], ids=["dies", "is paused"])
def test_a_conductor_that_dies_or_is_paused_at_a_step_is_followed_by_another(step, pauses):
    with cloud_of_one() as cloud:
        whose = "c1-conductor"
        cloud.before(step, lambda it: 45.0 if pauses else cloud.restart_after(it, 10.0), whose)
        cloud.shelve(ONE)
        cloud.wait_for(ONE, SHELVED, seconds=200.0)
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE, seconds=200.0)
        cloud.wait(60.0)
        cloud.finish()


@pytest.mark.parametrize("step", STEPS, ids=lambda each: getattr(each, "__name__", each))
def test_a_deletion_wins_at_each_step(step):
    with cloud_of_one() as cloud:
        cloud.shelve(ONE)
        if step in (take_work, "select_destinations", assign_unshelved):
            cloud.wait_for(ONE, SHELVED)
            cloud.unshelve(ONE)
        cloud.before(step, lambda _: cloud.delete(ONE) or 5.0, "c1-conductor")
        cloud.wait(60.0)
        assert cloud.row(ONE) is None
        cloud.finish()


@pytest.mark.parametrize("state", [SHELVING, SHELVED, UNSHELVING, ASSIGNED, STARTING])
def test_a_deletion_wins_in_each_state(state):
    for seed in range(3):
        with cloud_of_one(seed=seed) as cloud:
            cloud.shelve(ONE)
            if state != SHELVING:
                cloud.wait_for(ONE, SHELVED)
            if state not in (SHELVING, SHELVED):
                cloud.build_in(3.0)
                cloud.unshelve(ONE)
                cloud.wait_for(ONE, state, ACTIVE)
            cloud.delete(ONE)
            cloud.wait(60.0)
            assert cloud.row(ONE) is None
            cloud.finish()


def test_a_shelved_instance_is_deleted_by_another_host_if_its_own_is_removed():
    with cloud_of_one() as cloud:
        node = cloud.row(ONE).node
        cloud.shelve(ONE)
        shelf = cloud.wait_for(ONE, SHELVED).shelf
        cloud.process(f"{shelf.host}-agent").stop()
        cloud.network.databases["cell/c1"].run(RemoveNode(node), True)
        cloud.delete(ONE)
        cloud.wait_for(ONE, DELETING, DESTROYED)
        cloud.wait(30.0)
        assert cloud.row(ONE) is None and ONE not in cloud.guests.disks
        cloud.finish()


@pytest.mark.parametrize("seconds", [0.0, 90.0], ids=["not seen yet", "silent"])
def test_a_shelved_instance_is_deleted_by_another_host_if_its_own_is_silent(seconds):
    with cloud_of_one(shelved=True) as cloud:
        host = cloud.row(ONE).shelf.host
        cloud.process(f"{host}-agent").crash()
        cloud.wait(seconds)
        cloud.delete(ONE)
        # A silence is seen after a minute, and a deletion waits for a minute from then on.
        cloud.wait(10.0 if seconds else 160.0)
        assert cloud.row(ONE) is None and ONE not in cloud.guests.disks
        cloud.process(f"{host}-agent").start()
        cloud.finish()


@pytest.mark.parametrize("after", [0.02, 0.3, 1.5])
def test_an_agent_that_dies_while_it_destroys_the_guest_goes_on(after):
    with cloud_of_one() as cloud:
        agent = cloud.process(f"{cloud.row(ONE).host}-agent")
        cloud.shelve(ONE)
        cloud.wait_for(ONE, SHELVING, OFFLOADED, SHELVED)
        cloud.wait(after)
        agent.crash()
        cloud.loop.after(10.0, agent.start)
        cloud.wait_for(ONE, SHELVED)
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


# A host that is dead


@pytest.mark.parametrize("discards", [False, True], ids=["disks are kept", "disks are given up"])
def test_an_instance_whose_host_is_dead_is_shelved_by_the_word_of_an_operator(discards):
    with cloud_of_one() as cloud:
        host, agent = host_of(cloud), cloud.process(f"{cloud.row(ONE).host}-agent")
        agent.crash()
        host.die()
        cloud.shelve(ONE, discards_disks=discards)
        cloud.wait(5.0)
        cloud.migrate(ONE, evidence="it burnt")
        cloud.wait(70.0)
        # Before its session is free nothing is known of it.
        assert cloud.row(ONE).state == SHELVING
        assert "silent for long enough" in cloud.answers[-1].reason
        cloud.migrate(ONE, evidence="it burnt")
        cloud.wait_for(ONE, SHELVED)
        assert cloud.answers[-1].reason == SHELVED_WITHOUT_HOST
        told = [each.reason for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert "its host is dead: it burnt" in told
        cloud.unshelve(ONE)
        assert cloud.wait_for(ONE, ACTIVE).host != host.name
        agent.start()
        cloud.wait(30.0)
        assert not host.off
        cloud.finish()


# Without a rule


def a_host_is_away_when_its_guest_is_shelved(faults, seed):
    with cloud_of_one(faults, seed, hosts=1, vcpus=2) as cloud:
        cloud.guests.counts_room = True
        agent = cloud.process("c1-host0-agent")
        agent.crash()
        cloud.shelve(ONE)
        cloud.wait(30.0)
        promise(cloud.placement.held(ONE) is not None, "its room is free while its guest runs")
        cloud.loop.after(0.0, agent.start)
        cloud.wait_for(ONE, SHELVED)
        cloud.request("instance1")
        cloud.wait_for("instance1", ACTIVE)
        cloud.finish()


def test_the_room_is_freed_only_when_the_guest_is_gone():
    play(a_host_is_away_when_its_guest_is_shelved)
    assert "its room is free" in found(a_host_is_away_when_its_guest_is_shelved, faults.OFFLOADED_TOO_EARLY)


def room_that_is_freed_is_given_to_another(faults, seed):
    with cloud_of_one(faults, seed, hosts=1, vcpus=2) as cloud:
        cloud.guests.counts_room = True
        cloud.shelve(ONE)
        cloud.wait(10.0)
        cloud.request("instance1")
        cloud.wait(90.0)
        cloud.finish()


def test_a_host_never_runs_a_guest_beside_the_one_that_is_shelved():
    play(room_that_is_freed_is_given_to_another)
    assert "beside" in found(room_that_is_freed_is_given_to_another, faults.OFFLOADED_TOO_EARLY)


def an_instance_is_unshelved(faults, seed):
    with cloud_of_one(faults, seed, shelved=True) as cloud:
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()
        cloud.check_emptied()


def test_a_consumer_that_was_emptied_never_holds_anything_again():
    play(an_instance_is_unshelved)
    assert "were emptied" in found(an_instance_is_unshelved, faults.SAME_CONSUMER)


def an_owner_is_paused_before_it_assigns(faults, seed):
    with cloud_of_one(faults, seed, shelved=True) as cloud:
        cloud.pause_before(assign_unshelved, 60.0, "c1-conductor")
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE, seconds=120.0)
        cloud.wait(90.0)
        cloud.finish()


def test_of_two_owners_of_an_unshelving_the_last_one_assigns():
    play(an_owner_is_paused_before_it_assigns)
    assert found(an_owner_is_paused_before_it_assigns, faults.NO_SHELF_OWNER)


def an_owner_is_paused_before_it_claims(faults, seed):
    with cloud_of_one(faults, seed, shelved=True) as cloud:
        cloud.pause_before("select_destinations", 60.0, "c1-conductor")
        cloud.unshelve(ONE)
        cloud.wait_for(ONE, ACTIVE, seconds=120.0)
        cloud.wait(90.0)
        cloud.finish()


def test_a_claim_of_an_earlier_owner_comes_too_late():
    play(an_owner_is_paused_before_it_claims)
    assert found(an_owner_is_paused_before_it_claims, faults.NO_GENERATION)
