"""The users and operators of a Nova cloud whose services are killed, and the rules that hold at the end."""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from support.nova import NovaError
from support.nova_cloud.cloud import NovaCloud

POPULATION = 40
"""Servers from which on more are deleted than built."""

LOOK = 8
"""Operations between two looks at the state of the cloud."""

STUCK_SECONDS = 45.0
"""Seconds without a change after which instances with a task are taken for stuck."""

STILL_SECONDS = 20.0
"""Most seconds that an evacuation or a kill waits until no server moves."""

AMOUNTS = {
    "small": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10},
    "large": {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 20},
}


class NovaChaos:
    """Operations at random, and three faults among them.

    A call that a killed broker loses between conductor and compute leaves a migration that no Nova ends,
    whatever scheduler it has. So broker and database are killed while servers are built and deleted, and not
    while one moves.

    ``done``, ``refused``: operations by name, and errors of Nova's API by class.
    """

    def __init__(self, cloud: NovaCloud, operations: int, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._cloud = cloud
        self._operations = operations
        self._random = random.Random(seed)
        self._servers: dict[str, dict[str, Any]] = {}
        self._moves = True
        self._later: list[tuple[int, Callable[[], None]]] = []
        self._dead: str | None = None

    def run(self) -> None:
        """Make all operations; all services run at the end."""
        faults = {
            self._operations * part // 8: fault
            for part, fault in (
                (1, self._kill_scheduler),
                (2, self._pause_moves),
                (3, self._kill_broker),
                (5, self._kill_database),
                (7, self._kill_scheduler),
            )
        }
        for number in range(self._operations):
            for _, undo in [each for each in self._later if each[0] <= number]:
                undo()
            self._later = [each for each in self._later if each[0] > number]
            if fault := faults.get(number):
                fault(number)
            if number % LOOK == 0:
                self._servers = self._cloud.instances()
            self._operate(number)
        for _, undo in self._later:
            undo()

    def settle(self) -> None:
        """Wait for work in flight, confirm what was resized, and delete what is stuck or in error."""
        cloud = self._cloud
        for name in self._stuck():
            self._ask("clean_up", instance=name)
        for name, each in cloud.instances().items():
            if each["state"] == "resized":
                self._ask("confirm", instance=name)
            elif each["state"] != "active":
                # In error; or half built or half deleted, as computes leave it whose database is away.
                self._ask("clean_up", instance=name)
        stuck = self._stuck()
        assert not stuck, {name: cloud.instances().get(name) for name in stuck}

    def check(self) -> None:
        """Fail unless each server holds its flavor's amounts of its host, and no host is over capacity."""
        cloud = self._cloud
        for name, each in cloud.instances().items():
            if each["state"] == "active":
                right = {each["host"]: AMOUNTS[each["flavor"]]}
                assert cloud.held(name) == right or cloud.freed_by_nova(name, each["host"]), each
        for provider in cloud.node_hosts:
            usages = cloud.of_provider(provider, "usages")
            for kind, inventory in cloud.of_provider(provider, "inventories").items():
                capacity = (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]
                assert usages[kind] <= capacity, (provider, kind)

    # Operations

    def _stuck(self) -> list[str]:
        """The instances that have a task or a build request, when none of these has ended for a while."""
        found = self._unfinished()
        changed = time.monotonic()
        while found and time.monotonic() < changed + STUCK_SECONDS:
            time.sleep(1.0)
            if (now := self._unfinished()) != found:
                found, changed = now, time.monotonic()
        return sorted(found)

    def _unfinished(self) -> set[str]:
        return {*self._busy(), *self._cloud.ask("requests")}

    def _busy(self) -> list[str]:
        return [name for name, each in self._cloud.instances().items() if each["task"] is not None]

    def _operate(self, number: int) -> None:
        idle = {name: each for name, each in self._servers.items() if each["task"] is None}
        active = [name for name, each in idle.items() if each["state"] == "active"]
        resized = [name for name, each in idle.items() if each["state"] == "resized"]
        wrong = [name for name, each in idle.items() if each["state"] == "error"]
        many = len(self._servers) >= POPULATION
        choices = [("boot", 1 if many else 6), ("delete", 6 if many else 2)]
        if self._moves:
            choices += [("resize", 3), ("confirm", 4), ("live_migrate", 2), ("evacuate", 2)]
        [name] = self._random.choices([each[0] for each in choices], [each[1] for each in choices])
        among = {"delete": wrong + active, "confirm": resized}.get(name, active)
        if name == "boot" or not among:
            count = self._random.choice((1, 1, 2, 3))
            self._count("boot", self._try(lambda: self._cloud.boot(count)))
            return
        chosen = self._random.choice(among)
        if name == "evacuate":
            self._evacuate(number, self._servers[chosen]["host"])
            return
        server = self._servers.pop(chosen)
        more = {}
        if name == "resize":
            more = {
                "flavor": self._random.choice([None, "small" if server["flavor"] == "large" else "large"])
            }
        if name == "confirm":
            name = self._random.choice(["confirm", "revert"])
        self._ask(name, instance=chosen, **more)

    def _evacuate(self, number: int, host: str) -> None:
        if self._dead is not None or not self._still(host):
            return
        self._dead = host
        self._cloud.computes[host].kill()
        self._cloud.ask("force_down", host=host, down=True)
        guests = [name for name, each in self._servers.items() if each["host"] == host]
        for name in guests[:4]:
            self._servers.pop(name)
            self._ask("evacuate", instance=name)

        def back() -> None:
            self._still(host)
            self._cloud.computes[host].start()
            self._cloud.ask("force_down", host=host, down=False)
            self._dead = None

        self._later.append((number + 2 * LOOK, back))

    def _still(self, host: str = "") -> bool:
        """Wait until no server moves, and a host has no work that its death would leave behind."""
        until = time.monotonic() + STILL_SECONDS
        while time.monotonic() < until:
            busy = [each for each in self._cloud.instances().values() if each["task"] is not None]
            moving = [each for each in busy if each["state"] != "building" and each["task"] != "deleting"]
            if not moving and not any(each["host"] == host for each in busy):
                return True
            time.sleep(0.5)
        return False

    def _ask(self, function: str, /, **arguments: Any) -> None:
        self._count(function, self._try(lambda: self._cloud.ask(function, **arguments)))

    def _try(self, action: Callable[[], Any]) -> bool:
        try:
            action()
        except NovaError as error:
            self.refused[error.kind] += 1
            return False
        return True

    def _count(self, name: str, done: bool) -> None:
        self.done[name] += done

    # Faults

    def _kill_scheduler(self, number: int) -> None:
        scheduler = self._random.choice(sorted(self._cloud.schedulers))
        self._cloud.schedulers[scheduler].process.kill()
        self._later.append((number + LOOK, lambda: self._cloud.start_scheduler(scheduler)))

    def _pause_moves(self, number: int) -> None:
        self._moves = False

        def again() -> None:
            self._moves = True

        self._later.append((number + self._operations // 2, again))

    def _kill_broker(self, number: int) -> None:
        self._still()
        self._cloud.broker.kill()
        time.sleep(1.0)
        self._cloud.broker.start()

    def _kill_database(self, number: int) -> None:
        self._still()
        self._cloud.cell_database.kill()
        self._later.append((number + LOOK, self._cloud.cell_database.start))
