"""A whole cloud of separate processes: three cells, two of each conductor, agents of simulated hosts.

Each process reaches databases and endpoints by links of its own, so that one can be cut off alone. All are
started by the commands that operators use.
"""

import asyncio
import contextlib
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from sqlalchemy.engine import make_url

from chaos import guests
from chaos.links import Network, network
from chaos.programs import Program, Running
from roost.bench.loopback import free_port
from roost.bench.server_process import ServerProcess, die_with_parent
from roost.model.token import new_host_token, token_digest
from roost.server.backup.roles import ROLES
from roost.state.api_database.cell_mappings import CellMapping, map_unknown_cell, section_of
from roost.state.cell_database.host_admission import issue_token
from roost.storage import Database
from support.forked import Forked, run_forked
from support.serving import ENVIRONMENT
from support.waiting import Deadline

CELLS = ("cell1", "cell2", "cell3")
EACH = 2
"""Super conductors, and conductors of each cell."""
OFFSETS = (0, 0, -7 * 3600, 3 * 3600, 40 * 86400)
"""Seconds by which the clocks of agents are off."""
START_SECONDS = 120.0
_AGENT = Path(__file__).with_name("agent.py")
_ROOST = [sys.executable, "-c", "from roost.cli.main import main; main()"]


class Cloud:
    """The processes, what they are reached by, and the files of their hosts.

    ``conductors`` are URLs of super conductors, ``placement`` that of the Placement API: users go there
    without a link. ``shapes``: that of each host, by name, when its agent starts. ``hosts``: in all, in
    ``agents`` processes for each cell. ``source``: the folder of the sources that programs are started from
    from now on; None for those of the tests.
    """

    def __init__(
        self,
        folder: Path,
        server: ServerProcess,
        links: Network,
        hosts: int,
        agents: int,
        seed: str,
        source: Path | None = None,
    ) -> None:
        self.folder = folder
        self.server = server
        self.network = links
        self.source = source
        self.programs: list[Program] = []
        self.shapes: dict[str, str] = {}
        self.guests = folder / "guests"
        self._logs = folder / "logs"
        self._draw = random.Random(seed)
        for each in (self.guests, self._logs, folder / "conf", folder / "state"):
            each.mkdir()
        self._names = {name: server.create_database() for name in ("api", "records", "cell0", *CELLS)}
        self._prepare()
        self.api = server.url(self._names["api"])
        self.config = self._config("direct", None)
        self.conductors: list[str] = []
        placement = free_port()
        self.placement = f"http://127.0.0.1:{placement}"
        self._serve("placement", placement, "serve")
        for number in range(EACH):
            port = free_port()
            self.conductors.append(f"http://127.0.0.1:{port}")
            self._serve(f"conductor{number + 1}", port, "conductor")
        for cell in CELLS:
            ports = [free_port() for _ in range(EACH)]
            for number, port in enumerate(ports):
                self._serve(f"{cell}-conductor{number + 1}", port, "cell-conductor", cell)
            for number in range(agents):
                self._host(f"{cell}-agents{number + 1}", cell, ports, hosts // (agents * len(CELLS)))

    def start(self) -> None:
        """Start all programs, and wait until all hosts are known to placement."""
        self.replace(self.programs)

    def replace(self, programs: Sequence[Program]) -> None:
        """Kill some programs if they run, start them from ``source``, and wait until they have started."""
        said = {program: program.text.count("roost: ") for program in programs}
        for program in programs:
            program.kill()
            program.start()
        until = Deadline(START_SECONDS)
        for program in programs:
            while program.text.count("roost: ") == said[program]:
                assert not until.passed, f"{program} does not start: {program.text[-3000:]}"
                time.sleep(0.1)
            assert program.is_running, f"{program} has ended: {program.text[-3000:]}"

    @property
    def hosts(self) -> list[str]:
        """The names of all hosts."""
        return [host for program in self.programs for host in program.hosts]

    def heal(self) -> None:
        """Start whatever has ended."""
        for program in self.programs:
            program.start()

    def kill(self) -> None:
        for program in self.programs:
            program.kill()

    @property
    def logs(self) -> str:
        """What all programs have written."""
        return "\n".join(f"== {program}\n{program.text}" for program in self.programs)

    def upgrade(self, *options: str) -> None:
        """Bring the tables of all databases to the revisions of ``source``."""
        for name, database in self._names.items():
            role = name if name in ROLES else "cell"
            # A server under the load of this cloud may take longer to accept a connection than a user waits.
            url = f"{self.server.url(database)}?connect_timeout=120"
            command = ["db", "upgrade", "--role", role, "--database", url, *options]
            if self.source is None:
                done = run_forked(*command, seconds=START_SECONDS)
                assert done.returncode == 0, done.stderr
            else:
                command = [*_ROOST, *command]
                subprocess.run(command, env=self._environment(), check=True, stdout=subprocess.DEVNULL)

    def _environment(self) -> dict[str, str]:
        """That of a program from ``source``."""
        sources = [str(Path(__file__).parents[1])]
        if self.source is not None:
            sources.insert(0, str(self.source))
        return {**os.environ, "PYTHONPATH": os.pathsep.join(sources), guests.FOLDER: str(self.guests)}

    def _prepare(self) -> None:
        """Create the tables, and name the cells in the API database."""
        if self.source is not None:
            self.upgrade()

        async def run() -> None:
            for name, database_name in self._names.items():
                database = Database(self.server.url(database_name))
                for schema in ROLES[name if name in ROLES else "cell"] if self.source is None else ():
                    schema.upgrade(database)
                if name == "api":
                    for cell in ("cell0", *CELLS):
                        await database.write(map_unknown_cell(CellMapping(cell, section_of(cell))))
                await database.close()

        asyncio.run(run())

    def _serve(self, name: str, port: int, *command: str) -> None:
        """A program that serves at a port, with a configuration of its own."""
        config = self._config(name, name)
        options = ("--port", str(port), "--config-file", config)

        def launch(log: IO[bytes]) -> Running:
            if self.source is None:
                return Forked(*command, *options, env=ENVIRONMENT, stdout=log, stderr=log)
            return subprocess.Popen(
                [*_ROOST, *command, *options],
                env={**ENVIRONMENT, **self._environment()},
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

        self.programs.append(Program(name, self._logs / name, launch))

    def _config(self, name: str, linked: str | None) -> Path:
        """A configuration. ``linked``: the program that reaches databases by links of its own."""

        def url(database: str) -> str:
            there = make_url(self.server.url(self._names[database]))
            if linked is not None:
                assert there.port is not None
                link = self.network.link(f"{linked} to {database}", there.port)
                there = there.set(port=link.port)
            return there.render_as_string(hide_password=False)

        api = url("api")
        groups = {
            "api": "auth_strategy = noauth2",
            "placement_database": f"connection = {api}",
            "api_database": f"connection = {api}",
            "records": f"connection = {url('records')}",
            **{section_of(cell): f"connection = {url(cell)}" for cell in ("cell0", *CELLS)},
        }
        path = self.folder / "conf" / name
        path.write_text("".join(f"[{group}]\n{lines}\n" for group, lines in groups.items()))
        return path

    def _host(self, name: str, cell: str, ports: list[int], hosts: int) -> None:
        """A process of agents, whose clock is off by another time at each start."""
        link = self.network.link(f"{name} to {cell}", *ports)
        tokens = {f"{name}-{number + 1:04}": new_host_token() for number in range(hosts)}
        token_file = self.folder / "conf" / f"{name}.tokens"
        token_file.write_text("".join(f"{host} {token}\n" for host, token in tokens.items()))
        token_file.chmod(0o600)
        self._issue(cell, tokens)
        arguments = [
            *("agent", "--endpoint", f"http://127.0.0.1:{link.port}", "--hosts", str(hosts)),
            *("--host-prefix", f"{name}-", "--token-file", str(token_file)),
            *("--state-dir", str(self.folder / "state" / name), "--driver", "chaos.guests:witnessed"),
            *("--set", "agent.poll_seconds=5", "--set", "agent.longest_retry_seconds=5"),
        ]

        following = itertools.cycle(guests.SHAPES)

        def turn() -> None:
            self.shapes.update(dict.fromkeys(tokens, next(following)))

        turn()

        def launch(log: IO[bytes]) -> Running:
            offset = str(self._draw.choice(OFFSETS))
            command = [sys.executable, str(_AGENT), offset, *arguments]
            env = {**self._environment(), guests.SHAPE: self.shapes[next(iter(tokens))]}
            return subprocess.Popen(command, stdout=log, stderr=log, env=env)

        self.programs.append(Program(name, self._logs / name, launch, turn, tokens))

    def _issue(self, cell: str, tokens: dict[str, str]) -> None:
        async def run() -> None:
            database = Database(self.server.url(self._names[cell]))
            for host, token in tokens.items():
                await database.write(issue_token(host=host, digest=token_digest(token), at=time.time()))
            await database.close()

        asyncio.run(run())


@contextlib.contextmanager
def cloud(
    folder: Path, server: ServerProcess, *, hosts: int, agents: int, seed: str, source: Path | None = None
) -> Iterator[Cloud]:
    """Run a cloud on a database server that is started, until the end. ``source``: that of `Cloud`."""
    with network() as links:
        made = Cloud(folder, server, links, hosts, agents, seed, source)
        try:
            made.start()
            yield made
        finally:
            made.kill()
