"""The installation of OpenStack Placement, and the errors without it."""

import subprocess
from pathlib import Path

import pytest

from roost.bench import peer
from roost.bench.errors import PeerMissing
from roost.bench.peer import REQUIREMENTS, VERSION, find_peer, set_up_peer
from support.processes import run_roost


def test_it_is_missing_until_it_was_set_up(tmp_path: Path):
    with pytest.raises(PeerMissing, match="run 'roost bench peer-setup'"):
        find_peer(tmp_path)


def test_a_command_says_so_in_one_line(tmp_path: Path):
    answer = run_roost("bench", "claims", "--hosts", "1", "--peer", "--dir", tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1] == (
        f"roost: there is no OpenStack Placement in {tmp_path}/peer: run 'roost bench peer-setup'"
    )


def test_an_interrupted_installation_does_not_count(tmp_path: Path):
    def run(what: str, command: list[str]) -> None:
        (tmp_path / "peer").mkdir(exist_ok=True)
        if "install" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        set_up_peer(tmp_path, run)
    with pytest.raises(PeerMissing):
        find_peer(tmp_path)


def test_it_is_set_up_once_for_each_lock(tmp_path: Path):
    ran: list[str] = []

    def run(what: str, command: list[str]) -> None:
        ran.append(what)
        (tmp_path / "peer").mkdir(exist_ok=True)

    assert set_up_peer(tmp_path, run) == set_up_peer(tmp_path, run) == find_peer(tmp_path)
    assert len(ran) == 3
    (tmp_path / "peer" / "complete").write_text("an older lock")
    set_up_peer(tmp_path, run)
    assert len(ran) == 6


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    failed = subprocess.CompletedProcess([], 1, "", "error: failed building wheel")
    monkeypatch.setattr(peer.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(peer.shutil, "which", lambda _: None)
    with pytest.raises(PeerMissing, match="failed building wheel\nThere is no C compiler here"):
        set_up_peer(tmp_path)


def test_the_lock_pins_what_is_said_and_names_no_address():
    lock = REQUIREMENTS.read_text()
    assert f"openstack-placement=={VERSION} " in lock
    assert "pyuwsgi==" in lock
    assert "://" not in lock
