"""A private MariaDB server, from the installed programs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from roost.bench.errors import ServerMissing
from roost.bench.loopback import free_port
from roost.bench.server_process import ServerProcess, find_program, run_setup

MARIADB = find_program("/usr/sbin/mariadbd", "mariadbd")
MARIADB_SETUP = find_program("/usr/bin/mariadb-install-db", "mariadb-install-db")


class MariaDB(ServerProcess):
    """MariaDB on data in ``folder``.

    ``durable`` keeps all syncs on, as in production. ``template`` is a data directory that is copied, which
    saves seconds. ``settings`` are further settings of the server.

    Raises:
        ServerMissing: MariaDB is not installed.
        DidNotStart: The data cannot be initialised.
    """

    def __init__(
        self,
        folder: Path,
        durable: bool = False,
        template: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, "mysql")
        if MARIADB is None:
            raise ServerMissing("no MariaDB here: install the package mariadb-server")
        self._program = MARIADB
        self._durable = durable
        self._settings = settings or {}
        self.port = free_port()
        if template is not None:
            run_setup(["cp", "-a", str(template), str(folder / "data")], folder, self._account)
        else:
            set_up_mariadb(folder / "data")

    @property
    def _command(self) -> Sequence[str]:
        settings = {
            "datadir": self.folder / "data",
            "socket": self.folder / "s",
            "pid-file": self.folder / "pid",
            "tmpdir": self.folder,
            "port": self.port,
            "bind-address": "127.0.0.1",
            "max-connections": 200,
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "48M",
            **self._settings,
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        if not self._durable:
            options += ["--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync"]
            options += ["--skip-innodb-doublewrite"]
        return [self._program, "--no-defaults", "--skip-name-resolve", *options]

    def url(self, database: str) -> str:
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}"

    @property
    def _own_url(self) -> str:
        # PyMySQL reads the certificates of all authorities for each connection that may be encrypted.
        return f"{self.url('mysql')}?ssl_disabled=true"


def set_up_mariadb(data: Path) -> Path:
    """Make a data directory of MariaDB.

    Raises:
        ServerMissing: The program that makes it is not installed.
        DidNotStart: The data cannot be initialised.
    """
    if MARIADB_SETUP is None:
        raise ServerMissing("no mariadb-install-db here: install the package mariadb-server")
    setup = [MARIADB_SETUP, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    # A server that starts removes the temporary files of all others in its folder.
    setup.append(f"--tmpdir={data.parent}")
    account = "mysql" if os.geteuid() == 0 else None
    run_setup([*setup, "--skip-test-db", "--skip-name-resolve"], data.parent, account)
    return data
