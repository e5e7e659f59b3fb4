"""Agents of the simulated world: the real agent of a host, its driver, its state, and its cell's endpoint."""

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from roost.agent.driver_calls import ConsumerRecords
from roost.agent.errors import BuildEnded, NotMigrated
from roost.agent.host import HostAgent
from roost.agent.options import AgentTimes
from roost.agent.protocol.errors import AgentProtocolError, EndpointUnavailable
from roost.agent.protocol.questions import Call, Confirm
from roost.agent.protocol.types import PortsReleased
from roost.agent.provider_tree import ProviderTree
from roost.conductor.agent_endpoint.endpoint import AgentEndpoint
from roost.model.fence import Fence
from roost.model.instance import Instance
from support.simulation.hosts import FOREIGN, Host
from support.simulation.network import Handling, Network
from support.simulation.process import Process, ServiceCall, SimulatedContext

TIMES = AgentTimes(report=20.0, keep=10.0, longest_retry=8.0, token=float("inf"))
"""Agents poll as in a cloud, and report their providers more often."""


_SLOW = (
    *("prepare", "start", "destroy", "stop", "start_again", "power_off"),
    *("receive", "migrate", "end_migration"),
)
"""The calls of a driver that take time."""


class DriverService:
    """The driver of a host, which takes its time. It is in the process of the agent."""

    patience = 1e9
    local = True
    repeats_late = True

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ended: Counter[str] = Counter()

    def handle(self, asker: Process, call: ServiceCall) -> Any:
        """Tell at once what there is; do anything else after some time."""
        answer = getattr(self, call.method)
        if call.method in _SLOW:
            return Handling(asker, answer(asker.context, *call.arguments))
        return answer(*call.arguments)

    def unreachable(self, unknown: bool) -> Exception:
        """The agent, which would be told, has crashed."""
        return ConnectionError("the agent is gone")

    def guests(self) -> dict[str, int]:
        return {uuid: attempt for uuid, attempt in self._host.guests.items() if uuid != FOREIGN}

    def fill_tree(self, tree: ProviderTree, node: str) -> ProviderTree:
        self._host.fill(tree, node)
        return tree

    def reshape_tree(
        self, tree: ProviderTree, node: str, allocations: ConsumerRecords
    ) -> tuple[ProviderTree, ConsumerRecords]:
        self._host.fill(tree, node, allocations)
        return tree, allocations

    def metrics(self) -> dict[str, float]:
        return {}

    def nodes(self) -> None:
        """The host is its only node."""

    def disk_store(self) -> str | None:
        return self._host.store

    def remove_disks(self, instance: str) -> None:
        self._host.remove_disk(instance)

    def keeps_shelved(self) -> bool:
        return self._host.keeps_shelved

    def hardware(self) -> None:
        """The host has no hardware that is assigned."""

    def recover(self, instances: object) -> None:
        """All guests run on."""

    def resizes_in_place(self) -> bool:
        return True

    async def prepare(self, context: SimulatedContext, instance: Instance, beside: int | None) -> None:
        before = self._ended[instance.uuid]
        seconds = self._host.seconds or context.random.choice((0.01, 0.5, 3.0, 15.0))
        await context.listen(instance.uuid, from_now=True).wait(seconds)
        self._go_on(instance.uuid, before)
        if instance.shelf is not None and instance.finds_disks:
            self._host.find_disk(instance.uuid)
        if instance.selection is not None:
            self._host.mappings[instance.uuid, instance.attempt] = instance.selection.mappings
        if instance.move is None or not instance.starts:
            keeps = instance.move is not None or instance.shelf is not None
            self._host.bind(instance.uuid, instance.attempt, moves=keeps)
        if beside is None:
            self._host.prepare(instance.uuid, instance.attempt)
        else:
            self._host.prepare_beside(instance.uuid, instance.attempt, beside)

    def moves_live(self) -> bool:
        return True

    async def receive(self, context: SimulatedContext, instance: Instance) -> None:
        before = self._ended[instance.uuid]
        await context.sleep(context.random.choice((0.01, 0.5, 3.0)))
        self._go_on(instance.uuid, before)
        if instance.selection is not None:
            self._host.mappings[instance.uuid, instance.attempt] = instance.selection.mappings
        self._host.receive(instance.uuid, instance.attempt)

    async def migrate(self, context: SimulatedContext, instance: str, target: Instance) -> None:
        await context.sleep(self._host.hesitates or context.random.choice((0.01, 0.5)))
        self._host.migrate(instance, target.host or "", target.attempt)
        while instance in self._host.migrations:
            await context.sleep(0.5)
        if instance in self._host.guests:
            raise NotMigrated("the other host is not ready")

    async def end_migration(self, context: SimulatedContext, instance: str) -> None:
        await context.sleep(context.random.choice((0.01, 0.5, 2.0)))
        self._host.migrations.pop(instance, None)

    async def start(self, context: SimulatedContext, instance: Instance) -> None:
        before = self._ended[instance.uuid]
        await context.sleep(context.random.choice((0.01, 0.5)))
        self._go_on(instance.uuid, before)
        if instance.move is not None:
            self._host.bind(instance.uuid, instance.attempt, moves=True)
        self._host.start(instance.uuid, instance.attempt)

    async def stop(self, context: SimulatedContext, instance: str) -> None:
        await context.sleep(context.random.choice((0.01, 0.5, 2.0)))
        self._host.stop(instance)

    async def power_off(self, context: SimulatedContext, instance: str) -> None:
        await context.sleep(context.random.choice((0.01, 0.5, 2.0)))
        if instance in self._host.guests:
            self._host.stop(instance)

    async def start_again(self, context: SimulatedContext, instance: Instance, over: int) -> None:
        await context.sleep(context.random.choice((0.01, 0.5)))
        self._host.bind(instance.uuid, instance.attempt, over, moves=True)
        self._host.start_again(instance.uuid, instance.attempt)

    async def destroy(
        self,
        context: SimulatedContext,
        instance: str,
        ports: PortsReleased,
        attempt: int | None = None,
    ) -> None:
        self._ended[instance] += 1
        context.wake(instance)
        await context.sleep(context.random.choice((0.01, 0.5, 2.0)))
        if attempt is None:
            self._host.destroy(instance)
        else:
            self._host.destroy_attempt(instance, attempt)
        self._host.release(instance, ports)

    def _go_on(self, instance: str, before: int) -> None:
        if self._ended[instance] != before:
            raise BuildEnded("the instance is to be destroyed")


