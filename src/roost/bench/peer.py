"""The peer: OpenStack Placement at pinned versions, in a virtual environment in the bench directory."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from roost.bench.errors import PeerMissing

REQUIREMENTS: Final = Path(__file__).with_name("peer-requirements.lock")
VERSION: Final = "16.0.0"

StepRunner = Callable[[str, list[str]], None]
"""Executes a command of the installation. The first argument describes it in error messages."""


class Peer(NamedTuple):
    """An environment with OpenStack Placement, uwsgi, and database drivers."""

    folder: Path

    @property
    def uwsgi(self) -> Path:
        """The path of the server program."""
        return self.folder / "bin" / "uwsgi"


def find_peer(folder: Path) -> Peer:
    """Return the environment in a bench directory.

    Raises:
        PeerMissing: There is no such environment, or its installation was interrupted.
    """
    peer = Peer(folder / "peer")
    if not (peer.folder / "complete").exists():
        raise PeerMissing(f"there is no OpenStack Placement in {peer.folder}: run 'roost bench peer-setup'")
    return peer


def set_up_peer(folder: Path, run: StepRunner | None = None) -> Peer:
    """Make the environment, unless it exists with the same pinned versions.

    ``run`` executes a step of the installation; the default is `run_step`.

    Raises:
        PeerMissing: A step failed.
    """
    run = run or run_step
    peer = Peer(folder / "peer")
    mark = peer.folder / "complete"
    wanted = REQUIREMENTS.read_text()
    if mark.exists() and mark.read_text() == wanted:
        return peer
    shutil.rmtree(peer.folder, ignore_errors=True)
    python = peer.folder / "bin" / "python"
    run("make a virtual environment", [sys.executable, "-m", "venv", str(peer.folder)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(REQUIREMENTS)]
    run("install OpenStack Placement", install)
    run("run uwsgi", [str(peer.uwsgi), "--version"])
    mark.write_text(wanted)
    return peer


def run_step(what: str, command: list[str]) -> None:
    """Run a command. ``what`` describes it in the error message.

    Raises:
        PeerMissing: The command failed. The text names a missing C compiler, the usual cause.
    """
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PeerMissing(f"cannot {what}: {error}") from error
    if done.returncode == 0:
        return
    said = done.stderr.strip()
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        said += "\nThere is no C compiler here, which is needed where a package has no wheel for this Python."
    raise PeerMissing(f"cannot {what}: {said[-2000:]}")
