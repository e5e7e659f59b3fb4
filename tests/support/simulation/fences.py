"""Fences of the simulated world: the watchdogs of machines, and the BMCs that switch them off."""

from collections.abc import Callable
from typing import Any

from roost.agent.protocol.questions import Call
from roost.conductor.evacuation.fence_command import PowerOff
from support.simulation.hosts import Host
from support.simulation.network import Handling
from support.simulation.process import Process, ServiceCall, SimulatedContext

BMC = "bmc"
"""The service that switches machines off."""


class Machine:
    """The machine of a host: it loses its power with all guests and its agent, and is back later."""

    def __init__(self, host: Host, agent: Process) -> None:
        self.host = host
        self.agent = agent
        self.resets = 0
        self.off_seconds = 0.0
        """Seconds until it is back, drawn if 0."""

    def reset(self) -> None:
        """Switch it off, and on again after some time."""
        self.resets += 1
        self.agent.crash()
        self.host.die()
        seconds = self.off_seconds or self.agent.network.random.choice((20.0, 60.0, 150.0))
        self.agent.loop.after(seconds, self.agent.start)


class WatchdogService:
    """The watchdog of a machine, in the process of its agent. ``seconds``: its time; None: it is broken."""

    patience = 1e9
    local = True
    repeats_late = True

    def __init__(self, machine: Machine, seconds: float | None) -> None:
        self._machine = machine
        self._seconds = seconds
        self._touches = 0

    def handle(self, asker: Process, call: ServiceCall) -> None:
        """Begin its time anew."""
        assert call.method == "touch"
        self._touches += 1
        if self._seconds is not None:
            asker.loop.after(self._seconds, self._expire, self._touches)

    def disarm(self) -> None:
        """Stop its timer."""
        self._touches += 1

    def unreachable(self, unknown: bool) -> Exception:
        """The agent, which would be told, has crashed."""
        return OSError("the agent is gone")

    def _expire(self, touches: int) -> None:
        if touches == self._touches:
            # A machine that begins anew has no watchdog that is armed.
            self._touches += 1
            self._machine.reset()


class PowerOffHost(Call[PowerOff], frozen=True):
    """The command of the operators for a host."""

    host: str


class BmcService:
    """The BMCs of all machines. ``fails``: hosts whose BMC does not answer. ``asked``: hosts, in order."""

    patience = 60.0
    local = False
    repeats_late = True

    def __init__(self, machines: Callable[[], dict[str, Machine]], server: Callable[[], Process]) -> None:
        self._machines = machines
        self._server = server
        self.fails: set[str] = set()
        self.asked: list[str] = []
        self.seconds = 0.0

    def handle(self, asker: Process, question: Any) -> Handling:
        """Switch a machine off, after some time."""
        return Handling(self._server(), self._off(self._server().context, question.host))

    def unreachable(self, unknown: bool) -> Exception:
        """The command could not be run, or its end was not seen."""
        return TimeoutError("the BMC does not answer")

    async def _off(self, context: SimulatedContext, host: str) -> PowerOff:
        self.asked.append(host)
        await context.sleep(self.seconds or context.random.choice((0.5, 5.0)))
        if host in self.fails:
            return PowerOff(False, "the BMC does not answer")
        self._machines()[host].reset()
        return PowerOff(True)


class BmcCommand:
    """The command of the operators, as a conductor runs it."""

    def __init__(self, context: SimulatedContext) -> None:
        self._context = context

    async def power_off(self, host: str, /) -> PowerOff:
        """Switch a machine off."""
        try:
            answer: PowerOff = await self._context.ask(BMC, PowerOffHost(host))
            return answer
        except TimeoutError as error:
            return PowerOff(False, str(error))
