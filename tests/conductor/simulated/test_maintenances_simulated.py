"""Maintenances that run: each host is empty when the hook is called, whoever dies, and all are given back."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from roost.conductor.maintenance.hook import MaintenanceOptions
from roost.conductor.maintenance.waves import Maintenances, carry_maintenances
from roost.model.instance import ACTIVE, Requester
from roost.model.maintenance import (
    DONE,
    LEFT_OUT,
    RETURNED,
    RUNNING,
    MaintainedHost,
    Maintenance,
)
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.maintenance_rows import find_maintenance, list_hosts
from roost.state.api_database.maintenances import (
    begin_maintenance,
    pause_maintenance,
    resume_maintenance,
)
from roost.state.api_database.operator_words import say_words
from support.simulation.maintenances import (
    HOOK,
    WORDS,
    HookService,
    PlanningScheduler,
    WordsService,
    stored_words,
)
from support.simulation.network import BrokenPromise
from support.simulation.process import SCHEDULER, Process, RemoteService
from support.simulation.scripted import Scripted

UUID = "maintenance"
BY = Requester("operator", "admins", "req-maintenance")
OPTIONS = MaintenanceOptions(pause_seconds=5.0, stuck_seconds=60.0)


class Maintained(Scripted):
    """A cloud of full and empty hosts, of which all are to be maintained."""

    drains = True
    hooked = True
    """Whether there is a hook."""

    def __init__(self, **named: Any) -> None:
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

    # What is seen

    @property
    def maintenance(self) -> Maintenance:
        found: Maintenance = self.read("api", find_maintenance(UUID))
        return found

    @property
    def hosts(self) -> dict[str, MaintainedHost]:
        return {each.host: each for each in self.read("api", list_hosts(UUID, 1000))}

    @property
    def disabled(self) -> set[str]:
        return {subject.host for subject, enabled in self.said_words().items() if not enabled}

    def said_words(self) -> dict[Subject, bool]:
        found: dict[Subject, bool] = self.network.databases["api"].run(stored_words, False)
        return found

    def wait_until(self, seen: Callable[[], bool], what: str, seconds: float = 900.0) -> None:
        """Wait for something. Raises: `BrokenPromise` after ``seconds``."""
        until = self.loop.now + seconds
        while not seen():
            if self.loop.now > until:
                states = {host: each.state for host, each in self.hosts.items()}
                raise BrokenPromise(f"not {what} after {seconds:g} s: {self.maintenance}, {states}")
            self.wait(0.5)

    def wait_for_state(self, *states: str, seconds: float = 900.0) -> None:
        self.wait_until(lambda: self.maintenance.state in states, f"{states}", seconds)

    def check_ended(self, left_out: Collection[str] = ()) -> None:
        """All hosts but some were worked on, and none is disabled any more."""
        ended = {host: each.state for host, each in self.hosts.items()}
        assert ended == {host: LEFT_OUT if host in left_out else RETURNED for host in ended}
        assert not self.disabled
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
