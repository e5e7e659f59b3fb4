"""Processes of the simulated world: the context of conductors and agents in simulated time.

A process crashes (its coroutines are closed wherever they wait), is stopped and goes on, and is started anew.
What it sent before a crash may still arrive.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple

from roost.agent.protocol.questions import Call
from roost.model.record import Attempt, Run
from roost.process.context import BEGUN_AGAIN, Level, Routine, Work
from roost.process.logs import RequestIds

if TYPE_CHECKING:
    from support.simulation.network import Network

PENDING = object()
"""What a step answers where the answer comes later."""

SCHEDULER, PLACEMENT, PROVIDERS, NAMES = "scheduler", "placement", "providers", "names"
"""The services of conductors and endpoints."""

CELL, DRIVER, STATE, WATCHDOG = "cell", "driver", "state", "watchdog"
"""The services of agents."""

Ended = Callable[[Any, BaseException | None], None]


class Process:
    """One process. ``begin`` starts its coroutines, at the first start and after each crash.

    ``memory`` is lost in a crash. ``services``: those that only this process asks.
    ``offset``: seconds that its wall clock is off. ``origin``: what its monotonic clock showed at time 0, and
    ``rate`` how fast that goes.
    """

    def __init__(self, name: str, network: "Network", begin: "Callable[[Process], None]") -> None:
        self.name = name
        self.network = network
        network.processes.append(self)
        self.loop = network.loop
        self.begin = begin
        self.up = False
        self.stopped = False
        self.life = 0
        self.offset = 0.0
        self.origin = network.random.uniform(0.0, 1e6)
        self.rate = 1.0
        self.running: dict[Running, None] = {}
        self.memory: dict[str, Any] = {}
        self.services: dict[str, Any] = {}
        self.context = SimulatedContext(self)
        self.current = ""
        """The name of the coroutine that runs now."""
        self._backlog: list[tuple[Running, int, Any, BaseException | None]] = []
        self._wakes: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[tuple[Running, int, SimulatedListener]]] = defaultdict(list)

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
        for each in running:
            each.close()

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

    # What its coroutines use

    def run(
        self,
        name: str,
        work: Awaitable[Any],
        ended: Ended | None = None,
        closed: Callable[[], None] = lambda: None,
    ) -> "Running":
        """Run a coroutine. ``ended``: called with its result or error. Without it an error is a defect.

        ``closed``: called if it is closed before its end, by a crash or because its time is up.
        """
        running = Running(self, name, work, ended or self._no_error(name), closed)
        self.running[running] = None
        self.loop.after(0.0, running.resume, 0, None, None)
        return running

    def forget(self) -> None:
        """Drop the coroutines that have not begun: else Python complains later that nobody awaits them."""
        for running in self.running:
            running.forget()

    def wake(self, topic: str) -> None:
        """Wake the coroutines that listen to a topic."""
        self._wakes[topic] += 1
        for running, ticket, listener in self._waiting.pop(topic, ()):
            if running.ticket == ticket:
                listener.seen = self._wakes[topic]
                self.loop.after(0.0, running.resume, ticket, True, None)

    def woken(self, topic: str) -> int:
        """How often a topic was woken."""
        return self._wakes[topic]

    def wait(self, running: "Running", listener: "SimulatedListener", seconds: float) -> Any:
        """Whether a listener was woken, or `PENDING`."""
        count = self._wakes[listener.topic]
        if listener.seen != count:
            listener.seen = count
            return True
        self._waiting[listener.topic].append((running, running.ticket, listener))
        running.later(seconds, False)
        return PENDING

    def hold(self, running: "Running", ticket: int, answer: Any, error: BaseException | None) -> None:
        """Keep an answer until the process goes on."""
        self._backlog.append((running, ticket, answer, error))

    def monotonic(self) -> float:
        """Its monotonic clock."""
        return self.origin + self.loop.now * self.rate

    def clock(self) -> float:
        """Its wall clock, which may be off."""
        return 1_700_000_000.0 + self.loop.now + self.offset

    def _no_error(self, name: str) -> Ended:
        def ended(_: Any, error: BaseException | None) -> None:
            if error is not None:
                self.network.defect(f"{self.name}: the coroutine {name} ended with {error!r}", error)

        return ended


class Running:
    """A coroutine that runs in a process. ``ticket`` numbers its waits: an earlier answer is void.

    It has context variables of its own, as a task has: else what one sets would be there for all, and, if
    they end in another order than they began, for the tests after.
    """

    __slots__ = ("_children", "_closed", "_ended", "_steps", "_variables", "name", "process", "ticket")

    def __init__(
        self,
        process: Process,
        name: str,
        work: Awaitable[Any],
        ended: Ended,
        closed: Callable[[], None],
    ) -> None:
        self.process = process
        self.name = name
        self.ticket = 0
        self._steps = work.__await__()
        self._variables = copy_context()
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
            self.process.current = self.name
            try:
                if error is None:
                    step = self._variables.run(self._steps.send, answer)
                else:
                    step = self._variables.run(self._steps.throw, error)
            except StopIteration as ended:
                return self._finish(ended.value, None)
            except Exception as failure:
                return self._finish(None, failure)
            error = None
            try:
                answer = step.perform(self)
            except Exception as failure:
                answer, error = None, failure
            if answer is PENDING:
                return None

    def later(self, seconds: float, answer: Any = None, error: BaseException | None = None) -> Any:
        """Answer what it waits for in some seconds."""
        self.process.loop.after(seconds, self.resume, self.ticket, answer, error)
        return PENDING

    def close(self) -> None:
        """End it at the step where it is."""
        if self.ticket == -1:
            return
        self.ticket = -1
        self.process.running.pop(self, None)
        for child in self._children:
            child.close()
        self._children = []
        self._variables.run(self._steps.close)
        self._closed()

    def forget(self) -> None:
        """Drop it if it has not begun."""
        if self.ticket == 0:
            self._steps.close()

    def _finish(self, result: Any, error: BaseException | None) -> None:
        self.ticket = -1
        self.process.running.pop(self, None)
        self._ended(result, error)

    # What it waits for

    def together(self, routines: Sequence[Routine[Any]]) -> Any:
        results: dict[int, tuple[Any, BaseException | None]] = {}
        ticket = self.ticket

        def ended(number: int) -> Ended:
            def end(result: Any, error: BaseException | None) -> None:
                results[number] = result, error
                if len(results) == len(routines):
                    self._children = []
                    outcomes = [results[each] for each in range(len(routines))]
                    first = next((error for _, error in outcomes if error is not None), None)
                    answers = [result for result, _ in outcomes]
                    self.process.loop.after(0.0, self.resume, ticket, answers, first)

            return end

        if not routines:
            return []
        self._children = [
            self.process.run(f"{self.name}/{number}", routine, ended(number))
            for number, routine in enumerate(routines)
        ]
        return PENDING

    def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        ticket = self.ticket

        def end(result: Any, error: BaseException | None) -> None:
            self._children = []
            self.process.loop.after(0.0, self.resume, ticket, result, error)

        child = self.process.run(f"{self.name}/within", work, end)
        self._children = [child]

        def time_is_up() -> None:
            if child.ticket != -1:
                child.close()
                self._children = []
                self.resume(ticket, None, TimeoutError())

        self.process.loop.after(seconds, time_is_up)
        return PENDING


class Step:
    """Something to wait for. ``perform``: called with the coroutine that waits; answers it, or `PENDING`."""

    __slots__ = ("perform",)

    def __init__(self, perform: Callable[[Running], Any]) -> None:
        self.perform = perform

    def __await__(self) -> Generator["Step", Any, Any]:
        return (yield self)


class SimulatedListener:
    """Waits for the wakes of a topic that it has not seen."""

    def __init__(self, process: Process, topic: str, seen: int | None) -> None:
        self.topic = topic
        self.seen = seen
        self._process = process

    def wait(self, seconds: float) -> Step:
        return Step(lambda running: self._process.wait(running, self, seconds))


class ServiceCall(NamedTuple):
    """A call of a method of a service."""

    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class RemoteService:
    """A service, as coroutines call it: each call is a message. `ask` sends its argument as it is."""

    def __init__(self, context: "SimulatedContext", name: str) -> None:
        self._context = context
        self._name = name

    def ask(self, question: Any) -> Step:
        return self._context.ask(self._name, question)

    def __getattr__(self, method: str) -> Callable[..., Step]:
        return lambda *arguments, **named: self.ask(ServiceCall(method, arguments, named))


class SimulatedContext:
    """Is what `roost.process.context.Context` says, for one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._network = process.network
        self.monotonic = process.monotonic
        self.clock = process.clock
        self.draw = process.network.draw
        self.wake = process.wake
        self.random = process.network.random
        for name in (SCHEDULER, PLACEMENT, PROVIDERS, NAMES, CELL, DRIVER, STATE, WATCHDOG):
            setattr(self, name, RemoteService(self, name))

    def read(self, database: str, work: Work[Any], /) -> Step:
        return Step(lambda running: self._network.transact(running, database, work, False))

    def write(self, database: str, work: Work[Any], /) -> Step:
        return Step(lambda running: self._network.transact(running, database, work, True))

    def ask(self, name: str, question: Call[Any], /) -> Step:
        service = self._process.services.get(name)
        if service is not None and service.local:
            return Step(lambda running: self._network.ask_local(running, service, name, question))
        return Step(lambda running: self._network.ask(running, name, question))

    def sleep(self, seconds: float, /) -> Step:
        return Step(lambda running: running.later(seconds))

    def listen(self, topic: str, /, *, from_now: bool = False) -> SimulatedListener:
        return SimulatedListener(self._process, topic, self._process.woken(topic) if from_now else None)

    def together(self, routines: Sequence[Routine[Any]], /) -> Step:
        return Step(lambda running: running.together(routines))

    def within(self, seconds: float, work: Awaitable[Any], /) -> Step:
        return Step(lambda running: running.within(seconds, work))

    def start(self, name: str, routine: Routine[Any], requests: RequestIds | None = None, /) -> None:
        self._process.run(name, routine)

    def log(
        self,
        event: str,
        values: Mapping[str, object] = {},
        level: Level = "info",
        error: BaseException | None = None,
        /,
    ) -> None:
        process, network = self._process, self._network
        network.note(process.name, process.current, "says", event, dict(values))
        if event == BEGUN_AGAIN:
            network.defect(f"{process.name}: {values} {error!r}", error)
        if level == "error":
            network.complaints.append((process.name, event, error))

    def record(self, runs: Sequence[Run], attempts: Sequence[Attempt], /) -> None:
        self._network.recorded(self._process, runs, attempts)
