"""OpenStack Placement, to be measured against: in a virtual environment of its own, at pinned versions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from roost.bench.errors import PeerMissing

REQUIREMENTS: Final = Path(__file__).with_name("peer-requirements.lock")
VERSION: Final = "16.0.0"


class Peer(NamedTuple):
    """An environment with OpenStack Placement, uwsgi, and drivers of databases."""

    folder: Path

    @property
    def uwsgi(self) -> Path:
        """The program that serves it."""
        return self.folder / "bin" / "uwsgi"


def find_peer(folder: Path) -> Peer:
    """The environment in a bench directory. Raises `PeerMissing`."""
    peer = Peer(folder / "peer")
    if not (peer.folder / "complete").exists():
        raise PeerMissing(f"there is no OpenStack Placement in {peer.folder}: run 'roost bench peer-setup'")
    return peer


def set_up_peer(folder: Path) -> Peer:
    """Make the environment; nothing happens if it is there already. Raises `PeerMissing` if that fails."""
    peer = Peer(folder / "peer")
    mark = peer.folder / "complete"
    wanted = REQUIREMENTS.read_text()
    if mark.exists() and mark.read_text() == wanted:
        return peer
    shutil.rmtree(peer.folder, ignore_errors=True)
    python = peer.folder / "bin" / "python"
    _run("make a virtual environment", [sys.executable, "-m", "venv", str(peer.folder)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(REQUIREMENTS)]
    _run("install OpenStack Placement", install)
    _run("run uwsgi", [str(peer.uwsgi), "--version"])
    mark.write_text(wanted)
    return peer


def _run(what: str, command: list[str]) -> None:
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
