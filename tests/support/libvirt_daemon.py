"""A daemon of libvirt with a socket of its own, for tests."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.errors import HypervisorAway
from support.waiting import wait_for

DAEMON = shutil.which("libvirtd") or "/usr/sbin/libvirtd"

NEEDS_DAEMON = (
    pytest.mark.skipif(os.getuid() != 0, reason="a daemon with a socket of its own needs root"),
    pytest.mark.skipif(not Path(DAEMON).exists(), reason="libvirtd is not installed"),
)
"""Marks of tests that need one."""


class Daemon:
    """libvirtd with a socket in a folder; it serves the test hypervisor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        conf = f'unix_sock_dir = "{folder}"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n'
        (folder / "libvirtd.conf").write_text(conf)
        self.uri = f"test+unix:///default?socket={folder}/libvirt-sock"
        self.begin()

    def begin(self) -> None:
        """Start it, and wait until it answers."""
        files = ("-f", self._folder / "libvirtd.conf", "-p", self._folder / "libvirtd.pid")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen((DAEMON, *files), stdout=log, stderr=log)
        wait_for(self._answers)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let it hang."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self._folder / "log").read_text()
        connection = LibvirtConnection(self.uri, 10.0)
        try:
            connection.call_now(lambda opened: opened.getInfo())
        except HypervisorAway:
            return False
        finally:
            connection.close()
        return True


@contextmanager
def opened_daemon() -> Iterator[Daemon]:
    """A daemon that runs until the end."""
    # The paths of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="libvirt-", dir="/tmp"))
    running = Daemon(folder)
    try:
        yield running
    finally:
        running.kill()
        shutil.rmtree(folder)
