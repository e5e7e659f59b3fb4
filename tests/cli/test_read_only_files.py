"""``roost db verify`` on SQLite files that this process may not write."""

import asyncio
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ledgers import claim, host, opened, run
from support.processes import ROOST
from support.waiting import patience

_DROP_FROM_BOUNDING_SET = 24  # PR_CAPBSET_DROP
_DAC_OVERRIDE = 1
_LIBC = ctypes.CDLL(None)


def obey_permissions() -> None:
    """For ``preexec_fn``: root's program may only do what the modes of files allow their owner."""
    if os.geteuid() == 0:
        _LIBC.prctl(_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE)


def roost(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOST, *arguments],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
        preexec_fn=obey_permissions,
    )


@contextmanager
def read_only(*paths: Path) -> Iterator[None]:
    modes = [path.stat().st_mode for path in paths]
    for path, mode in zip(paths, modes, strict=True):
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    path = tmp_path / "data #1" / "api.db"
    path.parent.mkdir()

    async def fill() -> None:
        async with opened(path) as [ledger]:
            await run(ledger, *host("node-1", VCPU=8), claim("a", "node-1", VCPU=1))

    asyncio.run(fill())
    return path


@pytest.mark.parametrize("folder_too", [False, True])
def test_a_read_only_file_is_verified_and_nothing_is_written(ledger_file: Path, folder_too: bool) -> None:
    folder = ledger_file.parent
    before = ledger_file.read_bytes()
    with read_only(ledger_file, *([folder] if folder_too else [])):
        done = roost("db", "verify", "--no-progress", "--database", f"sqlite:///{ledger_file}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "agree with the tables" in done.stdout
    assert [path.name for path in folder.iterdir()] == ["api.db"]
    assert ledger_file.read_bytes() == before


def test_a_read_only_file_with_commits_only_in_its_log_is_not_misread(ledger_file: Path) -> None:
    """Without the log's index, which cannot be made, SQLite cannot read the log."""
    copy = ledger_file.with_name("copy.db")

    async def copy_with_its_log() -> None:
        async with opened(ledger_file) as [ledger]:
            await ledger.execute(claim("b", "node-1", VCPU=1))
            shutil.copy(ledger_file, copy)
            shutil.copy(f"{ledger_file}-wal", f"{copy}-wal")

    asyncio.run(copy_with_its_log())
    with read_only(copy, Path(f"{copy}-wal"), copy.parent):
        done = roost("db", "verify", "--database", f"sqlite:///{copy}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "unable to open database file" in done.stderr
