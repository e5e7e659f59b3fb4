"""A private RabbitMQ for tests, of Debian's packages, on loopback ports, ended by its process id."""

import json
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roost.bench.loopback import free_ports
from roost.bench.server_process import ServerProcess, as_account, die_with_parent

PROGRAM = next(iter(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server")), None)
NOT_INSTALLED = "NOT tested: RabbitMQ (it is not installed: run tools/install-test-servers as root)"

HEADER = b"AMQP\x00\x00\x09\x01"


class RabbitMQ(ServerProcess):
    """A broker whose queues are kept over a restart if they are durable.

    ``virtual_hosts``: those beside ``/``. Erlang would start its name server by itself, on all addresses, and
    leave it behind. So the tests start it.
    """

    def __init__(self, folder: Path, virtual_hosts: Sequence[str] = ()) -> None:
        super().__init__(folder, "rabbitmq")
        self.port, self._distribution, self._names = free_ports(3)
        if self._account is not None:
            shutil.chown(folder, self._account)
            folder.chmod(0o755)
        (folder / "plugins").write_text("[].\n")
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "log.console = true"]
        if virtual_hosts:
            definitions = folder / "definitions.json"
            definitions.write_text(json.dumps(_definitions(("/", *virtual_hosts))))
            lines.append(f"load_definitions = {definitions}")
        (folder / "broker.conf").write_text("\n".join([*lines, ""]))
        self._name_server: subprocess.Popen[bytes] | None = None

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._names),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "broker.conf"),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_NODENAME": "roost@localhost",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
            # The script becomes the broker, so that its process id is the broker's.
            "RUNNING_UNDER_SYSTEMD": "true",
            "XDG_CONFIG_HOME": str(self.folder),
        }

    @property
    def _command(self) -> Sequence[str]:
        assert PROGRAM is not None
        return ["env", *(f"{name}={value}" for name, value in self._environment.items()), str(PROGRAM)]

    def url(self, database: str = "") -> str:
        """The URL of the broker, as ``transport_url`` of nova.conf has it; ``database``: a virtual host."""
        return f"rabbit://guest:guest@127.0.0.1:{self.port}/{database}"

    @property
    def _own_url(self) -> str:
        return self.url()

    def launch(self, *more: str) -> None:
        if self._name_server is None:
            with (self.folder / "names.log").open("ab") as log:
                self._name_server = subprocess.Popen(
                    ["epmd", "-address", "127.0.0.1", "-port", str(self._names)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent,
                    **as_account(self._account),
                )
        super().launch(*more)

    def answers(self) -> bool:
        """Return whether the broker begins a connection now."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.settimeout(5)
                connection.sendall(HEADER)
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def close(self) -> None:
        """End the broker and its name server."""
        self.kill()
        if self._name_server is not None:
            self._name_server.kill()
            self._name_server.wait()
            self._name_server = None


def _definitions(virtual_hosts: Sequence[str]) -> dict[str, Any]:
    """The users and virtual hosts of a broker, in the form that it imports."""
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [{"name": "guest", "password": "guest", "tags": ["administrator"]}],
        "vhosts": [{"name": name} for name in virtual_hosts],
        "permissions": [{"user": "guest", "vhost": name, **everything} for name in virtual_hosts],
    }
