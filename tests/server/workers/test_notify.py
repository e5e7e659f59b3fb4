"""What systemd is told: the service runs, reloads and ends."""

import os
import signal
import socket
from pathlib import Path

import pytest

from support.processes import RoostUp
from support.serving import ENVIRONMENT, SECONDS, Serving


class Systemd:
    """The receiver of messages, as systemd is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(SECONDS)

    def message(self) -> str:
        """Wait for the next message."""
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    found = Systemd(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(found.path))
    return found


def test_the_life_of_a_service(tmp_path: Path, systemd: Systemd) -> None:
    configuration = tmp_path / "placement.conf"
    configuration.write_text("")
    serving = Serving(
        f"sqlite:///{tmp_path}/api.db",
        tmp_path / "log",
        arguments=("--config-file", str(configuration)),
        environment={**ENVIRONMENT, "NOTIFY_SOCKET": str(systemd.path)},
    )
    try:
        assert systemd.message() == "READY=1"
        serving.send_signal(signal.SIGHUP)
        assert systemd.message().startswith("RELOADING=1\nMONOTONIC_USEC=")
        assert systemd.message() == "READY=1"
        configuration.write_text("[placement]\nmax_allocation_candidates = many\n")
        serving.send_signal(signal.SIGHUP)
        assert systemd.message().startswith("RELOADING=1\n")
        assert systemd.message() == "READY=1"
        serving.terminate()
        assert systemd.message() == "STOPPING=1"
    finally:
        serving.end(signal.SIGKILL)
        systemd.close()


def test_the_life_of_roost_up(tmp_path: Path, systemd: Systemd) -> None:
    with RoostUp(tmp_path / "data", ("--hosts", "2", "--cells", "1")) as system:
        assert systemd.message() == "READY=1"
        os.kill(system.pid, signal.SIGUSR1)
        with system.client() as client:
            assert client.get("/").status_code == 200
        assert system.stop()[0] == 0
        assert systemd.message() == "STOPPING=1"
    systemd.close()
