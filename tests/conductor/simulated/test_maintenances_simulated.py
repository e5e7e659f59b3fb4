"""Maintenances that run: each host is empty when the hook is called, whoever dies, and all are given back."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from roost.conductor.maintenance.hook import HookCall, MaintenanceOptions
from roost.conductor.maintenance.waves import (
    ENABLED_MEANWHILE,
    MAY_COME,
    NOT_MOVED,
    Maintenances,
    carry_maintenances,
)
from roost.model.instance import ACTIVE, SHELVED, UNSHELVING, BuildRequest, Requester
from roost.model.maintenance import (
    CANCELLED,
    DISABLING,
    DONE,
    EMPTYING,
    IN_WORK,
    LEFT_OUT,
    PAUSED,
    RETURNED,
    RETURNING,
    RUNNING,
    WAITING,
    MaintainedHost,
    Maintenance,
)
from roost.model.move_states import DONE as DONE_MOVE
from roost.model.move_states import FAILED_MOVE
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.drains import ENDED
from roost.state.api_database.maintenance_rows import find_maintenance, list_hosts, read_wave
from roost.state.api_database.maintenance_waves import (
    begin_call,
    begin_wave,
    end_call,
    end_maintenance,
    note_announced,
    note_empty,
    note_returned,
)
from roost.state.api_database.maintenances import (
    begin_maintenance,
    cancel_maintenance,
    finish_host,
    pause_maintenance,
    resume_maintenance,
)
from roost.state.api_database.operator_words import say_words
from roost.state.api_database.tables import operator_words
from roost.state.cell_database.move_limits import MoveLimits
from support.clouds import spec
from support.simulation.cloud_world import Accept
from support.simulation.hosts import FOREIGN
from support.simulation.kinds import PAUSES
from support.simulation.maintenances import (
    HOOK,
    WORDS,
    HookService,
    PlanningScheduler,
    WordsService,
    every_event,
    stored_words,
)
from support.simulation.network import BrokenPromise
from support.simulation.process import SCHEDULER, Process, RemoteService
from support.simulation.scripted import Scripted
from support.simulation.weather import CALM
from support.simulation.world import Faults
from support.works import is_of

UUID = "maintenance"
BY = Requester("operator", "admins", "req-maintenance")
OPTIONS = MaintenanceOptions(pause_seconds=5.0, stuck_seconds=60.0)


class Maintained(Scripted):
    """A cloud of full and empty hosts, of which all are to be maintained."""

    drains = True

    def __init__(self, *, hooked: bool = True, **named: Any) -> None:
        self.hooked = hooked
        super().__init__(**{"cells": ("c1",), "hosts": 4, "vcpus": 4} | named)
        self.network.services[SCHEDULER] = PlanningScheduler(self.placement)
        self.words = WordsService(self.network.databases["api"], self.placement)
        self.network.services[WORDS] = self.words
        self.beside = Process("programs", self.network, lambda process: None)
        self.beside.start()
        self.hook = HookService(self.guests.hosts, self.beside)

    def _begin_super(self, process: Process) -> None:
        super()._begin_super(process)
        process.services[HOOK] = self.hook
        context: Any = process.context
        hook = RemoteService(context, HOOK) if self.hooked else None
        work: Any = Maintenances(
            process.memory["working"].tenure, RemoteService(context, WORDS), hook, OPTIONS
        )
        process.run("maintains", carry_maintenances(context, work))

    # What operators do

    def begin(self, *hosts: str, **named: Any) -> None:
        """An operator begins the maintenance of hosts, of all by default."""
        at = self.loop.now
        wanted = Maintenance(
            uuid=UUID,
            state=RUNNING,
            by=BY,
            began=at,
            changed_at=at,
            **{"reserve": False} | named,
        )
        cells = {host: self.guests.hosts[host].cell for host in hosts or self.guests.hosts}
        self.api(begin_maintenance(wanted, cells, None))

    def api(self, word: Any) -> Any:
        """A conductor carries out an operator's word."""
        return self.network.databases["api"].run(word, True)

    def pause(self) -> None:
        self.api(pause_maintenance(UUID, "lunch", self.loop.now, BY))

    def resume(self) -> None:
        self.api(resume_maintenance(UUID, self.loop.now, BY))

    def say(self, host: str, enabled: bool, reason: str = "by hand") -> None:
        """An operator enables or disables a host by hand."""
        self.api(say_words((SaidWord(Subject("c1", host), enabled, reason, self.loop.now),), None))
        self.words.announce()

    def request_perhaps(self, uuid: str) -> None:
        """A user asks for an instance, and may never hear whether it is made."""
        request = BuildRequest(request_id=f"of {uuid}", spec=spec(1), instances=(uuid,), min_count=1)
        self.doubtful.add(uuid)
        self._user.run(f"asks for {uuid}", self._ask_again(Accept(request), tries=2))

    # What is seen

    @property
    def maintenance(self) -> Maintenance:
        found: Maintenance = self.read("api", find_maintenance(UUID))
        return found

    @property
    def hosts(self) -> dict[str, MaintainedHost]:
        return {each.host: each for each in self.read("api", list_hosts(UUID, 1000))}

    def in_state(self, state: str) -> list[str]:
        """The hosts in a state."""
        return [host for host, each in self.hosts.items() if each.state == state]

    @property
    def in_work(self) -> list[str]:
        return self.in_state(IN_WORK)

    @property
    def disabled(self) -> set[str]:
        return {each.subject.host for each in self.words_said() if not each.enabled}

    def words_said(self) -> list[SaidWord]:
        found: list[SaidWord] = self.network.databases["api"].run(stored_words, False)
        return found

    def wait_until(
        self, seen: Callable[[], bool], what: str, seconds: float = 900.0, step: float = 0.5
    ) -> None:
        """Wait for something. Raises: `BrokenPromise` after ``seconds``."""
        until = self.loop.now + seconds
        while not seen():
            if self.loop.now > until:
                states = {host: each.state for host, each in self.hosts.items()}
                raise BrokenPromise(f"not {what} after {seconds:g} s: {self.maintenance}, {states}")
            self.wait(step)

    def wait_for_state(self, *states: str, seconds: float = 900.0) -> None:
        self.wait_until(lambda: self.maintenance.state in states, f"{states}", seconds)

    def check_ended(self, left_out: Collection[str] = ()) -> None:
        """All hosts but some were worked on, and none is disabled any more."""
        ended = {host: each.state for host, each in self.hosts.items()}
        assert ended == {host: LEFT_OUT if host in left_out else RETURNED for host in ended}
        assert not self.disabled
        if self.hooked:
            assert {call.host for _, call in self.hook.called} >= ended.keys() - {*left_out}
        self.finish()


