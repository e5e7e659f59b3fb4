"""``roost scheduler`` as a process."""

import signal
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from roost.bench.loopback import free_port
from support.forked import Forked
from support.serving import ENVIRONMENT, SECONDS, children
from support.waiting import Deadline

TOKEN = {"x-auth-token": "admin"}
FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 512}
SPEC = {"project_id": "project", "user_id": "user", "flavor": FLAVOR}


class RunningScheduler:
    """A running `roost scheduler`, whose hosts are those of placement.

    ``database``: the URL of the ledger's; None: placement is at the URL ``placement``. ``folder`` has its log
    and, unless ``records`` is the URL of another database, its records. ``settings``: options as
    GROUP.OPTION=VALUE. ``authority``: the certificate of who has issued its own; None: it serves no HTTPS.
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
        records: str | None = None,
        authority: Path | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        port = free_port()
        self.url = f"{'http' if authority is None else 'https'}://127.0.0.1:{port}"
        self.log = folder / "log"
        records = records or f"sqlite:///{folder / 'records.db'}"
        chosen = [*settings, f"records.connection={records}"]
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
        trusted = False if authority is None else ssl.create_default_context(cafile=authority)
        self.client = httpx.Client(base_url=self.url, headers=TOKEN, timeout=SECONDS, verify=trusted)
        until = Deadline(SECONDS)
        while "roost: scheduler on" not in self.said():
            if until.passed or self._process.poll() is not None:
                raise AssertionError(f"it does not serve: {self.said()}")
            time.sleep(0.02)

    @property
    def workers(self) -> set[int]:
        """The ids of the processes of its workers."""
        return children(self._process.pid)

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
