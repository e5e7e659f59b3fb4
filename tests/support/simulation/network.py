"""Between processes, databases and services: carries requests and answers through the weather."""

import re
from collections.abc import Awaitable, Callable, Collection
from itertools import count
from random import Random
from typing import Any, NamedTuple, Protocol

from roost.state.cell_database.cell import WANTING_CONDUCTORS, WANTING_HOSTS
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.host_work import orders_topic
from roost.state.leases import AcquireLease, renew_lease, vacate_leases
from roost.storage import DatabaseUnavailable, OutcomeUnknown, states_entered
from support.simulation.databases import SimulatedDatabase
from support.simulation.loop import Loop
from support.simulation.process import PENDING, Process, Running
from support.simulation.weather import CALM, Weather, fate
from support.works import is_of

_LEASES = (AcquireLease, renew_lease, vacate_leases)

HAPPENINGS = frozenset(
    (
        "starts",
        "crashes",
        "is stopped",
        "goes on",
        "is cut off from",
        "is away",
        "is calm",
        "has a clock that is off by",
        "is taken back by",
    )
)
"""What the trace says of processes and databases."""

CONFLICTS = 0.02
"""Share of the transactions that a server rolls back once and that are run again."""


class BrokenPromise(BaseException):
    """A promise that a schedule broke. Not an `Exception`: no coroutine may catch it."""


class Service(Protocol):
    """What coroutines ask. ``patience``: seconds that its clients wait for an answer. ``local``: it is in the
    process of its asker, and no message to it is lost. ``repeats_late``: a message to it may come a second
    time when the first has long been answered."""

    patience: float
    local: bool
    repeats_late: bool

    def handle(self, asker: Process, question: Any) -> Any:
        """Answer a question at this moment. Raises what the service raises."""

    def unreachable(self, unknown: bool) -> Exception:
        """The error of a question that was not answered. ``unknown``: it may have been carried out."""


class Note(NamedTuple):
    """One line of the trace."""

    at: float
    who: str
    what: tuple[Any, ...]