@contextmanager
def full_cloud(number: int = 8, **named: Any) -> Iterator[Maintained]:
    """A cloud of four hosts with so many instances, two on each at first."""
    cloud = Maintained(**named)
    with cloud:
        hosts = sorted(cloud.guests.hosts)
        for each in range(number):
            cloud.request(f"instance{each}", host=hosts[each % len(hosts)])
        for each in range(number):
            cloud.wait_for(f"instance{each}", ACTIVE)
        yield cloud


@pytest.mark.parametrize("seed", range(3))
def test_all_hosts_are_worked_on_while_they_are_empty_and_given_back(seed: int) -> None:
    with full_cloud(seed=seed) as cloud:
        cloud.begin()
        cloud.wait_for_state(DONE)
        assert cloud.maintenance.wave > 1
        assert len(cloud.hook.called) == len(cloud.guests.hosts)
        cloud.check_ended()


STEPS = (
    begin_wave,
    note_announced,
    note_empty,
    begin_call,
    end_call,
    note_returned,
    end_maintenance,
    "follow_up",
)
"""What the owner of a maintenance sends, in the order of a wave."""


def check_once(cloud: Maintained) -> None:
    """Each wave has hosts, and none began twice."""
    waves = {each.wave for each in cloud.hosts.values() if each.wave}
    assert sorted(waves) == list(range(1, cloud.maintenance.wave + 1))
    begun = [
        each.detail
        for each in cloud.read("api", every_event)
        if each.kind == "maintenance_wave" and each.name == UUID
    ]
    assert len(begun) == cloud.maintenance.wave


