"""``roost scheduler`` as a process."""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from roost.bench.loopback import free_port
from support.forked import Forked
from support.serving import ENVIRONMENT, SECONDS

TOKEN = {"x-auth-token": "admin"}
FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 512}
SPEC = {"project_id": "project", "user_id": "user", "flavor": FLAVOR}


class RunningScheduler:
    """A running `roost scheduler`, whose hosts are those of placement.

    ``database``: the URL of the ledger's; None: placement is at the URL ``placement``. ``folder`` has its log
    and its records. ``settings``: options as GROUP.OPTION=VALUE.
    """

    def __init__(
        self,
        folder: Path,
        *,
        database: str | None = None,
        placement: str | None = None,
        settings: Sequence[str] = ("scheduler.hosts_from_placement=true",),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        folder.mkdir(exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "log"
        chosen = [*settings, f"records.connection=sqlite:///{folder / 'records.db'}"]
        if placement is not None:
            chosen += [
                "placement.auth_type=admin_token",
                f"placement.endpoint={placement}",
                "placement.token=admin",
            ]
        command = ["scheduler", "--port", str(port), *arguments]
        command += [] if database is None else ["--database", database]
        command += [part for setting in chosen for part in ("--set", setting)]
        with self.log.open("ab") as file:
            self._process = Forked(*command, env=environment, stderr=file, start_new_session=True)
        self.client = httpx.Client(base_url=self.url, headers=TOKEN, timeout=SECONDS)
        until = time.monotonic() + SECONDS
        while "roost: scheduler on" not in self.said():
            if time.monotonic() > until or self._process.poll() is not None:
                raise AssertionError(f"it does not serve: {self.said()}")
            time.sleep(0.02)

    def said(self) -> str:
        """The log."""
        return self.log.read_text()

    def select(self, **body: Any) -> httpx.Response:
        """The response to a request for destinations."""
        return self.client.post("/v1/select_destinations", json={"request_spec": SPEC, **body})

    def end(self) -> int:
        """End it; returns the exit status."""
        self.client.close()
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait()
