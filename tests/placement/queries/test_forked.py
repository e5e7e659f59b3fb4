"""A function in a forked process: its result, its limits, and what it must not hold on to."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
    run_forked,
)
from support.waiting import patience

MIB = 2**20


def children() -> set[int]:
    """This process's children, ended ones as well until they are waited for."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for text in lists for pid in text.read_text().split()}


@pytest.fixture
def leaves_no_process() -> Iterator[None]:
    """The test leaves no child, among those that servers of other tests are."""
    before = children()
    yield
    assert children() <= before


def forked(function: Callable[[], bytes], seconds: float = 60.0, more_bytes: int = 256 * MIB) -> bytes:
    return asyncio.run(run_forked(function, seconds, more_bytes))


def test_a_result_of_any_length_comes_back() -> None:
    for size in (0, 1, 70_000, 20 * MIB):
        assert forked(lambda size=size: b"x" * size) == b"x" * size  # type: ignore[misc]


def test_the_function_sees_the_state_at_the_call_and_changes_nothing() -> None:
    state = [1]

    def change() -> bytes:
        state.append(2)
        return repr(state).encode()

    async def run() -> bytes:
        task = asyncio.ensure_future(run_forked(change, 60.0, MIB * 64))
        await asyncio.sleep(0)
        state.append(3)
        return await task

    assert asyncio.run(run()) == b"[1, 2]"
    assert state == [1, 3]


def test_the_caller_goes_on_meanwhile() -> None:
    async def run() -> None:
        waiting = asyncio.ensure_future(run_forked(lambda: bytes(signal.pause() or 0), 1.0, MIB))
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(ForkedTooLong):
            waiting.result()
        assert turns > 1

    asyncio.run(run())


@pytest.mark.usefixtures("leaves_no_process")
def test_an_endless_function_is_killed() -> None:
    def endless() -> bytes:
        while True:
            pass

    with pytest.raises(ForkedTooLong, match=r"0\.2 seconds"):
        forked(endless, seconds=0.2)


@pytest.mark.usefixtures("leaves_no_process")
def test_a_caller_that_is_cancelled_leaves_no_process() -> None:
    async def run() -> None:
        task = asyncio.ensure_future(run_forked(lambda: bytes(signal.pause() or 0), 60.0, MIB))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_memory_is_limited() -> None:
    with pytest.raises(ForkedTooLarge):
        forked(lambda: bytes(512 * MIB), more_bytes=64 * MIB)


@pytest.mark.usefixtures("leaves_no_process")
@pytest.mark.parametrize("call", ["memfd_create", "fork", "pidfd_open"])
def test_a_system_that_has_no_more_leaves_no_process(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(ForkedUnavailable, match="too many open files"):
        forked(lambda: bytes(signal.pause() or 0))


def test_a_process_that_the_system_kills_is_no_fault_of_the_function() -> None:
    with pytest.raises(ForkedUnavailable, match="killed"):
        forked(lambda: bytes(os.kill(os.getpid(), signal.SIGKILL) or 0))


def test_an_error_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    def wrong() -> bytes:
        raise LookupError("the reason")

    with pytest.raises(ForkedFailed):
        forked(wrong)
    assert "LookupError: the reason" in capfd.readouterr().err


def test_connections_that_the_caller_closes_end_although_the_function_still_runs() -> None:
    """The child closes what it inherited; otherwise no client would notice the end of its connection."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        task = asyncio.ensure_future(run_forked(lambda: bytes(signal.pause() or 0), 60.0, MIB))
        await asyncio.sleep(0)
        ours.close()
        loop = asyncio.get_running_loop()
        theirs.setblocking(False)
        assert await asyncio.wait_for(loop.sock_recv(theirs, 1), patience(30.0)) == b""
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        theirs.close()

    asyncio.run(run())
