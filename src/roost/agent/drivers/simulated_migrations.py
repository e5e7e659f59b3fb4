"""Simulated guests that go from one simulated host to another while they run."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from roost.agent.errors import NotMigrated

ENDED = "the migration was ended"

NO_WAY = "simulated guests go to hosts of the same process only, and host {host} is not one"

NOT_READY = "host {host} is not ready to receive attempt {attempt}"

BROKEN = "the connection to host {host} broke"


class LiveScript(msgspec.Struct, frozen=True):
    """The behaviour of simulated migrations.

    ``seconds``: the duration of each. ``failure_rate``: the share (0..1) that fails in the end, with the
    guest on its host as before. ``loss_rate``: the share of the others whose guest is lost at the end.
    """

    seconds: float = 0.0
    failure_rate: float = 0.0
    loss_rate: float = 0.0


class Receiver(Protocol):
    """A simulated host that guests come to."""

    def is_ready(self, instance: str, attempt: int) -> bool:
        """Return whether the host is ready for the guest of an attempt."""

    def arrive(self, instance: str) -> None:
        """Have the guest run for which the host is ready. Raises OSError."""


class SimulatedNetwork:
    """The simulated hosts that reach one another: those of one process."""

    def __init__(self) -> None:
        self._hosts: dict[str, Receiver] = {}

    def join(self, name: str, host: Receiver) -> None:
        """Add a host, or replace it."""
        self._hosts[name] = host

    def find(self, name: str) -> Receiver:
        """Return a host by its name. Raises `NotMigrated`."""
        found = self._hosts.get(name)
        if found is None:
            raise NotMigrated(NO_WAY.format(host=name))
        return found


class Migrations:
    """The guests of a simulated host that are on their way to others.

    ``leave``: has a guest not run on the host any more. ``is_drawn``: returns whether a share of migrations
    has one, named by a word.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        script: LiveScript,
        leave: Callable[[str], None],
        is_drawn: Callable[[float, str], bool],
    ) -> None:
        self._network = network
        self._script = script
        self._leave = leave
        self._is_drawn = is_drawn
        self._going: dict[str, asyncio.Task[None]] = {}

    async def go(self, instance: str, host: str, attempt: int) -> None:
        """Have a guest go, or wait for the end of its migration. Raises `NotMigrated`, OSError."""
        task = self._going.get(instance)
        if task is None:
            task = self._going[instance] = asyncio.create_task(self._go(instance, host, attempt))
            task.add_done_callback(lambda _: self._going.pop(instance, None))
        # An agent that ends its call does not end the migration.
        await asyncio.wait([task])
        if task.cancelled():
            raise NotMigrated(ENDED)
        task.result()

    async def end(self, instance: str) -> None:
        """End the migration of a guest."""
        task = self._going.get(instance)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _go(self, instance: str, host: str, attempt: int) -> None:
        target = self._network.find(host)
        await asyncio.sleep(self._script.seconds)
        words = f"{instance} {attempt}"
        if self._is_drawn(self._script.failure_rate, f"migrate {words}"):
            raise NotMigrated(BROKEN.format(host=host))
        if not target.is_ready(instance, attempt):
            raise NotMigrated(NOT_READY.format(host=host, attempt=attempt))
        self._leave(instance)
        if not self._is_drawn(self._script.loss_rate, f"arrive {words}"):
            target.arrive(instance)
