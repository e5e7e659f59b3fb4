"""Private database servers for tests: PostgreSQL, MariaDB, and a Galera cluster of three nodes.

Each has a folder under /tmp and listens on free loopback ports. It runs under an unprivileged account if
the tests run as root, and ends with the process that started it. `make test` installs servers that are
missing, where it can. PostgreSQL and MariaDB are those of `roost.bench`.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from roost.bench.errors import DidNotStart
from roost.bench.loopback import free_ports
from roost.bench.mariadb import MARIADB, MARIADB_SETUP, MariaDB
from roost.bench.postgresql import POSTGRESQL
from roost.bench.server_process import find_program, run_setup
from support.prometheus import PROMETHEUS, PROMTOOL

INSTALL = "run tools/install-test-servers as root"

GALERA = next((path for path in ("/usr/lib/galera/libgalera_smm.so",) if Path(path).exists()), None)
RSYNC = find_program("rsync")


def missing(kind: str) -> str | None:
    """Return why servers of a kind cannot be tested here, or None if they can."""
    if kind == "sqlite":
        return None
    if kind == "prometheus":
        return None if PROMETHEUS and PROMTOOL else f"no Prometheus here: {INSTALL}"
    if kind == "postgresql":
        return None if POSTGRESQL else f"no PostgreSQL here: {INSTALL}"
    if not (MARIADB and MARIADB_SETUP):
        return f"no MariaDB here: {INSTALL}"
    if kind == "galera" and not (GALERA and RSYNC):
        return f"no Galera here: {INSTALL}"
    return None


class GaleraNode(MariaDB):
    """A MariaDB that is a node of a Galera cluster."""

    def __init__(self, folder: Path, template: Path, durable: bool = False) -> None:
        super().__init__(folder, durable, template)
        self.group_port, self._ist_port, self._sst_port = free_ports(3)
        self.peers: Sequence[GaleraNode] = ()
        self._has_run = False

    @property
    def _command(self) -> Sequence[str]:
        provider = {
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self.group_port}",
            "ist.recv_addr": f"127.0.0.1:{self._ist_port}",
            "gcache.size": "64M",
            # A node that died is out of the cluster after seconds, not after half a minute.
            "evs.keepalive_period": "PT0.2S",
            "evs.suspect_timeout": "PT2S",
            "evs.inactive_timeout": "PT4S",
            "evs.install_timeout": "PT4S",
        }
        settings = {
            "wsrep-on": "ON",
            "wsrep-provider": GALERA,
            "wsrep-cluster-name": "roost",
            "wsrep-node-name": self.folder.name,
            "wsrep-cluster-address": "gcomm://" + ",".join(f"127.0.0.1:{p.group_port}" for p in self.peers),
            "wsrep-node-address": "127.0.0.1",
            "wsrep-sst-method": "rsync",
            "wsrep-sst-receive-address": f"127.0.0.1:{self._sst_port}",
            "wsrep-slave-threads": 2,
            "wsrep-provider-options": ";".join(f"{key}={value}" for key, value in provider.items()),
            "binlog-format": "ROW",
            "default-storage-engine": "InnoDB",
            "innodb-autoinc-lock-mode": 2,
        }
        return [*super()._command, *(f"--{key}={value}" for key, value in settings.items())]

    def start(self, *more: str) -> None:
        """Start, and wait until it answers. One that has run before goes on from its data."""
        if self._has_run:
            self.rejoin()
        else:
            self.launch(*more)
            self._has_run = True
            self.wait()

    def answers(self) -> bool:
        try:
            return [row[1] for row in self.ask("SHOW STATUS LIKE 'wsrep_ready'")] == ["ON"]
        except DBAPIError:
            return False

    def rejoin(self) -> None:
        """Start again after a kill, and wait until it answers.

        A copy of all data ends a node that asks for it while its donor is busy; an init system starts such a
        node again, and so does this.
        """
        for left in (2, 1, 0):
            self.recover()
            try:
                self.wait()
            except DidNotStart:
                self.kill()
                if not left:
                    raise
            else:
                return

    def recover(self) -> None:
        """Start again after a kill, at the position of its data, so that it does not copy all."""
        said = run_setup([*self._command, "--wsrep-recover"], self.folder, self._account)
        [line] = [line for line in said.splitlines() if "Recovered position" in line]
        self.launch(f"--wsrep-start-position={line.rpartition(' ')[2]}")


class Galera:
    """A Galera cluster of three nodes. Tests write to all of them."""

    def __init__(self, folder: Path, template: Path, durable: bool = False) -> None:
        self.nodes = [GaleraNode(made(folder, f"node{number}"), template, durable) for number in (1, 2, 3)]
        for node in self.nodes:
            node.peers = self.nodes

    def start(self) -> None:
        """Start the cluster: its first node, then the others one after another."""
        first, *others = self.nodes
        first.start("--wsrep-new-cluster")
        for node in others:
            node.start()

    def stop(self) -> None:
        """Stop all nodes."""
        for node in reversed(self.nodes):
            node.stop()

    def kill(self) -> None:
        """Kill all nodes."""
        for node in self.nodes:
            node.kill()

    def create_database(self) -> str:
        """Create an empty database on all nodes; return its name."""
        name = self.nodes[0].create_database()
        for node in self.nodes[1:]:
            node.ask("SET SESSION wsrep_sync_wait = 1", "SELECT count(*) FROM mysql.db")
        return name

    def drop_database(self, name: str) -> None:
        self.nodes[0].drop_database(name)

    def urls(self, database: str) -> list[str]:
        """Return the URL of a database at each node."""
        return [node.url(database) for node in self.nodes]


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """Make a folder that the accounts of servers can reach. They cannot reach those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="roost-servers-"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def made(parent: Path, name: str) -> Path:
    """Make a folder that the accounts of servers can write to. ``name`` is in its name."""
    path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    path.chmod(0o777)
    return path
