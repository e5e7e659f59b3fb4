"""Private database servers for tests: PostgreSQL, MariaDB, and a Galera cluster of three nodes.

Each runs in a folder of its own under /tmp, listens on free loopback ports, is run by an unprivileged
account where the tests are run by root, and dies with the process that started it. What is installed is
found by `POSTGRESQL` and `MARIADB`; `make test` installs what is missing where it can.
"""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

START_SECONDS = 60.0
STOP_SECONDS = 30.0

INSTALL = "run tools/install-test-servers as root"
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
_LIBC = ctypes.CDLL(None)


def _first(*candidates: str) -> str | None:
    found = (shutil.which(each) for each in candidates)
    return next((each for each in found if each is not None), None)


POSTGRESQL = _first("/usr/lib/postgresql/15/bin/postgres", "postgres")
MARIADB = _first("/usr/sbin/mariadbd", "mariadbd")
MARIADB_SETUP = _first("/usr/bin/mariadb-install-db", "mariadb-install-db")
GALERA = next((path for path in ("/usr/lib/galera/libgalera_smm.so",) if Path(path).exists()), None)
RSYNC = _first("rsync")


def missing(kind: str) -> str | None:
    """Why databases of a kind cannot be tested here; None: they can."""
    if kind == "sqlite":
        return None
    if kind == "postgresql":
        return None if POSTGRESQL else f"no PostgreSQL here: {INSTALL}"
    if not (MARIADB and MARIADB_SETUP):
        return f"no MariaDB here: {INSTALL}"
    if kind == "galera" and not (GALERA and RSYNC):
        return f"no Galera here: {INSTALL}"
    return None


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody uses now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Server(ABC):
    """One server process, to be started, stopped, killed and started again on the same data and ports."""

    def __init__(self, folder: Path, account: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._account = account if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def _command(self) -> Sequence[str]: ...

    @abstractmethod
    def url(self, database: str) -> str:
        """The SQLAlchemy URL of one of its databases."""

    @property
    @abstractmethod
    def _own_url(self) -> str:
        """The URL of a database that is always there."""

    def start(self, *more: str) -> None:
        """Start, and wait until it answers."""
        self.launch(*more)
        self.wait()

    def launch(self, *more: str) -> None:
        """Start without waiting."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=_die_with_parent,
                **_as_account(self._account),
            )

    def wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process is None or self._process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{type(self).__name__} does not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether it can be used now."""
        try:
            self.ask("SELECT 1")
        except DBAPIError:
            return False
        return True

    def ask(self, *statements: str) -> list[sa.Row[*tuple[object, ...]]]:
        """The answer to the last of some statements."""
        engine = sa.create_engine(self._own_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                answer = connection.exec_driver_sql(statement)
            return list(answer) if answer.returns_rows else []

    def stop(self) -> None:
        """Stop it in good order."""
        self._end(self._gentle)

    def kill(self) -> None:
        """Kill it as a power failure would."""
        self._end(signal.SIGKILL)

    def urls(self, database: str) -> list[str]:
        """The URLs of one of its databases: its own."""
        return [self.url(database)]

    def create_database(self) -> str:
        """A fresh database; returns its name."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.ask(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Drop one that nobody uses any more."""
        self.ask(f"DROP DATABASE IF EXISTS {name}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    _gentle = signal.SIGTERM

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_SECONDS)
            self._process = None


class PostgreSQL(Server):
    """PostgreSQL. ``durable``: with all syncs, as in production."""

    _gentle = signal.SIGINT

    def __init__(self, folder: Path, durable: bool = False) -> None:
        super().__init__(folder, "postgres")
        assert POSTGRESQL is not None
        self._durable = durable
        [self.port] = free_ports(1)
        initdb = str(Path(POSTGRESQL).with_name("initdb"))
        setup = [initdb, "-D", str(folder / "data"), "-U", "roost", "-A", "trust", "-E", "UTF8", "--no-sync"]
        _run([*setup, "--locale=C.UTF-8"], folder, self._account)

    @property
    def _command(self) -> Sequence[str]:
        assert POSTGRESQL is not None
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            "shared_buffers": "32MB",
            **({} if self._durable else {"fsync": "off", "full_page_writes": "off"}),
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [POSTGRESQL, "-D", str(self.folder / "data"), *options]

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://roost@127.0.0.1:{self.port}/{database}"

    @property
    def _own_url(self) -> str:
        return self.url("postgres")

    def drop_database(self, name: str) -> None:
        self.ask(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


class MariaDB(Server):
    """MariaDB, by itself. ``template``: a data directory to copy, which saves seconds."""

    def __init__(self, folder: Path, durable: bool = False, template: Path | None = None) -> None:
        super().__init__(folder, "mysql")
        self._durable = durable
        [self.port] = free_ports(1)
        if template is not None:
            _run(["cp", "-a", str(template), str(folder / "data")], folder, self._account)
        else:
            set_up_mariadb(folder / "data")

    @property
    def _command(self) -> Sequence[str]:
        assert MARIADB is not None
        settings = {
            "datadir": self.folder / "data",
            "socket": self.folder / "s",
            "pid-file": self.folder / "pid",
            "port": self.port,
            "bind-address": "127.0.0.1",
            "max-connections": 200,
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "48M",
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        if not self._durable:
            options += ["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"]
            options += ["--skip-innodb-doublewrite"]
        return [MARIADB, "--no-defaults", "--skip-name-resolve", *options]

    def url(self, database: str) -> str:
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}"

    @property
    def _own_url(self) -> str:
        return self.url("mysql")


class GaleraNode(MariaDB):
    """A MariaDB that is a node of a cluster."""

    def __init__(self, folder: Path, template: Path, durable: bool = False) -> None:
        super().__init__(folder, durable, template)
        self.group_port, self._ist_port, self._sst_port = free_ports(3)
        self.peers: Sequence[GaleraNode] = ()

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

    def answers(self) -> bool:
        try:
            return [row[1] for row in self.ask("SHOW STATUS LIKE 'wsrep_ready'")] == ["ON"]
        except DBAPIError:
            return False

    def recover(self) -> None:
        """Start again after a kill: at the position that its data has, so that it need not copy all."""
        assert MARIADB is not None
        said = _run([*self._command, "--wsrep-recover"], self.folder, self._account)
        [line] = [line for line in said.splitlines() if "Recovered position" in line]
        self.launch(f"--wsrep-start-position={line.rpartition(' ')[2]}")


class Galera:
    """Three nodes, all of which are written to."""

    def __init__(self, folder: Path, template: Path, durable: bool = False) -> None:
        self.nodes = [GaleraNode(made(folder / f"node{number}"), template, durable) for number in (1, 2, 3)]
        for node in self.nodes:
            node.peers = self.nodes

    def start(self) -> None:
        """Make the cluster: the first node begins it, the others join one after the other."""
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
        """A fresh database on all nodes."""
        name = self.nodes[0].create_database()
        for node in self.nodes[1:]:
            node.ask("SET SESSION wsrep_sync_wait = 1", "SELECT count(*) FROM mysql.db")
        return name

    def drop_database(self, name: str) -> None:
        self.nodes[0].drop_database(name)

    def urls(self, database: str) -> list[str]:
        """The URL of a database at each node."""
        return [node.url(database) for node in self.nodes]


@contextlib.contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that the accounts of servers can reach, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="roost-servers-"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def set_up_mariadb(data: Path) -> Path:
    """A new data directory of MariaDB."""
    assert MARIADB_SETUP is not None
    setup = [MARIADB_SETUP, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    account = "mysql" if os.geteuid() == 0 else None
    _run([*setup, "--skip-test-db", "--skip-name-resolve"], data.parent, account)
    return data


def made(path: Path) -> Path:
    """A new folder that the accounts of servers can write to."""
    path.mkdir()
    path.chmod(0o777)
    return path


def _as_account(account: str | None) -> dict[str, Any]:
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    _LIBC.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


def _run(command: Iterable[str], folder: Path, account: str | None) -> str:
    """Run a command that must succeed; what it said."""
    done = subprocess.run(
        list(command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **_as_account(account),
    )
    assert done.returncode == 0, f"{done.args}: {done.stdout}"
    return done.stdout
