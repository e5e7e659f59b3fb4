"""What waits for a host that is proved to be dead goes on without it: builds, moves to it, reverts."""

from unittest.mock import patch

import pytest

from roost.conductor.evacuation import dead_hosts, judgement
from roost.conductor.evacuation.options import EvacuationOptions
from roost.model.fence import Fence
from roost.model.instance import ACTIVE, LOST, STARTING
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DISCARDING,
    DONE,
    RESUMING,
    REVERTED,
    REVERTING,
    SWITCHED,
)
from roost.model.move_states import STARTING as TARGET_STARTING
from roost.model.spec import Flavor
from roost.state.cell_database import building, move_ends
from roost.state.cell_database.history import read_history
from support.simulation.agents import DriverService
from support.simulation.network import BrokenPromise
from support.simulation.process import CELL
from support.simulation.scripted import NONE, Scripted, found

BIG = Flavor("big", 2, 1024)
ONE = "instance0"
FENCE = Fence(60.0, 20.0, guarded=True)
AWAY = 500.0
"""Seconds in which an agent that is cut off does not come back."""
DEAD = "its host is dead: fenced by its agent after 60 s of silence"


class Cloud(Scripted):
    """A cloud of one cell whose dead hosts are evacuated by themselves."""

    evacuations = EvacuationOptions(after=100.0)

    def __init__(self, faults=NONE, seed=1, **named):
        super().__init__(faults, seed, **{"cells": ("c1",), "hosts": 3, "fence": FENCE} | named)

    def cut_off(self, host, seconds=AWAY):
        self.cut(f"{host}-agent", CELL, seconds=seconds)

    def cut_off_as_it_starts_the_guest(self, seconds=AWAY):
        """The next host that is told to start a guest is cut off as it does; returns its name."""
        start = DriverService.start
        hosts = []

        async def start_cut_off(driver, context, instance):
            if not hosts:
                hosts.append(instance.host)
                self.cut_off(instance.host, seconds)
            await start(driver, context, instance)

        with patch.object(DriverService, "start", start_cut_off):
            self.wait_until(lambda: hosts)
        return hosts[0]

    def wait_until(self, holds, seconds=300.0):
        until = self.loop.now + seconds
        while not holds():
            if self.loop.now > until:
                raise BrokenPromise(f"it does not go on: {self.row(ONE)}, {self.moves('c1')}")
            self.wait(0.5)

    def reasons(self):
        told = self.read("cell/c1", read_history(ONE))
        return [each.reason for each in told.transitions]

    def begin(self):
        """One instance runs; returns its host."""
        self.request(ONE)
        return self.wait_for(ONE, ACTIVE).host

    def moved(self, **named):
        """One instance has moved, and waits for a word; returns the move and both hosts."""
        source = self.begin()
        move = self.migrate(ONE, confirms=False, **named)
        self.wait_for_move(move, SWITCHED)
        return move, source, self.row(ONE).host

    def is_alone_at(self, host):
        """Whether the guest of the instance runs once, on a host, as its row says."""
        row = self.row(ONE)
        return row.state == ACTIVE and self.guests.running(ONE) == [(host, row.attempt)]


def a_host_dies_as_it_builds(faults, seed):
    with Cloud(faults, seed) as cloud:
        cloud.request(ONE)
        host = cloud.cut_off_as_it_starts_the_guest()
        cloud.wait(1.0)
        assert (cloud.row(ONE).state, cloud.row(ONE).host) == (STARTING, host)
        cloud.wait_until(lambda: cloud.row(ONE).host != host)
        assert DEAD in cloud.reasons()
        assert cloud.is_alone_at(cloud.wait_for(ONE, ACTIVE).host)
        cloud.wait(AWAY)
        cloud.finish()


def test_an_attempt_that_was_told_to_start_on_a_host_that_is_dead_is_followed_by_an_alternate():
    a_host_dies_as_it_builds(NONE, 1)


def test_a_host_of_which_nothing_proves_that_it_is_dead_keeps_its_attempt():
    with Cloud(fence=None) as cloud:
        cloud.request(ONE)
        host = cloud.cut_off_as_it_starts_the_guest()
        cloud.wait(AWAY - 20.0)
        assert (cloud.row(ONE).state, cloud.row(ONE).host) == (STARTING, host)
        cloud.wait_for(ONE, ACTIVE, seconds=60.0)
        assert cloud.is_alone_at(host)
        cloud.finish()


def a_target_dies_as_it_starts_the_guest(faults, seed):
    with Cloud(faults, seed) as cloud:
        source = cloud.begin()
        move = cloud.migrate(ONE)
        first = cloud.cut_off_as_it_starts_the_guest()
        cloud.wait(1.0)
        assert cloud.move(move).state == TARGET_STARTING
        cloud.wait_for_move(move, DONE, seconds=200.0)
        assert cloud.row(ONE).host not in (source, first)
        assert cloud.is_alone_at(cloud.row(ONE).host)
        cloud.wait(AWAY)
        cloud.finish()


