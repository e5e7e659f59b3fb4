"""A private database server: in a folder, on free loopback ports, and killed when its parent process ends.

Benchmarks and tests use it. The server's programs must be installed.
"""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roost.bench.errors import DidNotStart

START_SECONDS = 120.0
STOP_SECONDS = 30.0

_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
_LIBC = ctypes.CDLL(None)


def find_program(*candidates: str) -> str | None:
    """Return the path of the first installed program among names and paths, None if none is installed."""
    found = (shutil.which(each) for each in candidates)
    return next((each for each in found if each is not None), None)


class ServerProcess(ABC):
    """One server process, which can be stopped, killed and started again on the same data and ports.

    ``account``: the account that root runs the server as, because servers refuse to run as root. It must have
    access to ``folder``.
    """

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
        """Return the SQLAlchemy URL of one of its databases."""

    @property
    @abstractmethod
    def _own_url(self) -> str:
        """Return the URL of the database that every installation has."""

    def start(self, *more: str) -> None:
        """Start the server, and wait until it answers.

        Raises:
            DidNotStart: The process ended or did not answer in time.
        """
        self.launch(*more)
        self.wait()

    def launch(self, *more: str) -> None:
        """Start the server without waiting for it."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=die_with_parent,
                **as_account(self._account),
            )

    def wait(self) -> None:
        """Wait until the server answers.

        Raises:
            DidNotStart: The process ended or did not answer in time.
        """
        until = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process is None or self._process.poll() is not None or time.monotonic() > until:
                raise DidNotStart(f"{type(self).__name__} does not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Return whether the server answers a query now."""
        try:
            self.ask("SELECT 1")
        except DBAPIError:
            return False
        return True

    def ask(self, *statements: str) -> list[sa.Row[*tuple[Any, ...]]]:
        """Execute SQL statements, and return the rows of the last one."""
        engine = sa.create_engine(self._own_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                answer = connection.exec_driver_sql(statement)
            return list(answer) if answer.returns_rows else []

    def stop(self) -> None:
        """Stop the server with the signal for an orderly shutdown."""
        self._end(self._gentle)

    def kill(self) -> None:
        """Kill the server with SIGKILL, without an orderly shutdown."""
        self._end(signal.SIGKILL)

    def urls(self, database: str) -> list[str]:
        """Return all URLs of one of its databases: one for each node of a cluster."""
        return [self.url(database)]

    def create_database(self) -> str:
        """Create an empty database, and return its name."""
        name = new_name()
        self.ask(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database that has no more connections."""
        self.ask(f"DROP DATABASE IF EXISTS {name}")

    @property
    def pid(self) -> int:
        """The process id. The process must be running."""
        assert self._process is not None
        return self._process.pid

    @property
    def death(self) -> str | None:
        """Return the exit status and end of the log if the process ended by itself; else None."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"{type(self).__name__} ended with {self._process.returncode}:\n{self.log.read_text()[-3000:]}"

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


def new_name() -> str:
    """Return a random name for a database."""
    return f"t{uuid.uuid4().hex[:12]}"


def as_account(account: str | None) -> dict[str, Any]:
    """Return the arguments of `subprocess` that run a process as an account; none for the current account."""
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. For the ``preexec_fn`` of `subprocess`."""
    _LIBC.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


def run_setup(command: Iterable[str], folder: Path, account: str | None) -> str:
    """Run a setup command in ``folder``, and return its output.

    Raises:
        DidNotStart: The command failed.
    """
    done = subprocess.run(
        list(command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **as_account(account),
    )
    if done.returncode != 0:
        raise DidNotStart(f"{' '.join(done.args)}: {done.stdout}")
    said: str = done.stdout
    return said
