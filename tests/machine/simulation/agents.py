"""Agents of the simulated world: a plain one on its cell's database, for worlds without sessions."""

from collections import Counter
from typing import Any

import msgspec

from machine.simulation.hosts import FOREIGN, Host
from machine.simulation.network import Handling, Network
from machine.simulation.process import Process
from roost.cells.building import AttemptKey, ConfirmAttempt, ReportResults
from roost.cells.ending import Destroyed
from roost.cells.guests import GuestsReported
from roost.cells.orders import WorkOfHosts
from roost.compute.driving import DestroyGuest, Guests, Prepare, StartGuest
from roost.compute.errors import BuildEnded, BuildFailed
from roost.machine import Ask, Await, Clock, Machine, Read, Record, Sleep, Start, Wake, Write
from roost.model.instance import ASSIGNED, STARTING, BuildResult, DestroyOrder, Instance
from roost.storage import StorageError

DRIVER = "driver"
WORK = "work"
"""Topic of an agent: something is done, or there may be something to do."""

GUESTS_SECONDS = 10.0
"""Seconds between two comparisons of the guests with the cell's instances."""


class DriverService:
    """The driver of a host, which takes its time. It is in the process of the agent."""

    patience = 1e9
    local = True

    def __init__(self, host: Host) -> None:
        self._host = host
        self._ended: Counter[str] = Counter()

    def handle(self, asker: Process, question: Any) -> Handling:
        """Do it, after some time."""
        return Handling(asker, self._do(question, asker.network))

    def unreachable(self, unknown: bool) -> Exception:
        """The agent, which would be told, has crashed."""
        return ConnectionError("the agent is gone")

    def _do(self, question: Any, network: Network) -> Machine[Any]:
        random = network.random
        match question:
            case Guests():
                return {uuid: attempt for uuid, attempt in self._host.guests.items() if uuid != FOREIGN}
            case Prepare(instance):
                before = self._ended[instance.uuid]
                yield from Sleep(random.choice((0.01, 0.5, 3.0, 15.0))).do()
                self._go_on(instance.uuid, before)
                self._host.prepare(instance.uuid, instance.attempt)
            case StartGuest(instance):
                before = self._ended[instance.uuid]
                yield from Sleep(random.choice((0.01, 0.5))).do()
                self._go_on(instance.uuid, before)
                self._host.start(instance.uuid, instance.attempt)
            case DestroyGuest(instance):
                self._ended[instance] += 1
                yield from Sleep(random.choice((0.01, 0.5, 2.0))).do()
                self._host.destroy(instance)
            case _:
                raise AssertionError(f"a driver is not asked for {question!r}")
        return None

    def _go_on(self, instance: str, before: int) -> None:
        if self._ended[instance] != before:
            raise BuildEnded("the instance is to be destroyed")


class PlainAgent:
    """The machines of one host's agent, on the works of its cell.

    ``confirms``: whether it asks before it starts a guest.
    """

    def __init__(self, host: str, cell: str, confirms: bool = True) -> None:
        self.host = host
        self.cell = cell
        self.database = f"cell/{cell}"
        self.confirms = confirms
        self._building: set[str] = set()

    def begin(self, process: Process) -> None:
        """Start the machines."""
        process.run("works", self.work())
        process.run("compares", self.compare())

    def work(self) -> Machine[None]:
        """Carry out what the cell says is to be done here, for ever."""
        while True:
            try:
                yield from self._look()
            except StorageError:
                yield from Sleep(1.0).do()
            yield from Await(WORK, 2.0).do()

    def compare(self) -> Machine[None]:
        """Tell the cell of the guests, for ever."""
        while True:
            yield from Sleep(GUESTS_SECONDS).do()
            guests = yield from Ask(DRIVER, Guests()).do()
            try:
                at = yield from Clock().do()
                yield from Write(self.database, GuestsReported(self.host, guests, at)).do()
            except StorageError:
                continue

    def _look(self) -> Machine[None]:
        found = yield from Read(self.database, WorkOfHosts((self.host,))).do()
        destroy = list(found.orders)
        for instance in found.instances:
            if instance.uuid in self._building:
                continue
            if instance.state in (ASSIGNED, STARTING):
                self._building.add(instance.uuid)
                yield from Start(f"builds {instance.uuid}", self._build(instance)).do()
            else:
                destroy.append(DestroyOrder(instance.uuid, instance.attempt, self.host))
        done = [order for order in destroy if order.instance not in self._building]
        guests = yield from Ask(DRIVER, Guests()).do()
        for order in done:
            if guests.get(order.instance, order.attempt) <= order.attempt:
                yield from Ask(DRIVER, DestroyGuest(order.instance)).do()
        if done:
            yield from Write(self.database, Destroyed(tuple(done), (yield from Clock().do()))).do()

    def _build(self, instance: Instance) -> Machine[None]:
        key = AttemptKey(instance.uuid, instance.attempt)
        failure: BuildFailed | None = None
        guests = yield from Ask(DRIVER, Guests()).do()
        if guests.get(instance.uuid) != instance.attempt:
            try:
                yield from Ask(DRIVER, Prepare(instance)).do()
            except BuildFailed as error:
                failure = error
            if failure is None:
                if self.confirms and not (yield from self._confirmed(key)):
                    self._building.discard(instance.uuid)
                    return
                yield from Ask(DRIVER, StartGuest(instance)).do()
        result = BuildResult(instance.uuid, self.host, instance.attempt)
        if failure is not None:
            result = msgspec.structs.replace(
                result, failure=str(failure), code=failure.code, retryable=failure.retryable
            )
        while True:
            try:
                report = ReportResults((result,), (yield from Clock().do()), self.cell)
                ended = yield from Write(self.database, report).do()
                break
            except StorageError:
                yield from Sleep(1.0).do()
        yield from Record((), ended).do()
        self._building.discard(instance.uuid)
        yield from Wake(WORK).do()

    def _confirmed(self, key: AttemptKey) -> Machine[bool]:
        while True:
            try:
                at = yield from Clock().do()
                return (yield from Write(self.database, ConfirmAttempt(key, self.host, at)).do())
            except StorageError:
                yield from Sleep(1.0).do()