def test_a_target_that_dies_as_it_starts_the_guest_is_followed_by_an_alternate():
    a_target_dies_as_it_starts_the_guest(NONE, 1)


@pytest.mark.parametrize("script", [a_host_dies_as_it_builds, a_target_dies_as_it_starts_the_guest])
def test_without_the_order_to_destroy_the_attempt_of_a_host_that_was_dead_stays_there(script, monkeypatch):
    monkeypatch.setattr(building, "give_orders", lambda *_: lambda _: None)
    monkeypatch.setattr(move_ends, "give_orders", lambda *_: lambda _: None)
    assert found(script, NONE)


def a_host_is_taken_for_dead(faults, seed):
    with Cloud(faults, seed, fence=None) as cloud:
        cloud.request(ONE)
        cloud.cut_off_as_it_starts_the_guest()
        cloud.wait(2 * AWAY)
        cloud.finish()


def test_without_a_proof_the_guest_of_an_attempt_that_goes_on_runs_twice(monkeypatch):
    a_host_is_taken_for_dead(NONE, 1)
    always = judgement.Judgement("fence", "somebody thinks so")
    monkeypatch.setattr(dead_hosts, "judged", lambda *_: always)
    assert "while it runs as" in found(a_host_is_taken_for_dead, NONE)


def test_a_revert_goes_on_without_a_target_that_is_dead():
    with Cloud() as cloud:
        move, source, target = cloud.moved()
        cloud.cut_off(target)
        cloud.wait(1.0)
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTING)
        cloud.wait_for_move(move, REVERTED, seconds=200.0)
        assert cloud.is_alone_at(source)
        cloud.wait(AWAY)
        cloud.finish()
        assert cloud.guests.hosts[target].stopped.get(ONE) is None


def test_a_revert_fails_whose_source_is_dead():
    with Cloud() as cloud:
        move, source, target = cloud.moved()
        cloud.cut_off(source)
        cloud.wait(1.0)
        cloud.revert(move)
        cloud.wait_for_move(move, RESUMING)
        ended = cloud.wait_for_move(move, SWITCHED, seconds=200.0)
        assert ended.reason == DEAD
        assert cloud.is_alone_at(target)
        cloud.confirm(move)
        cloud.wait_for_move(move, DONE, seconds=2 * AWAY)
        cloud.finish()


def test_a_target_that_dies_as_a_revert_has_failed_loses_the_instance_until_a_word_is_said():
    with Cloud(hosts=11) as cloud:
        move, source, target = cloud.moved()
        cloud.cut_off(source)
        cloud.wait(1.0)
        cloud.revert(move)
        cloud.wait_for_move(move, RESUMING)
        cloud.cut_off(target)
        cloud.wait_for_move(move, CONTINUING, seconds=200.0)
        ended = cloud.wait_for_move(move, SWITCHED, seconds=200.0)
        assert ended.reason == DEAD
        assert cloud.row(ONE).state == LOST
        cloud.confirm(move)
        # It is the only guest that is left, so it waits for no host.
        cloud.wait_until(lambda: cloud.row(ONE).host not in (source, target))
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.is_alone_at(cloud.row(ONE).host)
        cloud.wait(2 * AWAY)
        cloud.finish()


def test_an_evacuated_instance_is_evacuated_again_while_its_first_host_is_away():
    with Cloud() as cloud:
        first = cloud.begin()
        cloud.cut_off(first, seconds=3 * AWAY)
        cloud.wait_until(lambda: cloud.row(ONE).host != first)
        cloud.wait_for(ONE, ACTIVE)
        second = cloud.row(ONE).host
        (move,) = cloud.moves("c1")
        assert cloud.move(move).state == CLEANING
        cloud.cut_off(second, seconds=3 * AWAY)
        cloud.wait_until(lambda: cloud.row(ONE).host not in (first, second))
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.move(move).state == DONE
        assert cloud.is_alone_at(cloud.row(ONE).host)
        cloud.wait(3 * AWAY)
        cloud.finish()
        assert all(ONE not in cloud.guests.hosts[host].stopped for host in (first, second))


@pytest.mark.parametrize("word", ["confirm", "revert"])
def test_a_host_that_dies_as_it_tidies_up_after_a_resize_in_place_is_evacuated(word):
    with Cloud(vcpus=4) as cloud:
        host = cloud.begin()
        move = cloud.migrate(ONE, in_place=True, to_host=host, flavor=BIG, confirms=False)
        cloud.wait_for_move(move, SWITCHED)
        getattr(cloud, word)(move)
        cloud.wait_for_move(move, CLEANING if word == "confirm" else DISCARDING)
        cloud.cut_off(host)
        cloud.wait_until(lambda: cloud.row(ONE).host != host)
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.is_alone_at(cloud.row(ONE).host)
        assert cloud.row(ONE).flavor == ("big" if word == "confirm" else "small")
        cloud.wait(AWAY)
        cloud.finish()
