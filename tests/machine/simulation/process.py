"""Processes of the simulated world: the shell that performs the steps of machines in simulated time.

A process crashes (its machines are closed at whatever step they are), is stopped and goes on, and is started
anew. What it sent before a crash may still arrive.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roost.machine import steps
from roost.machine.steps import Machine, MachineStep

if TYPE_CHECKING:
    from machine.simulation.network import Network

PENDING = object()
"""What performing answers where the answer comes later."""

AN_ERROR = "a machine ended with an error, and is begun again"
"""The event of a machine that must not end and has a defect: see `roost.machine.endless`."""

Ended = Callable[[Any, BaseException | None], None]


class Process:
    """One process. ``begin`` starts its machines, at the first start and after each crash.

    ``memory`` is lost in a crash. ``services``: those that only this process asks.
    ``offset``: seconds that its wall clock is off. ``origin``: what its monotonic clock showed at time 0.
    """

    def __init__(self, name: str, network: "Network", begin: "Callable[[Process], None]") -> None:
        self.name = name
        self.network = network
        self.loop = network.loop
        self.begin = begin
        self.up = False
        self.stopped = False
        self.life = 0
        self.offset = 0.0
        self.origin = network.random.uniform(0.0, 1e6)
        self.running: dict[Running, None] = {}
        self.memory: dict[str, Any] = {}
        self.services: dict[str, Any] = {}
        self._backlog: list[tuple[Running, int, Any, BaseException | None]] = []
        self._wakes: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[tuple[Running, int]]] = defaultdict(list)

    # What happens to it

    def start(self) -> None:
        """Start it, unless it runs."""
        if not self.up:
            self.up = True
            self.life += 1
            self.network.note(self.name, "starts")
            self.begin(self)

    def crash(self) -> None:
        """End it as kill -9 does."""
        if not self.up:
            return
        self.network.note(self.name, "crashes")
        self.up = False
        self.stopped = False
        self._backlog.clear()
        self._waiting.clear()
        self._wakes.clear()
        self.memory.clear()
        running, self.running = self.running, {}
        for machine in running:
            machine.close()

    def stop(self) -> None:
        """Stop it as SIGSTOP does: it does nothing, while its clocks go on."""
        if self.up and not self.stopped:
            self.network.note(self.name, "is stopped")
            self.stopped = True

    def go_on(self) -> None:
        """Let it go on after `stop`. What arrived meanwhile, arrives now."""
        if not self.stopped:
            return
        self.network.note(self.name, "goes on")
        self.stopped = False
        backlog, self._backlog = self._backlog, []
        for running, ticket, answer, error in backlog:
            self.loop.after(0.0, running.resume, ticket, answer, error)

    # What its machines use

    def run(
        self,
        name: str,
        machine: Machine[Any],
        ended: Ended | None = None,
        closed: Callable[[], None] = lambda: None,
    ) -> "Running":
        """Run a machine. ``ended``: called with its result or error. Without it an error is a defect.

        ``closed``: called if it is closed before its end, by a crash or because its time is up.
        """
        running = Running(self, name, machine, ended or self._no_error(name), closed)
        self.running[running] = None
        self.loop.after(0.0, running.resume, 0, None, None)
        return running

    def wake(self, topic: str) -> None:
        """Wake the machines that await a topic."""
        self._wakes[topic] += 1
        for running, ticket in self._waiting.pop(topic, ()):
            if running.ticket == ticket:
                running.seen[topic] = self._wakes[topic]
                self.loop.after(0.0, running.resume, ticket, True, None)

    def wait(self, running: "Running", topic: str, seconds: float) -> Any:
        """What `Await` answers, or `PENDING`."""
        count = self._wakes[topic]
        if running.seen.get(topic) != count:
            running.seen[topic] = count
            return True
        self._waiting[topic].append((running, running.ticket))
        running.later(seconds, False)
        return PENDING

    def hold(self, running: "Running", ticket: int, answer: Any, error: BaseException | None) -> None:
        """Keep an answer until the process goes on."""
        self._backlog.append((running, ticket, answer, error))

    def monotonic(self) -> float:
        """Its monotonic clock."""
        return self.origin + self.loop.now

    def clock(self) -> float:
        """Its wall clock, which may be off."""
        return 1_700_000_000.0 + self.loop.now + self.offset

    def _no_error(self, name: str) -> Ended:
        def ended(_: Any, error: BaseException | None) -> None:
            if error is not None:
                self.network.defect(f"{self.name}: the machine {name} ended with {error!r}", error)

        return ended


class Running:
    """A machine that runs in a process. ``ticket`` numbers its steps: an answer to an earlier one is void."""

    __slots__ = ("_children", "_closed", "_ended", "_steps", "name", "process", "seen", "ticket")

    def __init__(
        self,
        process: Process,
        name: str,
        machine: Machine[Any],
        ended: Ended,
        closed: Callable[[], None],
    ) -> None:
        self.process = process
        self.name = name
        self.ticket = 0
        self.seen: dict[str, int] = {}
        self._steps = machine.__await__()
        self._ended = ended
        self._closed = closed
        self._children: list[Running] = []

    def resume(self, ticket: int, answer: Any, error: BaseException | None) -> None:
        """Go on with the answer or the error of the step with this ticket, until the next one that waits."""
        if ticket != self.ticket:
            return None
        if self.process.stopped:
            self.process.hold(self, ticket, answer, error)
            return None
        while True:
            self.ticket += 1
            try:
                step = self._steps.send(answer) if error is None else self._steps.throw(error)
            except StopIteration as ended:
                return self._finish(ended.value, None)
            except Exception as failure:
                return self._finish(None, failure)
            error = None
            try:
                answer = _PERFORM[type(step)](self, step)
            except Exception as failure:
                answer, error = None, failure
            if answer is PENDING:
                return None

    def later(self, seconds: float, answer: Any = None, error: BaseException | None = None) -> None:
        """Answer the present step in some seconds."""
        self.process.loop.after(seconds, self.resume, self.ticket, answer, error)

    def close(self) -> None:
        """End it at the step where it is."""
        if self.ticket == -1:
            return
        self.ticket = -1
        self.process.running.pop(self, None)
        for child in self._children:
            child.close()
        self._children = []
        self._steps.close()
        self._closed()

    def _finish(self, result: Any, error: BaseException | None) -> None:
        self.ticket = -1
        self.process.running.pop(self, None)
        self._ended(result, error)

    # Steps

    def transact(self, step: Any) -> Any:
        self.process.network.transact(self, step.database, step.work, isinstance(step, steps.Write))
        return PENDING

    def ask(self, step: Any) -> Any:
        network, service = self.process.network, self.process.services.get(step.service)
        if service is not None and service.local:
            return network.ask_local(self, service, step.service, step.question)
        network.ask(self, step.service, step.question)
        return PENDING

    def sleep(self, step: Any) -> Any:
        self.later(step.seconds)
        return PENDING

    def wait(self, step: Any) -> Any:
        return self.process.wait(self, step.topic, step.seconds)

    def together(self, step: Any) -> Any:
        results: dict[int, tuple[Any, BaseException | None]] = {}
        ticket, machines = self.ticket, list(step.machines)

        def ended(number: int) -> Ended:
            def end(result: Any, error: BaseException | None) -> None:
                results[number] = result, error
                if len(results) == len(machines):
                    self._children = []
                    outcomes = [results[each] for each in range(len(machines))]
                    first = next((error for _, error in outcomes if error is not None), None)
                    answers = [result for result, _ in outcomes]
                    self.process.loop.after(0.0, self.resume, ticket, answers, first)

            return end

        if not machines:
            return []
        self._children = [
            self.process.run(f"{self.name}/{number}", machine, ended(number))
            for number, machine in enumerate(machines)
        ]
        return PENDING

    def within(self, step: Any) -> Any:
        ticket = self.ticket

        def end(result: Any, error: BaseException | None) -> None:
            self._children = []
            self.process.loop.after(0.0, self.resume, ticket, result, error)

        child = self.process.run(f"{self.name}/within", step.machine, end)
        self._children = [child]

        def time_is_up() -> None:
            if child.ticket != -1:
                child.close()
                self._children = []
                self.resume(ticket, None, TimeoutError())

        self.process.loop.after(step.seconds, time_is_up)
        return PENDING

    def start(self, step: Any) -> Any:
        self.process.run(step.name, step.machine)

    def log(self, step: Any) -> Any:
        self.process.network.note(self.process.name, self.name, "says", step.event, dict(step.values))
        if step.event == AN_ERROR:
            self.process.network.defect(f"{self.process.name}: {step.values} {step.error!r}", step.error)
        if step.level == "error":
            self.process.network.complaints.append((self.process.name, step.event, step.error))

    def record(self, step: Any) -> Any:
        self.process.network.recorded(self.process, step.runs, step.attempts)


def _nothing(running: Running, step: MachineStep[Any]) -> None:
    return None


_PERFORM: dict[type, Callable[[Running, Any], Any]] = {
    steps.Read: Running.transact,
    steps.Write: Running.transact,
    steps.Ask: Running.ask,
    steps.Monotonic: lambda running, _: running.process.monotonic(),
    steps.Clock: lambda running, _: running.process.clock(),
    steps.Draw: lambda running, _: running.process.network.draw(),
    steps.Sleep: Running.sleep,
    steps.Await: Running.wait,
    steps.Wake: lambda running, step: running.process.wake(step.topic),
    steps.Together: Running.together,
    steps.Within: Running.within,
    steps.Start: Running.start,
    steps.Log: Running.log,
    steps.Record: Running.record,
    steps.Increment: _nothing,
}