class Network:
    """Carries messages.

    ``weather`` is that of all messages; ``cut`` has the pairs of process and database or service whose
    messages are lost. ``interrupt`` says for how many seconds a process is stopped just before it sends a
    message, for schedules that are written down. ``defective_work`` and ``defective_question`` change what is
    sent, to put a fault in.
    """

    def __init__(self, loop: Loop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.weather: Weather = CALM
        self.cut: set[tuple[str, str]] = set()
        self.databases: dict[str, SimulatedDatabase] = {}
        self.services: dict[str, Service] = {}
        self.trace: list[Note] = []
        self.processes: list[Process] = []
        self.complaints: list[tuple[str, str, BaseException | None]] = []
        self.attempts: list[Any] = []
        self.on_crash: Callable[[Process], None] = lambda process: None
        self.defective_work: Callable[[str, Any], Any] | None = None
        self.defective_question: Callable[[str, Any], Any] | None = None
        self.interrupt: Callable[[Process, Any], float] = lambda process, message: 0.0
        self.last_arrival = 0.0
        """When the last message arrives that was sent in bad weather, or by a process that was stopped."""
        self._nonces = count(1)

    def close(self) -> None:
        """End the world, at any moment: a broken promise ends it in the middle of an act."""
        for process in self.processes:
            process.forget()
        for database in self.databases.values():
            database.close()

    # What processes do

    def transact(self, running: Running, name: str, work: Any, writes: bool) -> Any:
        """Run a work on a database, and answer the coroutine."""
        process = running.process
        if (
            writes
            and not any(is_of(work, kind) for kind in _LEASES)
            and self._falters(running, "transact", name, work, writes)
        ):
            return PENDING
        if self.defective_work is not None:
            work = self.defective_work(name, work)
        drawn = fate(self.weather, self.random)
        database = self.databases[name]
        ticket, life = running.ticket, database.lives
        outcome: list[Any] = [None, DatabaseUnavailable(f"{name} cannot be reached")]
        cut = (process.name, name) in self.cut
        self.note(process.name, running.name, "writes" if writes else "reads", name, work)

        def arrive() -> None:
            if not database.up or database.lives != life:
                return
            if self.random.random() < CONFLICTS:
                database.run_and_roll_back(work)
            try:
                outcome[:] = [database.run(work, writes), None]
            except Exception as error:
                outcome[:] = [None, error]

        def answer() -> None:
            result, error = outcome
            if drawn.lost:
                error = OutcomeUnknown(f"{name} did not answer") if writes else DatabaseUnavailable(name)
            self.note(process.name, running.name, "is answered", error if error is not None else result)
            if error is None and (entered := states_entered(work)):
                wake_for(process, name.removeprefix("cell/"), entered)
            running.resume(ticket, result if error is None else None, error)

        if drawn.arrives is not None and not cut:
            self.loop.after(drawn.arrives, arrive)
            self._note_arrival(drawn.arrives)
        self.loop.after(drawn.answers, answer)
        return PENDING

    def ask_local(self, running: Running, service: Service, name: str, question: Any) -> Any:
        """Ask a service of the process itself. Returns the answer, or `PENDING` if it comes later.

        Raises what the service raises.
        """
        process = running.process
        if self.weather is not CALM and self.random.random() < self.weather.crashes:
            process.crash()
            self.on_crash(process)
            return PENDING
        if self.defective_question is not None:
            question = self.defective_question(name, question)
        result = service.handle(process, question)
        if not isinstance(result, Handling):
            return result
        ticket = running.ticket
        self.note(process.name, running.name, "asks", name, question)

        def handled(answer: Any, error: BaseException | None) -> None:
            self.note(process.name, running.name, "is answered", error if error is not None else answer)
            running.resume(ticket, answer, error)

        process.run(f"{name} of {process.name}", result.work, handled)
        return PENDING

    def ask(self, running: Running, name: str, question: Any) -> Any:
        """Ask a service elsewhere, and answer the coroutine."""
        process = running.process
        if self._falters(running, "ask", name, question):
            return PENDING
        if self.defective_question is not None:
            question = self.defective_question(name, question)
        service = process.services.get(name) or self.services[name]
        drawn = fate(self.weather, self.random)
        ticket = running.ticket
        cut = (process.name, name) in self.cut
        self.note(process.name, running.name, "asks", name, question)
        answered = False

        def answer(result: Any, error: Any) -> None:
            nonlocal answered
            if answered:
                return
            answered = True
            self.note(process.name, running.name, "is answered", error if error is not None else result)
            running.resume(ticket, result, error)

        def give_up() -> None:
            answer(None, service.unreachable(unknown=not (drawn.refused or cut)))

        def arrive(first: bool) -> None:
            def handled(result: Any, error: Any) -> None:
                if first and not drawn.lost:
                    self.loop.after(max(drawn.answers - (drawn.arrives or 0.0), 0.0), answer, result, error)

            self._handle(service, process, question, handled)

        if drawn.arrives is not None and not cut:
            self.loop.after(drawn.arrives, arrive, True)
            self._note_arrival(drawn.arrives)
            if drawn.again is not None:
                again = drawn.again if service.repeats_late else min(drawn.again, drawn.answers)
                self.loop.after(again, arrive, False)
                self._note_arrival(again)
        patience = drawn.answers if drawn.lost or drawn.refused or cut else service.patience
        self.loop.after(patience, give_up)
        return PENDING

    def _handle(
        self, service: Service, asker: Process, question: Any, handled: Callable[[Any, Any], None]
    ) -> None:
        """Have a service answer: at once, or by a coroutine in the process that serves."""
        try:
            result = service.handle(asker, question)
        except Exception as error:
            handled(None, error)
            return
        if isinstance(result, Handling):
            if not result.process.up:
                result.work.__await__().close()
                handled(None, service.unreachable(unknown=False))
                return
            result.process.run(
                f"serves {asker.name}",
                result.work,
                handled,
                lambda: handled(None, service.unreachable(unknown=True)),
            )
        else:
            handled(result, None)

    def _falters(self, running: Running, send: str, *message: Any) -> bool:
        """Whether the process crashes or is stopped now, just before it sends a message."""
        process = running.process
        seconds = self.interrupt(process, message[1])
        if seconds and not process.stopped:
            self._pause(running, seconds, send, message)
            return True
        drawn = self.random.random() if self.weather is not CALM else 1.0
        if drawn < self.weather.crashes:
            process.crash()
            self.on_crash(process)
            return True
        drawn -= self.weather.crashes
        if drawn >= self.weather.pauses or process.stopped:
            return False
        self._pause(running, self.random.choice((3.0, 12.0, 25.0)), send, message)
        return True

    def _pause(self, running: Running, seconds: float, send: str, message: tuple[Any, ...]) -> None:
        running.process.stop()
        self.loop.after(seconds, running.process.go_on)
        self.loop.after(seconds, self._send_late, running, running.ticket, send, message)
        self.last_arrival = max(self.last_arrival, self.loop.now + seconds)

    def _note_arrival(self, seconds: float) -> None:
        if self.weather is not CALM:
            self.last_arrival = max(self.last_arrival, self.loop.now + seconds)

    def _send_late(self, running: Running, ticket: int, send: str, message: Any) -> None:
        if running.ticket == ticket:
            getattr(self, send)(running, *message)

    # What all use

    def draw(self) -> str:
        """A nonce."""
        return f"nonce-{next(self._nonces)}"

    def note(self, who: str, *what: Any) -> None:
        """Add a line to the trace."""
        self.trace.append(Note(self.loop.now, who, what))

    def recorded(self, process: Process, runs: Any, attempts: Any) -> None:
        """Keep the attempts that a process recorded."""
        self.attempts.extend(attempts)

    def defect(self, text: str, error: BaseException | None = None) -> None:
        """A promise is broken. Raises: `BrokenPromise`."""
        raise BrokenPromise(text) from error

    def story(self, about: Collection[str] = (), last: int = 400) -> str:
        """The last lines of the trace, readably. ``about``: only those that name one of these words, and what
        happened to processes and databases."""
        lines = [
            line
            for note in self.trace
            if (line := _line(note)) and (not about or _happens(note) or _names(line, about))
        ]
        return "\n".join(lines[-last:])


def wake_for(process: Process, cell: str, entered: Collection[str]) -> None:
    """Wake what waits in a process for the states that instances have entered, as
    `roost.state.cell_database.Cell` does."""
    if not WANTING_CONDUCTORS.isdisjoint(entered):
        process.wake(work_topic(cell))
    if not WANTING_HOSTS.isdisjoint(entered):
        process.wake(orders_topic(cell))


class Handling(NamedTuple):
    """The answer of a service that is made by a coroutine in a process."""

    process: Process
    work: Awaitable[Any]


def _line(note: Note) -> str:
    words = " ".join(each if isinstance(each, str) else _short(each) for each in note.what)
    return f"{note.at:9.3f} {note.who:<12} {words}"


def _happens(note: Note) -> bool:
    """Whether a line says what happened to somebody, and not what somebody sent or was answered."""
    return all(isinstance(each, str) for each in note.what[:1]) and note.what[0] in HAPPENINGS


def _names(line: str, words: Collection[str]) -> bool:
    return any(re.search(rf"\b{re.escape(word)}\b", line) for word in words)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