class StateService:
    """The state directory of a host's agent, which outlives the agent."""

    patience = 1e9
    local = True
    repeats_late = True

    def __init__(self, host: Host) -> None:
        self._state = host.state

    def handle(self, asker: Process, call: ServiceCall) -> Any:
        """Answer at once."""
        return at_once(getattr(self._state, call.method)(*call.arguments))

    def unreachable(self, unknown: bool) -> Exception:
        """The agent, which would be told, has crashed."""
        return ConnectionError("the agent is gone")


class EndpointService:
    """The endpoint of a cell, as one agent reaches it: in one of the processes that serve it, now and then in
    another one. ``confirms``: whether a build is confirmed by the cell, and not by everybody."""

    patience = 45.0
    local = False
    repeats_late = True

    def __init__(self, cell: str, servers: Callable[[], Sequence[Process]], confirms: bool) -> None:
        self._cell = cell
        self._servers = servers
        self._confirms = confirms
        self._at: Process | None = None

    def at(self, process: Process) -> None:
        """Have a process answer from now on."""
        self._at = process

    def handle(self, asker: Process, question: Any) -> Any:
        """Have a process answer."""
        if isinstance(question, Confirm) and not self._confirms:
            return True
        random = asker.network.random
        if self._at is None or not self._at.up or random.random() < 0.05:
            servers = self._servers()
            self._at = random.choice([each for each in servers if each.up] or [*servers])
        endpoint = self._at.memory.get(endpoint_of(self._cell))
        if endpoint is None:
            raise EndpointUnavailable("nobody listens there")
        return Handling(self._at, _answer(endpoint, question, asker.network))

    def unreachable(self, unknown: bool) -> Exception:
        """What the agent sees."""
        return EndpointUnavailable("the endpoint does not answer")


def endpoint_of(cell: str) -> str:
    """Where a process that serves a cell's agents has its endpoint in its memory."""
    return f"endpoint of {cell}"


async def _answer(endpoint: AgentEndpoint, question: Call[Any], network: Network) -> Any:
    try:
        return await endpoint.answer(question)
    except AgentProtocolError:
        raise
    except Exception as error:
        network.defect(f"the endpoint fails with {error!r} at {question!r}", error)


def begin_agent(process: Process, host: Host, fence: Fence | None = None) -> None:
    """Start the agent of a host. ``fence``: its own."""
    agent = process.memory["agent"] = HostAgent(process.context, host.name, times=TIMES, fence=fence)
    process.run("agent", agent.run())


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    coroutine.close()
    raise RuntimeError("it waits, and in simulated time nothing may")
