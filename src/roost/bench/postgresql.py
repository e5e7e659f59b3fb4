"""A private PostgreSQL server, from the installed programs."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from roost.bench.errors import ServerMissing
from roost.bench.loopback import free_port
from roost.bench.server_process import ServerProcess, find_program, new_name, run_setup

POSTGRESQL = find_program(
    *(f"/usr/lib/postgresql/{version}/bin/postgres" for version in (15, 16, 17, 18)), "postgres"
)


class PostgreSQL(ServerProcess):
    """PostgreSQL on the data in ``folder``, which is initialised if it is empty.

    ``durable`` keeps all syncs on, as in production. ``settings`` are further settings of the server.

    Raises:
        ServerMissing: PostgreSQL is not installed.
        DidNotStart: The data cannot be initialised.
    """

    _gentle = signal.SIGINT

    def __init__(
        self, folder: Path, durable: bool = False, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, "postgres")
        if POSTGRESQL is None:
            raise ServerMissing("no PostgreSQL here: install the package postgresql")
        self._program = POSTGRESQL
        self._durable = durable
        self._settings = settings or {}
        self.port = free_port()
        data = folder / "data"
        if not data.exists():
            initdb = str(Path(POSTGRESQL).with_name("initdb"))
            setup = [initdb, "-D", str(data), "-U", "roost", "-A", "trust", "-E", "UTF8", "--no-sync"]
            run_setup([*setup, "--locale=C.UTF-8"], folder, self._account)

    @property
    def _command(self) -> Sequence[str]:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            "shared_buffers": "32MB",
            **({} if self._durable else {"fsync": "off", "full_page_writes": "off"}),
            **self._settings,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [self._program, "-D", str(self.folder / "data"), *options]

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://roost@127.0.0.1:{self.port}/{database}"

    @property
    def _own_url(self) -> str:
        return self.url("postgres")

    def create_database(self) -> str:
        name = new_name()
        # file_copy takes a quarter of the time of the default, which logs each page of the template.
        self.ask(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name

    def drop_database(self, name: str) -> None:
        self.ask(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
