"""Hosts that are cut off, frozen or dead, and evacuated by themselves: step by step, and drawn.

Where a rule keeps a guest from running twice, or a host from being evacuated without need, the schedule is
played without the rule too, and must break a promise then.
"""

from contextlib import contextmanager

from roost.conductor.evacuation.options import EvacuationOptions
from roost.model.fence import Fence
from roost.model.instance import ACTIVE
from roost.model.move import CLEANING, DONE
from roost.state.cell_database.history import read_history
from roost.state.cell_database.silent_hosts import read_silent_hosts
from support.simulation.network import BrokenPromise
from support.simulation.process import CELL
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"
AFTER = 100.0
GUARDED = Fence(60.0, 20.0, guarded=True)
UNGUARDED = Fence(60.0, 20.0)


class Cloud(Scripted):
    """A cloud of a cell whose dead hosts are evacuated by themselves."""

    evacuations = EvacuationOptions(after=AFTER)


class WithBmcs(Scripted):
    """The same with a command that powers hosts off."""

    evacuations = EvacuationOptions(after=AFTER, command=("off",))


class Trusting(Scripted):
    """The same with fences that no watchdog guards."""

    evacuations = EvacuationOptions(after=AFTER, unguarded=True)


@contextmanager
def cloud_of_one(faults=NONE, seed=1, world=Cloud, fence=GUARDED, **named):
    """A cloud of a cell with three hosts, and one instance."""
    with world(faults, seed, **{"cells": ("c1",), "hosts": 3, "fence": fence} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        yield cloud


def agent_of(cloud, uuid=ONE):
    """The agent of the host of an instance."""
    return cloud.process(f"{cloud.row(uuid).host}-agent")


def evacuations(cloud):
    """All evacuations of the cell."""
    return [each for each in cloud.moves("c1").values() if each.kind == "evacuate"]


def wait_for_evacuation(cloud, seconds=200.0):
    """Wait until the instance runs on another host. Returns the move."""
    until = cloud.loop.now + seconds
    while not any(each.state in (CLEANING, DONE) for each in evacuations(cloud)):
        if cloud.loop.now > until:
            raise BrokenPromise(f"nothing is evacuated: {cloud.read('cell/c1', read_silent_hosts())}")
        cloud.wait(1.0)
    return next(each for each in evacuations(cloud) if each.state in (CLEANING, DONE))


def test_a_host_that_is_cut_off_stops_its_guests_and_is_evacuated():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.cut(agent.name, CELL, seconds=400.0)
        cloud.wait(59.0)
        assert cloud.guests.running(ONE) == [(host, 1)]
        cloud.wait(10.0)
        assert cloud.guests.running(ONE) == []
        move = wait_for_evacuation(cloud)
        assert (move.proof.kind, move.proof.evidence) == (
            "fence",
            "fenced by its agent after 60 s of silence",
        )
        assert move.proof.by.startswith("super")
        assert cloud.machines[host].resets == 0
        assert cloud.row(ONE).host != host
        told = [each.reason for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert "its host is dead: fenced by its agent after 60 s of silence" in told
        cloud.wait(300.0)
        cloud.finish()
        assert cloud.move(move.uuid).state == DONE


def test_guests_that_were_not_evacuated_are_started_again_by_the_cell():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.cut(agent.name, CELL, seconds=75.0)
        cloud.wait(70.0)
        assert cloud.guests.running(ONE) == []
        cloud.wait_for(ONE, "powering-on")
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.guests.running(ONE) == [(host, 1)]
        assert not evacuations(cloud)
        cloud.finish()