@pytest.mark.parametrize("step", STEPS, ids=lambda step: getattr(step, "__name__", step))
@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_it_goes_on_when_its_owner_dies_at_any_step(step: Any, seconds: float) -> None:
    """``seconds``: after the step is sent, so that it may be written, and 0: just before."""
    with full_cloud() as cloud:

        def die(process: Process) -> float:
            if not seconds:
                return cloud.restart_after(process, 30.0)
            cloud.loop.after(seconds, process.crash)
            cloud.loop.after(30.0, process.start)
            return 0.0

        cloud.before(step, die, "super")
        cloud.begin()
        cloud.wait_for_state(DONE)
        cloud.wait(40.0)
        assert any(each.life > 1 for each in cloud.supers)
        check_once(cloud)
        cloud.check_ended()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: getattr(step, "__name__", step))
def test_two_owners_never_run_a_wave_both(step: Any) -> None:
    """An owner stands still before a step until another one has taken over, and then sends it."""
    with full_cloud() as cloud:
        cloud.pause_before(step, 40.0, "super")
        cloud.begin()
        cloud.wait_for_state(DONE)
        assert cloud.maintenance.owner_epoch > 1
        check_once(cloud)
        cloud.check_ended()


class WithoutDrains(msgspec.Struct, frozen=True):
    """A work before which all drains are said to have ended, whatever is left."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        values = {"drain": ENDED, "drain_version": operator_words.c.version}
        connection.execute(sa.update(operator_words).values(values))
        return self.work(connection)


def _no_drains(_: str, work: Any) -> Any:
    return WithoutDrains(work) if is_of(work, note_empty) or is_of(work, read_wave) else work


def test_a_hook_that_is_called_before_the_host_is_empty_is_found() -> None:
    with (
        pytest.raises(BrokenPromise, match="the hook is called for"),
        full_cloud(faults=Faults(_no_drains)) as cloud,
    ):
        cloud.begin()
        cloud.wait_for_state(DONE, PAUSED)


def test_the_hook_is_called_again_when_the_process_that_called_it_dies() -> None:
    with full_cloud() as cloud:
        cloud.hook.seconds = 20.0
        died: list[str] = []

        def die(process: Process, call: HookCall) -> None:
            if not died:
                died.append(call.host)
                cloud.loop.after(3.0, process.crash)
                cloud.loop.after(60.0, process.start)

        cloud.hook.at_call = die
        cloud.begin()
        cloud.wait_for_state(DONE)
        of_host = [each for each in cloud.hook.called if each[1].host == died[0]]
        assert [call.number for _, call in of_host] == [1, 2]
        assert len({process for process, _ in of_host}) == 2
        check_once(cloud)
        cloud.check_ended()


def test_a_hook_that_fails_once_is_called_again_after_a_pause() -> None:
    with full_cloud() as cloud:
        cloud.hook.fails = {"c1-host1"}
        cloud.begin()
        cloud.wait_until(lambda: cloud.hosts["c1-host1"].failures == 1, "a failed call")
        result = cloud.hosts["c1-host1"].result
        assert result is not None and (result.status, result.output) == (1, "no such image")
        cloud.hook.fails.clear()
        cloud.wait_for_state(DONE)
        assert (cloud.hosts["c1-host1"].calls, cloud.hosts["c1-host1"].failures) == (2, 1)
        cloud.check_ended()


def test_a_host_whose_hook_fails_for_good_is_left_out_and_the_maintenance_pauses() -> None:
    with full_cloud() as cloud:
        cloud.hook.fails = {"c1-host0", "c1-host1", "c1-host2", "c1-host3"}
        cloud.begin(most_hosts=1)
        cloud.wait_for_state(PAUSED)
        [left_out] = [each for each in cloud.hosts.values() if each.reason is not None]
        assert left_out.failures == OPTIONS.tries
        assert left_out.reason == "the hook failed 3 times: it ended with status 1"
        assert cloud.maintenance.reason == f"host {left_out.host} is left out: {left_out.reason}"
        cloud.wait(30.0)
        assert cloud.hosts[left_out.host].state == LEFT_OUT and not cloud.disabled
        calls = len(cloud.hook.called)
        cloud.wait(60.0)
        assert len(cloud.hook.called) == calls, "nothing begins while it is paused"
        cloud.hook.fails.clear()
        cloud.resume()
        cloud.wait_for_state(DONE)
        cloud.check_ended([left_out.host])


def test_one_that_keeps_going_does_not_pause_for_hosts_that_are_left_out() -> None:
    with full_cloud() as cloud:
        cloud.hook.fails = {"c1-host1"}
        cloud.begin(keeps_going=True)
        cloud.wait_for_state(DONE)
        cloud.check_ended(["c1-host1"])


def test_without_a_hook_it_waits_for_the_operator() -> None:
    with full_cloud(hooked=False) as cloud:
        cloud.begin()
        done: list[str] = []
        while len(done) < len(cloud.guests.hosts):
            cloud.wait_until(lambda: bool(cloud.in_work), "a host is in work")
            cloud.wait(20.0)
            for host in cloud.in_work:
                assert cloud.guests.hosts[host].guests.keys() == {FOREIGN}
                assert cloud.api(finish_host(UUID, host, cloud.loop.now, BY)) is not None
                done.append(host)
            cloud.wait(1.0)
        cloud.wait_for_state(DONE)
        assert sorted(done) == sorted(cloud.guests.hosts)
        cloud.check_ended()


def test_paused_it_begins_no_move_and_no_call_and_resumed_it_goes_on() -> None:
    for seconds in (3.0, 12.0, 25.0):
        with full_cloud(move_limits=MoveLimits(per_host=1, per_cell=1)) as cloud:
            cloud.begin(most_hosts=1)
            cloud.wait(seconds)
            cloud.pause()
            # One look may be on its way.
            cloud.wait(3.0)
            moves, calls = len(cloud.moves("c1")), len(cloud.hook.called)
            cloud.wait(90.0)
            assert (len(cloud.moves("c1")), len(cloud.hook.called)) == (moves, calls)
            assert cloud.maintenance.state == PAUSED
            cloud.resume()
            cloud.wait_for_state(DONE)
            cloud.check_ended()


def test_a_host_that_an_operator_enables_meanwhile_is_left_out_as_it_is() -> None:
    with full_cloud(move_limits=MoveLimits(per_host=1, per_cell=1)) as cloud:
        cloud.begin("c1-host0")
        cloud.wait_until(lambda: cloud.hosts["c1-host0"].state == EMPTYING, "it is being emptied")
        cloud.say("c1-host0", enabled=True)
        cloud.wait_for_state(PAUSED)
        assert cloud.hosts["c1-host0"].reason == ENABLED_MEANWHILE
        cloud.resume()
        cloud.wait_for_state(DONE)
        assert not cloud.hook.called
        cloud.check_ended(["c1-host0"])


def test_a_host_that_an_operator_enables_during_the_hook_is_not_disabled_again() -> None:
    with full_cloud() as cloud:
        cloud.hook.seconds = 30.0
        cloud.begin("c1-host0")
        cloud.wait_until(lambda: bool(cloud.hook.called), "the hook is called")
        cloud.say("c1-host0", enabled=True)
        cloud.request("late", host="c1-host0")
        cloud.wait_for_state(DONE)
        cloud.check_ended()


def test_an_operator_who_enables_and_disables_a_host_between_calls_has_it_emptied_again() -> None:
    with full_cloud() as cloud:
        cloud.hook.fails = {"c1-host0"}
        cloud.begin("c1-host0")
        cloud.wait_until(lambda: cloud.hosts["c1-host0"].failures == 1, "a failed call")
        cloud.say("c1-host0", enabled=True)
        cloud.request("late", host="c1-host0")
        cloud.wait(0.3)
        cloud.say("c1-host0", enabled=False)
        cloud.hook.fails.clear()
        cloud.wait_for_state(PAUSED)
        assert cloud.hosts["c1-host0"].reason == NOT_MOVED
        assert (cloud.disabled, len(cloud.hook.called)) == ({"c1-host0"}, 1)
        cloud.say("c1-host0", enabled=True)
        cloud.resume()
        cloud.wait_for_state(DONE)
        cloud.check_ended(["c1-host0"])


def test_a_host_that_an_operator_disables_meanwhile_stays_disabled() -> None:
    with full_cloud(6) as cloud:
        cloud.hook.seconds = 30.0
        cloud.begin()
        cloud.wait_until(lambda: bool(cloud.hook.called), "the hook is called")
        host = cloud.hook.called[0][1].host
        cloud.say(host, enabled=False, reason="a fan is loud")
        cloud.wait_for_state(DONE)
        assert cloud.disabled == {host}
        cloud.say(host, enabled=True)
        cloud.check_ended()


def test_a_host_that_was_disabled_before_has_its_word_back() -> None:
    with full_cloud(4) as cloud:
        cloud.say("c1-host1", enabled=False, reason="a fan is loud")
        cloud.begin("c1-host1", "c1-host2")
        cloud.wait_for_state(DONE)
        assert cloud.disabled == {"c1-host1"}
        [word] = [each for each in cloud.words_said() if not each.enabled]
        assert (word.reason, word.moves) == ("a fan is loud", False)
        cloud.say("c1-host1", enabled=True)
        cloud.check_ended()


def test_a_host_that_dies_in_its_wave_is_left_out() -> None:
    with full_cloud() as cloud:
        cloud.begin(most_hosts=1)
        cloud.wait_until(lambda: bool(cloud.in_state(EMPTYING)), "a host is being emptied")
        [host] = cloud.in_state(EMPTYING)
        agent = cloud.process(f"{host}-agent")
        agent.crash()
        cloud.wait_for_state(PAUSED, seconds=3_000.0)
        left_out = cloud.hosts[host]
        assert left_out.state in (RETURNING, LEFT_OUT) and left_out.reason is not None
        assert left_out.reason.startswith("2 instances do not leave it; instance ")
        assert left_out.reason.endswith(f"host {host} is silent, or carries out no orders")
        agent.start()
        cloud.resume()
        cloud.wait_for_state(DONE, seconds=3_000.0)
        cloud.check_ended([host])


def test_a_host_with_a_shelving_that_waits_for_it_is_left_out() -> None:
    with full_cloud(4) as cloud:
        row = cloud.row("instance0")
        assert row is not None and row.host is not None
        host, agent = row.host, cloud.process(f"{row.host}-agent")

        def die(_: Process) -> float:
            agent.crash()
            cloud.shelve("instance0")
            return 5.0

        cloud.before(begin_wave, die, "super")
        cloud.begin(host)
        cloud.wait_for_state(PAUSED)
        assert cloud.hosts[host].reason == (
            "1 instance does not leave it; instance instance0 is shelving: "
            f"host {host} is silent, or carries out no orders"
        )
        agent.start()
        cloud.resume()
        cloud.wait_for_state(DONE)
        cloud.check_ended([host])


@pytest.mark.parametrize("seconds", [90.0, 400.0])
def test_it_says_what_a_host_is_waited_for_and_does_not_wait_for_ever(seconds: float) -> None:
    with full_cloud(3, build_seconds=600.0) as cloud:

        def build(_: Process) -> float:
            cloud.build_in(seconds)
            cloud.request("late", host="c1-host3")
            return 5.0

        cloud.before(begin_wave, build, "super")
        cloud.begin("c1-host3")
        cloud.wait_until(lambda: cloud.maintenance.reason is not None, "a reason")
        assert cloud.in_state(EMPTYING) == ["c1-host3"]
        why = "1 instance does not leave it; instance late is assigned"
        assert cloud.maintenance.reason == f"host c1-host3 is waited for: {why}"
        if seconds < 2 * OPTIONS.stuck_seconds:
            cloud.build_in(0.1)
            cloud.hook.seconds = 20.0
            cloud.wait_until(lambda: bool(cloud.hook.called), "the hook is called")
            cloud.wait(2.0)
            assert cloud.maintenance.reason is None
            cloud.wait_for_state(DONE)
            cloud.check_ended()
            return
        cloud.wait_for_state(PAUSED)
        assert cloud.hosts["c1-host3"].reason == why
        cloud.resume()
        cloud.wait_for_state(DONE)
        cloud.check_ended(["c1-host3"])


def test_an_empty_host_to_which_an_instance_may_come_for_long_is_left_out() -> None:
    with full_cloud(3) as cloud:
        cloud.shelve("instance0")
        cloud.wait_for("instance0", SHELVED)
        for each in cloud.servers["c1"]:
            each.crash()
        cloud.unshelve("instance0")
        cloud.wait_for("instance0", UNSHELVING)
        cloud.begin("c1-host3")
        cloud.wait_for_state(PAUSED)
        assert cloud.hosts["c1-host3"].reason == MAY_COME
        for each in cloud.servers["c1"]:
            each.start()
        cloud.resume()
        cloud.wait_for_state(DONE)
        cloud.check_ended(["c1-host3"])


@pytest.mark.parametrize("state", [DISABLING, EMPTYING, IN_WORK, RETURNING])
def test_it_can_be_cancelled_in_each_state_of_its_hosts(state: str) -> None:
    for seed in range(3):
        with full_cloud(seed=seed) as cloud:
            cloud.hook.seconds = 10.0
            cloud.begin()
            cloud.wait_until(lambda: bool(cloud.in_state(state)), f"a host is {state}", step=0.02)
            cloud.api(cancel_maintenance(UUID, cloud.loop.now, BY))
            cloud.wait_for_state(CANCELLED)
            calls = len(cloud.hook.called)
            assert {each.state for each in cloud.hosts.values()} <= {RETURNED, LEFT_OUT, WAITING}
            cloud.wait(60.0)
            assert not cloud.disabled and len(cloud.hook.called) == calls
            cloud.finish()


def test_a_move_that_is_refused_at_its_planned_target_goes_where_there_is_room() -> None:
    with full_cloud(4, hosts=3) as cloud:
        # Just before the moves begin, the planned target has no room any more.
        targets: list[str] = []
        blockers: list[str] = []

        def fill(process: Process) -> float:
            [host] = [each for each in cloud.hosts.values() if each.targets]
            targets.extend(host.targets.values())
            other = ({*cloud.guests.hosts} - {host.host, targets[0]}).pop()
            blockers.extend(cloud.placement.block(cloud.guests.hosts[other].node))
            return 0.0

        cloud.before(note_announced, fill, "super")
        cloud.begin("c1-host0")
        cloud.wait_for_state(DONE)
        moves = cloud.moves("c1").values()
        failed = {each.instance: each for each in moves if each.state == FAILED_MOVE}
        done = {each.instance: each for each in moves if each.state == DONE_MOVE}
        assert failed and done.keys() == cloud.hosts["c1-host0"].targets.keys()
        for uuid, move in failed.items():
            assert move.to_host == cloud.hosts["c1-host0"].targets[uuid]
            # It is asked again at once, and not after the pause of a failure.
            assert done[uuid].to_host is None and done[uuid].began - move.changed_at < 5.0
        cloud.placement.free(blockers)
        cloud.check_ended()


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_messages_and_processes_each_host_is_empty_when_it_is_worked_on(
    seed: int,
) -> None:
    with full_cloud(4, seed=seed, conductors=2) as cloud:
        cloud.network.weather = PAUSES
        cloud.begin(keeps_going=True)
        for number in range(8):
            cloud.request_perhaps(f"late{number}")
            cloud.wait(10.0)
            cloud.restart_after(cloud.random.choice(cloud.processes), 5.0)
        cloud.network.weather = CALM
        for process in cloud.processes:
            process.go_on()
            process.start()
        cloud.wait_for_state(DONE, seconds=3_000.0)
        check_once(cloud)
        cloud.check_ended([host for host, each in cloud.hosts.items() if each.state == LEFT_OUT])
