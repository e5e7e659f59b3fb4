"""A database server of one's own: in a folder, on free loopback ports, gone with the process that started it.

Used by the benchmark and by the tests; what is installed is found, nothing is installed here.
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
    """The first of some programs, by name or path, that is installed."""
    found = (shutil.which(each) for each in candidates)
    return next((each for each in found if each is not None), None)


class ServerProcess(ABC):
    """One server process, to be started, stopped, killed and started again on the same data and ports.

    Servers refuse to run as root: root runs them as ``account``, which must be able to reach ``folder``.
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
        """The SQLAlchemy URL of one of its databases."""

    @property
    @abstractmethod
    def _own_url(self) -> str:
        """The URL of a database that is always there."""

    def start(self, *more: str) -> None:
        """Start, and wait until it answers. Raises `DidNotStart`."""
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
                preexec_fn=die_with_parent,
                **as_account(self._account),
            )

    def wait(self) -> None:
        """Wait until it answers. Raises `DidNotStart`."""
        until = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process is None or self._process.poll() is not None or time.monotonic() > until:
                raise DidNotStart(f"{type(self).__name__} does not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether it can be used now."""
        try:
            self.ask("SELECT 1")
        except DBAPIError:
            return False
        return True

    def ask(self, *statements: str) -> list[sa.Row[*tuple[Any, ...]]]:
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
        """The number of its process. Only while it is started."""
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


def as_account(account: str | None) -> dict[str, Any]:
    """The arguments of `subprocess` that run a process as an account; None: as ourselves."""
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def die_with_parent() -> None:
    """For ``preexec_fn``: the process is killed when the one that started it ends, however it ends."""
    _LIBC.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


def run_setup(command: Iterable[str], folder: Path, account: str | None) -> str:
    """Run a command that must succeed, in ``folder``; what it said. Raises `DidNotStart`."""
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
