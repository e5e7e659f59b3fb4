"""A small real Nova cloud whose scheduler is Roost: MariaDB, RabbitMQ, placement, conductors and computes.

    users and operators (operations.py) ──▶ super conductor ──▶ roost nova-scheduler ──▶ roost serve
                                                 │                  │ reads
                                                 ▼                  ▼
                           cells 1 to n: conductor, computes, virtual host of the broker, database

The last cell has a database server of its own, which tests kill. There is no Keystone; the image and the
network service are stubs.
"""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from support.databases import Servers
from support.nova import Nova
from support.nova_cloud.configuration import of_compute, of_databases, of_nova, write
from support.nova_cloud.programs import NovaProgram, NovaPrograms
from support.nova_cloud.stub_services import IMAGE, StubServices
from support.programs import Program
from support.rabbitmq import RabbitMQ
from support.serving import roost
from support.waiting import Deadline

OPERATIONS = "cloud.operations"


class NovaCloud:
    """The cloud; it runs within a ``with`` block.

    ``folder``: can be entered by the accounts of MariaDB and RabbitMQ. ``cells``, ``hosts``: how many cells,
    and computes of each. ``schedulers``: how many `roost nova-scheduler`.
    """

    def __init__(
        self,
        servers: Servers,
        python: Path,
        folder: Path,
        cells: int = 3,
        hosts: int = 2,
        schedulers: int = 2,
    ) -> None:
        self.folder = folder
        self.cells = [f"cell{number}" for number in range(1, cells + 1)]
        self.hosts = {name: [f"{name}-host{number}" for number in range(1, hosts + 1)] for name in self.cells}
        self._python = python
        self._stack = contextlib.ExitStack()
        self.database = servers.new("mariadb", "nova")
        self.cell_database = servers.new("mariadb", "cell")
        self.broker = RabbitMQ(folder, virtual_hosts=self.cells)
        self.stubs = StubServices()
        self.programs = NovaPrograms(python, folder)
        self.conductors: dict[str, NovaProgram] = {}
        self.computes: dict[str, NovaProgram] = {}
        self.schedulers: dict[int, Program] = {}
        self._scheduler_count = schedulers
        self._users: Nova | None = None

    def __enter__(self) -> Self:
        with self._stack as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, function: str, /, **arguments: Any) -> Any:
        """The answer to a call of a user or an operator, see ``tests/nova/upstream/cloud/operations.py``."""
        assert self._users is not None
        return self._users.ask(OPERATIONS, function, **arguments)

    def boot(self, count: int = 1, flavor: str = "small") -> list[str]:
        """Ask for servers; return their uuids."""
        return self.ask("boot", image=IMAGE, count=count, flavor=flavor)

    def instances(self) -> dict[str, dict[str, Any]]:
        """The instances of all cells."""
        return {each["uuid"]: each for each in self.ask("instances")}

    def settle(
        self, *names: str, state: str | None = "active", seconds: float = 60.0
    ) -> dict[str, dict[str, Any]]:
        """Wait until instances are in a state without a task, and return them; None: until they are gone."""
        deadline = Deadline(seconds)
        while True:
            found = {name: each for name, each in self.instances().items() if name in names}
            if state is None and not found and not set(names) & set(self.ask("requests")):
                return {}
            if len(found) == len(names) and all(
                each["state"] == state and each["task"] is None for each in found.values()
            ):
                return found
            if wrong := [each for each in found.values() if each["state"] == "error" != state]:
                raise AssertionError(f"{wrong}")
            self.check()
            assert not deadline.passed, f"not {state}: {json.dumps(list(found.values()))}"
            time.sleep(0.2)

    def check(self) -> None:
        """Fail if a program of Nova has ended by itself."""
        for name, each in (*self.conductors.items(), *self.computes.items()):
            assert each.pid is None or each.status() is None, f"{name} has ended: {each.said()[-3000:]}"

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until a condition holds. It fails if a program of Nova ends."""
        deadline = Deadline(seconds)
        while not condition():
            self.check()
            assert not deadline.passed, "it did not happen"
            time.sleep(0.2)

    def delete(self, *names: str) -> None:
        """Delete instances, and wait until they are gone."""
        for name in names:
            self.ask("delete", instance=name)
        self.settle(*names, state=None)

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """The amounts that a consumer holds in placement, by host."""
        found = self.placement.client.get(f"/allocations/{consumer}").json()["allocations"]
        return {self.node_hosts[provider]: each["resources"] for provider, each in found.items()}

    def manage(self, *arguments: str, status: int = 0) -> str:
        """Run a command of ``nova-manage``; return its output. It fails if it ends with another status."""
        return self.programs.manage(self.config, *arguments).finish(status)

    def of_provider(self, provider: str, kind: str) -> dict[str, Any]:
        """The usages or the inventories of a provider in placement, by class."""
        return self.placement.client.get(f"/resource_providers/{provider}/{kind}").json()[kind]

    def audited(self) -> bool:
        """Whether ``nova-manage placement audit`` finds no allocation without an instance or migration."""
        return self.programs.manage(self.config, "placement", "audit", "--verbose").end() == 0

    def judge(self) -> None:
        """Fail if Nova's own commands find an allocation too many, or one that an instance lacks."""
        self.manage("placement", "audit", "--verbose")
        healed = self.manage("placement", "heal_allocations", "--dry-run", "--verbose", status=4)
        lacking = re.findall(r"\[dry-run\] \w+ allocations for instance ([0-9a-f-]{36})", healed)
        assert healed.count("[dry-run]") == len(lacking), healed
        found = self.instances()
        unexplained = [found[name] for name in lacking if not self.freed_by_nova(name, found[name]["host"])]
        assert not unexplained, [
            (each, self.ask("migrations", instance=each["uuid"])) for each in unexplained
        ]

    def freed_by_nova(self, instance: str, host: str) -> bool:
        """Whether the compute of an instance has itself freed what the instance holds on its host.

        An evacuation whose call of a scheduler got no answer stays accepted. When its source starts, Nova's
        compute frees what the instance holds there, though it is still there, and ends the evacuation: so
        with any scheduler.
        """
        return any(
            (each["type"], each["status"], each["source"], each["target"])
            == ("evacuation", "completed", host, None)
            for each in self.ask("migrations", instance=instance)
        )

    @contextlib.contextmanager
    def refusing(self, *hosts: str) -> Iterator[None]:
        """Hosts whose hypervisors refuse new guests."""
        flags = [self.folder / host / "refuses" for host in hosts]
        for flag in flags:
            flag.touch()
        try:
            yield
        finally:
            for flag in flags:
                flag.unlink()

    @contextlib.contextmanager
    def disabled(self, *hosts: str) -> Iterator[None]:
        """Hosts that get no new servers by the operator's word."""
        for host in hosts:
            self.ask("disable", host=host, disabled=True)
        try:
            yield
        finally:
            for host in hosts:
                self.ask("disable", host=host, disabled=False)

    @contextlib.contextmanager
    def dead(self, host: str) -> Iterator[None]:
        """A host that is killed, and declared dead; it comes back."""
        self.computes[host].kill()
        self.ask("force_down", host=host, down=True)
        try:
            yield
        finally:
            self.computes[host].start()
            self.ask("force_down", host=host, down=False)

    # The start

    def _start(self, stack: contextlib.ExitStack) -> None:
        for server in (self.database, self.cell_database):
            stack.callback(server.kill)
            server.launch("--max-connections=1000")
        stack.callback(self.broker.close)
        self.broker.launch()
        stack.enter_context(self.stubs)
        stack.callback(self.programs.close)
        for server in (self.database, self.cell_database):
            server.wait()
        self._name_databases()
        self.placement = stack.enter_context(self._placement())
        self.common = of_nova(self.folder, self.placement.url, self.stubs.url)
        self.broker.wait()
        self.config = write(
            self.folder / "nova.conf",
            self.common,
            of_databases(self.api_url, self.urls["cell0"]),
            {"DEFAULT": {"transport_url": self.broker.url()}},
        )
        self._make_schemas()
        self._start_cells()
        self._users = Nova(self._python, self.folder / "users.log")
        stack.callback(self._users.close)
        self.ask("connect", config_file=str(self.config))
        self.ask("make_flavors")
        self._wait_for_hosts()
        self.manage("cell_v2", "discover_hosts")
        stack.callback(self._end_schedulers)
        for number in range(self._scheduler_count):
            self.start_scheduler(number)

    def _name_databases(self) -> None:
        servers = {"api": self.database, "cell0": self.database}
        servers |= dict.fromkeys(self.cells, self.database) | {self.cells[-1]: self.cell_database}
        self.urls = {}
        for name, server in servers.items():
            server.ask(f"CREATE DATABASE nova_{name}")
            self.urls[name] = server.url(f"nova_{name}")
        self.database.ask(*(f"CREATE DATABASE {name}" for name in ("placement", "bridge", "records")))
        self.api_url = self.urls.pop("api")

    def _placement(self) -> Program:
        config = write(
            self.folder / "placement.conf",
            {
                "api": {"auth_strategy": "noauth2"},
                "placement_database": {"connection": self.database.url("placement")},
            },
        )
        _upgrade("--config-file", str(config))
        return Program(self.folder, "serve", config=config, name="placement")

    def _make_schemas(self) -> None:
        configs = {
            name: write(self.folder / f"{name}.conf", self.common, of_databases(self.api_url, url))
            for name, url in self.urls.items()
        }
        made = [self.programs.manage(self.config, "api_db", "sync")]
        made += [self.programs.manage(config, "db", "sync", "--local_cell") for config in configs.values()]
        for each in made:
            each.finish()
        self.manage("cell_v2", "map_cell0", "--database_connection", self.urls["cell0"])
        for name in self.cells:
            places = ("--database_connection", self.urls[name], "--transport-url", self.broker.url(name))
            self.manage("cell_v2", "create_cell", "--name", name, *places)

    def _start_cells(self) -> None:
        self.conductors["super"] = self.programs.start("nova-conductor", self.config, "super-conductor")
        for name in self.cells:
            transport = {"DEFAULT": {"transport_url": self.broker.url(name), "host": f"{name}-conductor"}}
            databases = of_databases(self.api_url, self.urls[name])
            config = write(self.folder / f"{name}-conductor.conf", self.common, databases, transport)
            self.conductors[name] = self.programs.start("nova-conductor", config, f"{name}-conductor")
        for name, hosts in self.hosts.items():
            for host in hosts:
                own = self.folder / host
                own.mkdir()
                config = write(own / "nova.conf", self.common, of_compute(host, self.broker.url(name), own))
                self.computes[host] = self.programs.start("nova-compute", config, host)

    def _wait_for_hosts(self) -> None:
        wanted = {host for hosts in self.hosts.values() for host in hosts}
        deadline = Deadline(120.0)
        while (found := set((hosts := self.ask("nodes")).values())) != wanted:
            self.check()
            assert not deadline.passed, f"no compute node of {wanted - found}"
            time.sleep(0.5)
        self.node_hosts: dict[str, str] = hosts

    def start_scheduler(self, number: int) -> None:
        """Start a `roost nova-scheduler` with the nova.conf of the cloud, again if it has ended.

        The odd ones claim on the ledger, the others over HTTP.
        """
        if number in self.schedulers:
            self.schedulers[number].__exit__()
        name = f"scheduler{number}"
        nova = write(
            self.folder / f"{name}.conf",
            self.common,
            of_databases(self.api_url, self.urls["cell0"]),
            {"DEFAULT": {"transport_url": self.broker.url(), "host": name}},
        )
        own = write(self.folder / f"{name}-roost.conf", self._roost_sections(ledger=number % 2 == 1))
        if not self.schedulers:
            files = ("--config-file", str(nova), "--config-file", str(own))
            _upgrade(*files, "--section", "nova_bridge")
            _upgrade(*files, "--section", "records")
        command = ("nova-scheduler", "--config-file", str(nova))
        self.schedulers[number] = Program(self.folder, *command, config=own, name=name)

    def _end_schedulers(self) -> None:
        for each in self.schedulers.values():
            each.__exit__()

    def _roost_sections(self, ledger: bool) -> Mapping[str, Mapping[str, object]]:
        own = {"placement_database": {"connection": self.database.url("placement")}} if ledger else {}
        return {
            **own,
            "api": {"auth_strategy": "noauth2"},
            "nova_bridge": {
                "connection": self.database.url("bridge"),
                "nodes_seconds": 5,
                "audit_seconds": 5,
                "free_unanswered_claims": True,
            },
            "records": {"connection": self.database.url("records")},
        }


def _upgrade(*arguments: str) -> None:
    """Create the tables of a database of Roost."""
    done = roost("db", "upgrade", *arguments)
    assert done.returncode == 0, done.stderr
