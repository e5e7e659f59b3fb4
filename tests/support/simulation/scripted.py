"""Schedules that are written down step by step: a cloud in calm weather, to which one thing happens."""

from collections.abc import Callable
from typing import Any

from roost.model.instance import BuildRequest, Instance
from roost.model.move import Move
from roost.model.request import RequestGroup
from roost.model.spec import ServerGroup
from support.clouds import spec
from support.simulation.cloud_world import (
    CONDUCTORS,
    Abort,
    Accept,
    CloudWorld,
    Delete,
    Migrate,
    Rebuild,
    Settle,
    Shelve,
    Switch,
    Unshelve,
)
from support.simulation.kinds import Kind
from support.simulation.network import BrokenPromise
from support.simulation.process import Process
from support.simulation.world import ACTS, Faults
from support.works import is_of

BEGIN_SECONDS = 5.0
"""After so long all agents have sessions, and all conductors have leases."""

NONE = Faults()


class Scripted(CloudWorld):
    """A cloud that a test plays, step by step. It is closed by `close`, or by the end of a ``with``.

    Nobody audits it, so that each part is seen to do its own work.

    ``waiting``: the processes that do not run before the test starts them, by the beginnings of their names.
    """

    audits = False

    def __init__(
        self,
        faults: Faults = NONE,
        seed: int = 1,
        *,
        build_seconds: float = 30.0,
        fails_over: bool = False,
        waiting: tuple[str, ...] = (),
        **named: Any,
    ) -> None:
        kind = Kind(build_seconds=build_seconds, fails_over=fails_over)
        super().__init__(kind, seed, faults, requests=0, **named)
        self._requests_made = self._moves_made = self._words_said = 0
        self.answers: list[Any] = []
        """The answers to users, in order."""
        self._waiting = waiting
        self._user.start()
        self._racks.start()

    def __enter__(self) -> "Scripted":
        for process in self.processes:
            if not process.name.startswith(self._waiting or "\0"):
                process.start()
        self.wait(BEGIN_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the world."""
        self.network.close()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.run(self.loop.now + seconds, ACTS)

    def wait_for(self, uuid: str, *states: str, seconds: float = 60.0) -> Instance:
        """Wait until an instance is in one of some states. Raises: `BrokenPromise` after ``seconds``."""
        until = self.loop.now + seconds
        while True:
            row = self.row(uuid)
            if row is not None and row.state in states:
                return row
            if self.loop.now >= until:
                raise BrokenPromise(f"{uuid} is not {states} after {seconds:g} s but {row}")
            self.wait(0.1)

    def row(self, uuid: str) -> Instance | None:
        """An instance, in whatever cell it is."""
        return next((rows[uuid] for cell in self.all_cells if uuid in (rows := self.rows(cell))), None)

    def process(self, name: str) -> Process:
        """A process by its name."""
        return next(each for each in self.processes if each.name == name)

    # What users do

    def request(
        self,
        *uuids: str,
        host: str | None = None,
        group: ServerGroup | None = None,
        resources: tuple[RequestGroup, ...] = (),
    ) -> None:
        """A user asks for instances, and gets a promise sooner or later.

        ``host``: the only one. ``resources``: beside those of the flavor.
        """
        self._requests_made += 1
        request = BuildRequest(
            request_id=f"request{self._requests_made}",
            spec=spec(
                1, force_hosts=() if host is None else (host,), group=group, requested_resources=resources
            ),
            instances=uuids,
            min_count=1,
        )
        self.accepted.update(uuids)
        self._user.run(f"asks{self._requests_made}", self._insist(Accept(request)))

    def delete(self, *uuids: str) -> None:
        """A user deletes instances, and gets a promise sooner or later."""
        self.deleted.update(uuids)
        self._user.run(f"deletes{self.loop.now}", self._insist(Delete(uuids)))

    def migrate(self, uuid: str, **named: Any) -> str:
        """An operator moves an instance; returns the uuid of the move. ``named``: fields of `Migrate`."""
        self._moves_made += 1
        move = f"move{self._moves_made}"
        self._user.run(f"moves{self._moves_made}", self._insist(Migrate(move, uuid, **named)))
        return move

    def stop(self, uuid: str) -> None:
        """A user stops an instance."""
        self._switch(uuid, runs=False)

    def start(self, uuid: str) -> None:
        """A user starts an instance again."""
        self._switch(uuid, runs=True)

    def rebuild(self, uuid: str) -> None:
        """A user has an instance made anew."""
        self._words_said += 1
        word = f"word{self._words_said}"
        self._user.run(word, self._insist(Rebuild(word, uuid)))

    def shelve(self, uuid: str, *, discards_disks: bool = False) -> None:
        """A user shelves an instance."""
        self._words_said += 1
        word = f"word{self._words_said}"
        self._user.run(word, self._insist(Shelve(word, uuid, discards_disks)))

    def unshelve(self, uuid: str) -> str:
        """A user unshelves an instance; returns the consumer that is drawn for it."""
        self._words_said += 1
        consumer = f"consumer{self._words_said}"
        self._user.run(f"unshelves{self._words_said}", self._insist(Unshelve(consumer, uuid)))
        return consumer

    def _switch(self, uuid: str, *, runs: bool) -> None:
        self._words_said += 1
        self._user.run(f"switches{self._words_said}", self._insist(Switch(uuid, runs)))

    def evacuate(self, uuid: str, evidence: str = "it burnt") -> str:
        """An operator evacuates an instance, again until its host has been silent for long enough."""
        for _ in range(100):
            move = self.migrate(uuid, evidence=evidence)
            self.wait(2.0)
            if isinstance(self.answers[-1], Move):
                return move
        raise BrokenPromise(f"{uuid} is not evacuated: {self.answers[-1]}")

    def confirm(self, move: str) -> None:
        """An operator confirms a move."""
        self._user.run(f"confirms {move}", self._insist(Settle(move, True)))

    def revert(self, move: str) -> None:
        """An operator reverts a move."""
        self._user.run(f"reverts {move}", self._insist(Settle(move, False)))

    def abort(self, move: str) -> None:
        """An operator aborts a move."""
        self._user.run(f"aborts {move} at {self.loop.now}", self._insist(Abort(move)))

    def move(self, uuid: str) -> Move:
        """A move, in whatever cell it is."""
        return next(found[uuid] for cell in self.cells if uuid in (found := self.moves(cell)))

    def wait_for_move(self, uuid: str, *states: str, seconds: float = 90.0) -> Move:
        """Wait until a move is in one of some states. Raises: `BrokenPromise` after ``seconds``."""
        until = self.loop.now + seconds
        found: Move | None = None
        while self.loop.now < until:
            found = next((all_[uuid] for cell in self.cells if uuid in (all_ := self.moves(cell))), None)
            if found is not None and found.state in states:
                return found
            # Some states last for a hundredth of a second.
            self.wait(0.01)
        raise BrokenPromise(f"{uuid} is not {states} after {seconds:g} s but {found}")

    async def _insist(self, question: Any) -> None:
        self.answers.append(await self._user.context.ask(CONDUCTORS, question))

    # What happens

    def before(
        self, kind: Callable[..., Any] | str, act: Callable[[Process], float | None], whose: str = ""
    ) -> None:
        """Once, just before a process whose name begins with ``whose`` sends a message of a kind,
        or calls the method of that name, do something; then stop that process for the seconds that it
        returns."""
        earlier = self.network.interrupt
        done = False

        def interrupt(process: Process, message: Any) -> float:
            nonlocal done
            if done or not _is(message, kind) or not process.name.startswith(whose):
                return earlier(process, message)
            done = True
            return act(process) or 0.0

        self.network.interrupt = interrupt

    def pause_before(self, kind: Callable[..., Any] | str, seconds: float, whose: str = "") -> None:
        """Once, stop a process for some seconds just before it sends a message of a kind."""
        self.before(kind, lambda _: seconds, whose)

    def restart_after(self, process: Process, seconds: float) -> float:
        """A process dies before it sends its message, and is started again after some seconds."""
        self.loop.after(0.0, process.crash)
        self.loop.after(seconds, process.start)
        return seconds

    def cut(self, who: str, *names: str, seconds: float) -> None:
        """A process does not reach some databases and services."""
        pairs = {(who, name) for name in names}
        self.network.note(who, "is cut off from", sorted(names))
        self.network.cut |= pairs
        self.loop.after(seconds, self.network.cut.difference_update, pairs)

    def take_away(self, database: str, seconds: float) -> None:
        """A database is away for some seconds."""
        self.network.note(database, "is away")
        self.network.databases[database].up = False
        self.loop.after(seconds, setattr, self.network.databases[database], "up", True)

    def lose_database(self, name: str) -> None:
        """A database is gone, and an empty one is in its place."""
        self.network.databases[name].lose()

    def fail(self, uuid: str, *attempts: int) -> None:
        """Attempts to build an instance fail, wherever they are made."""
        for host in self.guests.hosts.values():
            host.fails.update((uuid, attempt) for attempt in attempts)

    def fail_late(self, uuid: str, *attempts: int) -> None:
        """Attempts at an instance fail when they are started, wherever that is."""
        for host in self.guests.hosts.values():
            host.fails_late.update((uuid, attempt) for attempt in attempts)

    def build_in(self, seconds: float) -> None:
        """Each build takes so long from now on."""
        for host in self.guests.hosts.values():
            host.seconds = seconds

    def said(self, event: str) -> list[Any]:
        """The values of the log lines with an event."""
        return [note.what[3] for note in self.network.trace if note.what[1:3] == ("says", event)]


def _is(message: Any, kind: Callable[..., Any] | str) -> bool:
    return getattr(message, "method", None) == kind if isinstance(kind, str) else is_of(message, kind)


def found(script: Callable[[Faults, int], None], faults: Faults, seeds: int = 8) -> str:
    """The promise that a fault breaks in a script, with one of some seeds; empty if it breaks none."""
    for seed in range(seeds):
        try:
            script(faults, seed)
        except BrokenPromise as broken:
            return str(broken)
    return ""
