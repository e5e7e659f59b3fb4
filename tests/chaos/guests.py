"""The driver of simulated hosts whose guests outlive their agent: the witness of what ran where and when.

Each host has a file of lines: time, event, instance, attempt. The time is CLOCK_MONOTONIC, which all
processes of the machine share and no fault steps. So the files say whether an instance ran twice at a time.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from roost.model.instance import Instance
from roost.model.inventory import Inventory

if TYPE_CHECKING or find_spec("roost.agent"):
    from roost.agent.drivers import Hardware
    from roost.agent.drivers.simulated import (
        FailureRule,
        Script,
        SimulatedDriver,
        SimulatedHost,
        SimulatedProvider,
    )
    from roost.agent.errors import BuildFailed, NoSuchGuest
    from roost.agent.provider_tree import ProviderTree
    from roost.process.option_source import Source
else:
    # The earlier Roost with which a rolling upgrade begins has these elsewhere.
    from roost.auth import Source
    from roost.compute.drivers.simulated import (
        FailureRule,
        Script,
        SimulatedDriver,
        SimulatedHost,
        SimulatedProvider,
    )
    from roost.compute.errors import BuildFailed

    NoSuchGuest = BuildFailed
    from roost.compute.hardware import Hardware
    from roost.compute.provider_tree import ProviderTree

STARTED = "started"
STOPPED = "stopped"
"""It was stopped, or its host has lost its power; its disks are there."""
ENDED = "ended"
FOLDER = "ROOST_TEST_GUESTS"
"""The environment variable that names the folder of the files."""

SHAPE = "ROOST_TEST_SHAPE"
"""The environment variable that says where the virtual GPUs of hosts are: one of `SHAPES`."""
FLAT = "flat"
CARDS = "cards"
SHAPES = (FLAT, CARDS)
"""On the host's provider, or on two cards below it. A host whose agent is started with another one is
reshaped."""

INVENTORY = {"VCPU": Inventory(32), "MEMORY_MB": Inventory(1 << 17)}
GPUS = 4
BUILD_SECONDS = 0.1
FAILURES = 0.15
"""The share of builds that fail."""


class Event(NamedTuple):
    """A guest was started, stopped or ended."""

    at: float
    event: str
    host: str
    instance: str
    attempt: int


class WitnessedDriver:
    """A simulated host. What was started runs until it is destroyed, whatever becomes of the agent."""

    def __init__(self, host: SimulatedHost, script: Script, folder: Path) -> None:
        self._host = host
        self._script = script
        self._facts = SimulatedDriver(host, script)
        told = events_of(folder, host.name)
        self._running = {instance: each.attempt for instance, each in running(told)}
        last = {each.instance: each for each in told}
        self._stopped = {uuid: each.attempt for uuid, each in last.items() if each.event == STOPPED}
        self._file = os.open(folder / host.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def nodes(self) -> Mapping[str, str] | None:
        return None

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        self._facts.update_provider_tree(tree, nodename, allocations)

    def metrics(self) -> dict[str, float]:
        return {}

    def hardware(self) -> Hardware | None:
        return None

    def guests(self) -> Mapping[str, int]:
        return self._running

    async def recover(self, instances: Collection[Instance]) -> None:
        """Nothing: the file says what runs."""

    async def prepare(self, instance: Instance) -> None:
        # A stopped guest of an earlier attempt is replaced.
        await self.destroy(instance.uuid)
        await asyncio.sleep(self._script.build_seconds)
        reason = self._script.failure(self._host.name, instance.uuid, instance.attempt)
        if reason is not None:
            raise BuildFailed(reason)

    async def start(self, instance: Instance) -> None:
        self._write(STARTED, instance.uuid, instance.attempt)
        self._running[instance.uuid] = instance.attempt

    @property
    def keeps_disks(self) -> bool:
        return True

    @property
    def keeps_shelved(self) -> bool:
        return True

    async def stop(self, instance: str) -> None:
        if instance not in self._stopped:
            if instance not in self._running:
                raise NoSuchGuest(f"there is no guest of instance {instance}")
            self._write(STOPPED, instance, self._running[instance])
            self._stopped[instance] = self._running.pop(instance)

    async def start_again(self, instance: Instance) -> None:
        if instance.uuid not in self._running:
            if self._stopped.get(instance.uuid) != instance.attempt:
                raise NoSuchGuest(f"there is no guest of attempt {instance.attempt} of {instance.uuid}")
            self._write(STARTED, instance.uuid, instance.attempt)
            self._running[instance.uuid] = self._stopped.pop(instance.uuid)

    async def destroy(self, instance: str) -> None:
        for there in (self._running, self._stopped):
            attempt = there.pop(instance, None)
            if attempt is not None:
                self._write(ENDED, instance, attempt)

    def _write(self, event: str, instance: str, attempt: int) -> None:
        os.write(self._file, _line(event, instance, attempt))


def power_off(folder: Path, host: str) -> None:
    """Note that a host has lost its power: its guests are stopped. Its agent does not run."""
    if not (there := events_of(folder, host)):
        return
    path = folder / host
    # A line that the agent did not finish says nothing, and must not spoil the next one.
    os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    with path.open("ab") as file:
        file.writelines(_line(STOPPED, uuid, each.attempt) for uuid, each in running(there))


def _line(event: str, instance: str, attempt: int) -> bytes:
    return f"{time.monotonic():.6f} {event} {instance} {attempt}\n".encode()


def events_of(folder: Path, host: str) -> list[Event]:
    """What a host's file says. A line that its agent did not finish is left out."""
    try:
        text = (folder / host).read_text()
    except FileNotFoundError:
        return []
    found = []
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            at, event, instance, attempt = line.split()
            found.append(Event(float(at), event, host, instance, int(attempt)))
    return found


def all_events(folder: Path) -> list[Event]:
    """What the files of all hosts say, in order of time."""
    return sorted(event for path in folder.iterdir() for event in events_of(folder, path.name))


def running(events: Collection[Event]) -> Iterator[tuple[str, Event]]:
    """The guests that run at the end: instance, and the event of its start."""
    there: dict[tuple[str, str], Event] = {}
    for each in events:
        if each.event == STARTED:
            there[each.host, each.instance] = each
        else:
            there.pop((each.host, each.instance), None)
    for (_, instance), event in there.items():
        yield instance, event


def overlaps(events: Collection[Event]) -> list[str]:
    """Where an instance ran twice at a time. ``events`` in order of time."""
    there: defaultdict[str, dict[str, Event]] = defaultdict(dict)
    found = []
    for each in events:
        guests = there[each.instance]
        if each.event != STARTED:
            guests.pop(each.host, None)
            continue
        found += [f"instance {each.instance} ran at a time: {other} and {each}" for other in guests.values()]
        guests[each.host] = each
    return found


def host_of(name: str, shape: str) -> SimulatedHost:
    """A host with its virtual GPUs in a shape."""
    if shape == FLAT:
        return SimulatedHost(name, INVENTORY | {"VGPU": Inventory(GPUS)})
    cards = [SimulatedProvider(f"card{number}", {"VGPU": Inventory(GPUS // 2)}) for number in (1, 2)]
    return SimulatedHost(name, INVENTORY, tuple(cards))


def witnessed(source: Source) -> Callable[[str, Path], WitnessedDriver]:
    """The kind of driver that `roost agent --driver chaos.guests:witnessed` loads."""
    folder = Path(os.environ[FOLDER])
    script = Script(BUILD_SECONDS, (FailureRule(FAILURES),))
    shape = os.environ.get(SHAPE, FLAT)
    return lambda host, _: WitnessedDriver(host_of(host, shape), script, folder)
