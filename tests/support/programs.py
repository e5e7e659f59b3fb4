"""Programs of Roost as processes that serve at a free loopback port, by options of one configuration file."""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import httpx

from roost.bench.loopback import free_port
from support.forked import Forked
from support.serving import ENVIRONMENT, SECONDS
from support.waiting import Deadline

TOKEN = {"x-auth-token": "admin"}


class Program:
    """A running program, such as ``conductor`` or ``cell-conductor rack1``; it is killed at the end of a
    ``with`` block if it runs, so that a test that fails leaves nothing behind.

    ``folder`` has its log. ``waits``: until it says that it serves. ``name``: of its log.
    """

    def __init__(
        self,
        folder: Path,
        *command: str,
        config: Path,
        settings: Sequence[str] = (),
        environment: Mapping[str, str] = ENVIRONMENT,
        name: str = "",
        waits: bool = True,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name or '-'.join(command)}-{self.port}.log"
        whole = [*command, "--port", str(self.port), "--config-file", str(config)]
        whole += [part for setting in settings for part in ("--set", setting)]
        with self.log.open("ab") as file:
            self.process = Forked(*whole, env=environment, stderr=file, start_new_session=True)
        self.client = httpx.Client(base_url=self.url, headers=TOKEN, timeout=SECONDS)
        until = Deadline(SECONDS)
        while waits and f":{self.port} with" not in self.said():
            if until.passed or self.process.poll() is not None:
                raise AssertionError(f"it does not serve: {self.said()}")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """The log."""
        return self.log.read_text()

    def end(self) -> int:
        """End it in order; returns the exit status."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def write_config(folder: Path, cells: Sequence[str] = ("cell1",), **others: str) -> Path:
    """A configuration file of all programs on SQLite files in a folder. ``others``: further lines by
    group."""
    sections = {
        "api": "auth_strategy = noauth2",
        "placement_database": f"connection = sqlite:///{folder / 'api.db'}",
        "api_database": f"connection = sqlite:///{folder / 'api.db'}",
        "records": f"connection = sqlite:///{folder / 'records.db'}",
        "cell0": f"connection = sqlite:///{folder / 'cell0.db'}",
        **{f"cell_{name}": f"connection = sqlite:///{folder / name}.db" for name in cells},
        **others,
    }
    path = folder / "roost.conf"
    path.write_text("".join(f"[{group}]\n{lines}\n" for group, lines in sections.items()))
    return path
