"""Drains that empty a host: within the limits of moves, whoever dies, and with what cannot move named."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from roost.model.instance import ACTIVE, POWERING_ON, STOPPED
from roost.model.move_states import DONE, FAILED_MOVE, REQUESTED, STOPPING
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.drains import find_drain_word, read_open_drains
from roost.state.api_database.operator_words import say_words
from roost.state.cell_database.departures import DrainProgress, describe_drain
from roost.state.cell_database.move_ends import SOURCE_SILENT
from roost.state.cell_database.move_limits import MoveLimits, count_moves
from roost.state.cell_database.moves import begin_move, keeps_no_disks
from support.simulation.kinds import PAUSES
from support.simulation.network import BrokenPromise
from support.simulation.process import Process
from support.simulation.promises import promise
from support.simulation.scripted import Scripted
from support.simulation.weather import CALM
from support.works import is_of

HOST = "c1-host0"
NUMBER = 12
LIMITS = MoveLimits(per_host=2, per_cell=3)


class Drained(Scripted):
    """A cloud whose super conductors empty what is drained. At each message the moves at once are counted."""

    drains = True

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"cells": ("c1",), "vcpus": NUMBER + 2, "move_limits": LIMITS} | named)
        self.most: dict[str, int] = {}
        """The greatest number of moves at once that was seen, by host, and of the cell as an empty name."""
        self.asked: list[tuple[str, str]] = []
        """The requests of moves: process and uuid of the move."""
        self.network.interrupt = self._look

    def _look(self, process: Process, message: Any) -> float:
        counts = self.read("cell/c1", count_moves())
        for name, number in (*counts.of_hosts.items(), ("", counts.in_cell)):
            self.most[name] = max(self.most.get(name, 0), number)
            promise(
                number <= (LIMITS.per_host if name else LIMITS.per_cell), f"{number} moves at once: {name}"
            )
        if is_of(message, begin_move):
            self.asked.append((process.name, message.options["uuid"]))
        return 0.0

    def say(self, moves: bool, enabled: bool = False, host: str = HOST, *, live: bool = False) -> None:
        """An operator drains a host, pauses its drain, or enables it."""
        word = SaidWord(Subject("c1", host), enabled, "fan", self.loop.now, moves, live)
        self.network.databases["api"].run(say_words((word,), None), True)

    def progress(self, host: str = HOST) -> DrainProgress:
        subject = Subject("c1", host)
        word = self.read("api", find_drain_word(subject))
        found: DrainProgress = self.read("cell/c1", describe_drain(subject, word.since))
        return found

    def wait_until_left(self, left: int, seconds: float = 600.0) -> DrainProgress:
        until = self.loop.now + seconds
        while (now := self.progress()).left > left or (not left and now.moving):
            if self.loop.now > until:
                raise BrokenPromise(f"after {seconds:g} s: {now}")
            self.wait(0.5)
        return now

    @property
    def on_host(self) -> list[str]:
        return sorted(each.uuid for each in self.rows("c1").values() if each.host == HOST)


@contextmanager
def cloud_of_a_full_host(number: int = NUMBER, **named: Any) -> Iterator[Drained]:
    cloud = Drained(**named)
    with cloud:
        uuids = [f"instance{each}" for each in range(number)]
        for uuid in uuids:
            cloud.request(uuid, host=HOST)
        for uuid in uuids:
            cloud.wait_for(uuid, ACTIVE)
        assert cloud.on_host == sorted(uuids)
        yield cloud


def test_a_drained_host_is_emptied_within_the_limits_and_no_move_is_asked_for_twice() -> None:
    for seed in range(3):
        with cloud_of_a_full_host(seed=seed) as cloud:
            cloud.say(moves=True)
            assert cloud.progress() == DrainProgress(NUMBER, 0, 0, 0, (), NUMBER)
            ended = cloud.wait_until_left(0)
            assert (ended.moved, ended.stuck) == (NUMBER, 0)
            assert (cloud.most[HOST], cloud.most[""]) == (LIMITS.per_host, LIMITS.per_host)
            moves = cloud.moves("c1").values()
            assert sorted(each.instance for each in moves) == sorted(cloud.accepted)
            assert {each.state for each in moves} == {DONE}
            assert {process for process, _ in cloud.asked} == {"super0", "super1"}
            cloud.wait(20.0)
            assert cloud.read("api", read_open_drains()) == []
            cloud.finish()


def test_instances_of_a_live_drain_move_while_they_run_if_they_can() -> None:
    with cloud_of_a_full_host(4) as cloud:
        cloud.wait(30.0)  # The hosts have reported that their guests can move.
        cloud.stop("instance0")
        cloud.wait_for("instance0", STOPPED)
        cloud.say(moves=True, live=True)
        cloud.wait_until_left(0)
        moves = sorted(cloud.moves("c1").values(), key=lambda each: each.began, reverse=True)
        assert {each.instance: each.kind for each in moves} == {
            "instance0": "migrate",
            **dict.fromkeys(("instance1", "instance2", "instance3"), "live_migrate"),
        }, "the first move of each"
        cloud.finish()


def test_an_instance_whose_live_migration_fails_is_stopped_on_the_way() -> None:
    with cloud_of_a_full_host(1) as cloud:
        cloud.wait(30.0)
        # Each host that it could go to while it runs fails once.
        for attempt in (2, 3, 4):
            cloud.fail("instance0", attempt)
        cloud.say(moves=True, live=True)
        cloud.wait_until_left(0)
        first, *others = sorted(cloud.moves("c1").values(), key=lambda each: each.began)
        assert (first.kind, first.state) == ("live_migrate", FAILED_MOVE)
        assert {each.kind for each in others} == {"migrate"} and others[-1].state == DONE
        cloud.finish()


def test_a_host_of_fifty_instances_is_empty_within_the_time_that_its_slowest_moves_take() -> None:
    number = 50
    with cloud_of_a_full_host(number, vcpus=number + 2) as cloud:
        cloud.build_in(20.0)
        began = cloud.loop.now
        cloud.say(moves=True)
        cloud.wait_until_left(0, seconds=5_000.0)
        slowest = max(each.changed_at - each.began for each in cloud.moves("c1").values())
        assert cloud.loop.now - began <= slowest * number / LIMITS.per_host
        cloud.finish()


def test_only_so_many_instances_are_locked_as_may_move() -> None:
    for seed in range(3):
        with cloud_of_a_full_host(seed=seed) as cloud:
            cloud.say(moves=True)
            while cloud.progress().left:
                cloud.wait(0.1)
                locked = [each for each in cloud.moves("c1").values() if each.state == REQUESTED]
                assert len(locked) <= LIMITS.per_host
            cloud.finish()


@pytest.mark.parametrize("seed", range(6))
def test_a_host_is_emptied_within_the_limits_whatever_happens_to_messages_and_processes(seed: int) -> None:
    with cloud_of_a_full_host(seed=seed, conductors=2) as cloud:
        cloud.network.weather = PAUSES
        cloud.say(moves=True)
        for _ in range(8):
            cloud.wait(10.0)
            cloud.restart_after(cloud.random.choice(cloud.processes), 5.0)
        cloud.network.weather = CALM
        for process in cloud.processes:
            process.go_on()
            process.start()
        # An instance whose move has failed several times waits for long.
        assert cloud.wait_until_left(0, seconds=3_000.0).moved == NUMBER
        cloud.finish()


def test_a_drain_goes_on_after_all_conductors_were_killed_in_its_middle() -> None:
    for seed in range(3):
        with cloud_of_a_full_host(seed=seed) as cloud:
            cloud.say(moves=True)
            cloud.wait_until_left(NUMBER // 2)
            for process in cloud.conductors:
                process.crash()
            cloud.wait(20.0)
            assert cloud.progress().left
            for process in cloud.conductors:
                process.start()
            assert cloud.wait_until_left(0).moved == NUMBER
            # A move whose hosts heard nothing for so long may have failed, and was tried again.
            failed = [each.reason for each in cloud.moves("c1").values() if each.state == FAILED_MOVE]
            assert all("took longer" in each or "not stopped" in each for each in failed if each), failed
            cloud.finish()


def test_an_instance_that_cannot_move_is_named_with_the_reason_and_tried_again() -> None:
    with cloud_of_a_full_host(4) as cloud:
        cloud.fail("instance2", *range(2, 20))
        cloud.say(moves=True)
        left = cloud.wait_until_left(1)
        while left.moving or not left.staying:
            cloud.wait(0.5)
            left = cloud.progress()
        assert (left.left, left.stuck, left.moved) == (1, 1, 3)
        [named] = left.staying
        assert (named.instance, named.state) == ("instance2", ACTIVE)
        assert "No more IP addresses" in (named.reason or "")
        cloud.wait(60.0)
        while not (staying := cloud.progress().staying):
            cloud.wait(0.5)  # The next try is under way.
        [named] = staying
        assert 2 <= named.tries <= 4, "the pauses grow"
        failed = [each.uuid for each in cloud.moves("c1").values() if each.state == FAILED_MOVE]
        assert len(failed) == named.tries
        for host in cloud.guests.hosts.values():
            host.fails.clear()
        assert cloud.wait_until_left(0).moved == 4
        cloud.finish()


def test_a_lost_instance_is_named_with_its_state_and_does_not_hold_the_others_up() -> None:
    with cloud_of_a_full_host(3) as cloud:
        cloud.guests.hosts[HOST].lose("instance1")
        cloud.wait_for("instance1", "lost")
        cloud.say(moves=True)
        left = cloud.wait_until_left(1)
        assert [(each.instance, each.state) for each in left.staying] == [("instance1", "lost")]
        assert left.stuck == 1
        cloud.finish()


def test_a_drain_does_not_count_what_waits_for_a_silent_host_as_moving() -> None:
    with cloud_of_a_full_host(3) as cloud:
        cloud.guests.hosts[HOST].unstoppable = 1.0
        agent = cloud.process(f"{HOST}-agent")
        cloud.say(moves=True)
        while not any(each.state == STOPPING for each in cloud.moves("c1").values()):
            cloud.wait(0.1)
        agent.crash()
        cloud.guests.hosts[HOST].unstoppable = 0.0
        until = cloud.loop.now + 400.0
        while (now := cloud.progress()).stuck < 3 or now.moving:
            promise(cloud.loop.now < until, f"it waits for a host that is dead: {now}")
            cloud.wait(0.5)
        while any(each.state != FAILED_MOVE for each in cloud.moves("c1").values()):
            promise(cloud.loop.now < until, f"a move does not end: {cloud.moves('c1')}")
            cloud.wait(0.5)
        now = cloud.progress()
        assert (now.stuck, now.moving) == (3, 0)
        assert {each.reason for each in now.staying if each.state == POWERING_ON} == {
            f"host {HOST} is silent, or carries out no orders"
        }
        failed = [each for each in cloud.moves("c1").values() if each.state == FAILED_MOVE]
        assert failed and all(SOURCE_SILENT in (each.reason or "") for each in failed)
        agent.start()
        assert cloud.wait_until_left(0, seconds=3_000.0).moved == 3
        cloud.finish()


def test_instances_whose_disks_stay_are_named_with_the_reason() -> None:
    with cloud_of_a_full_host(2) as cloud:
        cloud.guests.hosts[HOST].store = None
        cloud.wait(40.0)
        cloud.say(moves=True)
        cloud.wait(5.0)
        left = cloud.progress()
        assert (left.left, left.stuck, left.waiting) == (2, 2, 0)
        assert {each.reason for each in left.staying} == {keeps_no_disks(HOST)}
        cloud.finish()


def test_a_paused_drain_asks_for_no_move_and_another_super_conductor_resumes_it() -> None:
    with cloud_of_a_full_host() as cloud:
        first, second = cloud.supers
        second.crash()
        cloud.say(moves=True)
        cloud.wait_until_left(NUMBER - 3)
        cloud.say(moves=False)
        # One look may be on its way.
        cloud.wait(3.0)
        asked = len(cloud.asked)
        cloud.wait(60.0)
        paused = cloud.progress()
        assert (len(cloud.asked), paused.moving) == (asked, 0)
        assert paused.left == NUMBER - paused.moved > 0
        first.crash()
        second.start()
        cloud.say(moves=True)
        assert cloud.wait_until_left(0).moved == NUMBER
        assert {process for process, _ in cloud.asked[asked:]} == {second.name}
        cloud.finish()


def test_an_enabled_host_keeps_its_instances_and_moves_under_way_go_on() -> None:
    with cloud_of_a_full_host() as cloud:
        cloud.say(moves=True)
        cloud.wait_until_left(NUMBER - 3)
        cloud.say(moves=False, enabled=True)
        cloud.wait(3.0)
        asked = len(cloud.asked)
        cloud.wait(60.0)
        assert len(cloud.asked) == asked
        assert {each.state for each in cloud.moves("c1").values()} == {DONE}
        assert len(cloud.on_host) == NUMBER - len(cloud.moves("c1"))
        cloud.finish()


def test_a_user_may_delete_what_waits_to_move() -> None:
    with cloud_of_a_full_host(4) as cloud:
        cloud.build_in(20.0)
        cloud.say(moves=True)
        cloud.wait(5.0)
        assert cloud.progress().moving == LIMITS.per_host
        cloud.delete("instance0", "instance3")
        assert cloud.wait_until_left(0).stuck == 0
        cloud.finish()


def test_moves_to_one_host_wait_for_each_other_and_all_get_there() -> None:
    with cloud_of_a_full_host(3, hosts=3, conductors=2) as cloud:
        for number in range(3):
            cloud.request(f"other{number}", host="c1-host1")
            cloud.wait_for(f"other{number}", ACTIVE)
        cloud.build_in(2.0)
        uuids = [f"{kind}{number}" for number in range(3) for kind in ("instance", "other")]
        moves = [cloud.migrate(uuid, to_host="c1-host2") for uuid in uuids]
        for move in moves:
            cloud.wait_for_move(move, DONE, seconds=200.0)
        assert cloud.most["c1-host2"] == LIMITS.per_host
        cloud.finish()


def test_hosts_that_leave_for_each_other_do_not_wait_for_ever() -> None:
    with cloud_of_a_full_host(3, hosts=2, conductors=2, vcpus=5) as cloud:
        for number in range(3):
            cloud.request(f"other{number}", host="c1-host1")
            cloud.wait_for(f"other{number}", ACTIVE)
        cloud.build_in(2.0)
        for host in (HOST, "c1-host1"):
            cloud.say(moves=True, host=host)
        cloud.wait(60.0)
        ended = [each for each in cloud.moves("c1").values() if each.state in (DONE, FAILED_MOVE)]
        assert len(ended) > len(cloud.moves("c1")) / 2
        for host in (HOST, "c1-host1"):
            cloud.say(moves=False, enabled=True, host=host)
        cloud.finish()
