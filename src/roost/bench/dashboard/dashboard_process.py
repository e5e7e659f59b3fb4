"""The dashboard as a process beside the service that claims."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from roost.bench.dashboard.cloud_databases import CELL, CloudDatabases
from roost.bench.dashboard.timed_connection import TimedConnection
from roost.bench.errors import BenchError
from roost.bench.services import BenchService


class DashboardProcess(BenchService):
    """``roost dashboard`` on a database of placement: its root providers are the hosts.

    ``folder``: of its sessions and of its index of the past.
    """

    name = "dashboard"
    _READY = "/readyz"

    def __init__(self, log: Path, database: str, cloud: CloudDatabases, records: str, folder: Path) -> None:
        super().__init__(log)
        self._folder = folder
        self._database = database
        self._settings = {
            "scheduler.hosts_from_placement": "true",
            "api_database.connection": cloud.api,
            f"cell_{CELL}.connection": cloud.cell,
            "records.connection": records,
            "dashboard.directory": f"{folder}",
        }

    def _command(self) -> Sequence[str]:
        program = str(Path(sys.executable).with_name("roost"))
        settings = [part for name, value in self._settings.items() for part in ("--set", f"{name}={value}")]
        return [program, "dashboard", "--port", f"{self.port}", "--database", self._database, *settings]

    def log_in(self) -> Mapping[str, str]:
        """Begin a session, and return the headers of a browser that has it.

        Raises:
            BenchError: The dashboard does not begin one.
        """
        printed = urlsplit((self._folder / "address").read_text().strip())
        with TimedConnection(self.port, {}) as connection:
            answer = connection.send("GET", f"{printed.path}?{printed.query}")
        cookie = answer.headers.get("set-cookie")
        if answer.status != 303 or cookie is None:
            raise BenchError(f"the dashboard begins no session: {answer.status}")
        return {
            "cookie": cookie.partition(";")[0],
            "accept": "text/html,application/xhtml+xml,*/*;q=0.8",
            "accept-encoding": "gzip",
        }
