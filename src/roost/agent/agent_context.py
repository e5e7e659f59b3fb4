"""The context of a host's agent: a process with its cell's endpoint, its driver, its durable state and, if it
has one, the watchdog of its machine."""

from typing import Any, Protocol

from roost.agent.driver_calls import DriverCalls
from roost.agent.persistent_state import AgentState
from roost.agent.protocol.questions import CellEndpoint
from roost.agent.watchdog import NoWatchdog, Watchdog
from roost.process.asyncio_context import AsyncioContext, Transactor
from roost.process.context import Context


class AgentContext(Context, Protocol):
    """A context with all that an agent calls. It has no database."""

    @property
    def cell(self) -> CellEndpoint:
        """The endpoint of the host's cell."""

    @property
    def driver(self) -> DriverCalls:
        """The driver of the host."""

    @property
    def state(self) -> AgentState:
        """The durable state of the agent."""

    @property
    def watchdog(self) -> Watchdog:
        """The watchdog of the machine. Used only by fences that are guarded by it."""


class AsyncioAgentContext(AsyncioContext):
    """The context of an agent in a process. ``options``: those of `AsyncioContext`."""

    def __init__(
        self,
        cell: CellEndpoint,
        driver: DriverCalls,
        state: AgentState,
        watchdog: Watchdog | None = None,
        **options: Any,
    ) -> None:
        super().__init__(_no_database, **options)
        self.cell = cell
        self.driver = driver
        self.state = state
        self.watchdog = watchdog or NoWatchdog()


def _no_database(name: str) -> Transactor:
    raise LookupError(f"an agent has no database {name}")
