"""A forked process that stays: what it remembers, how it fails, and that it ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
)
from roost.placement.queries.forked_worker import ForkedWorker, Handler
from support.waiting import Deadline

MIB = 2**20


def begin() -> Handler:
    """Keeps what it is told, and answers with all of it when it is asked with ``?``."""
    said = []

    def handle(message: bytes) -> bytes | None:
        if message == b"?":
            return b" ".join(said)
        if message == b"fail":
            raise LookupError("the reason")
        if message == b"hang":
            signal.pause()
        if message == b"more":
            return b"x" * (400 * MIB)
        if message == b"pid":
            return str(os.getpid()).encode()
        said.append(message)
        return None

    return handle


def with_worker(work: Callable[[ForkedWorker], Awaitable[None]]) -> None:
    async def main() -> None:
        worker = ForkedWorker(begin, 256 * MIB, 60.0)
        child = int(await worker.ask(lambda: b"pid", 60.0))
        try:
            await work(worker)
        finally:
            worker.close()
        while not worker.ended:
            await asyncio.sleep(0.01)
        # It is waited for, so that nothing of it is left.
        assert not Path(f"/proc/{child}").exists()

    asyncio.run(main())


def test_it_keeps_what_it_was_told_and_answers_in_order() -> None:
    async def work(worker: ForkedWorker) -> None:
        long = b"y" * (3 * MIB)
        asked = [worker.tell(lambda: b"a"), worker.tell(lambda: long), worker.ask(lambda: b"?", 60.0)]
        found = await asyncio.gather(*asked, worker.tell(lambda: b"b"), worker.ask(lambda: b"?", 60.0))
        assert found == [None, None, b"a " + long, None, b"a " + long + b" b"]

    with_worker(work)


@pytest.mark.parametrize(
    ("message", "error"),
    [(b"fail", ForkedFailed), (b"more", ForkedTooLarge), (b"hang", ForkedTooLong)],
)
def test_it_ends_when_an_answer_fails(
    message: bytes, error: type[Exception], capfd: pytest.CaptureFixture[str]
) -> None:
    async def work(worker: ForkedWorker) -> None:
        with pytest.raises(error):
            await worker.ask(lambda: message, 0.2 if message == b"hang" else 60.0)
        with pytest.raises((error, ForkedUnavailable)):
            await worker.ask(lambda: b"?", 60.0)
        assert worker.ended

    with_worker(work)
    assert ("LookupError: the reason" in capfd.readouterr().err) == (message == b"fail")


def test_a_process_that_is_killed_meanwhile_is_no_answer() -> None:
    async def work(worker: ForkedWorker) -> None:
        child = int(await worker.ask(lambda: b"pid", 60.0))
        asked = asyncio.ensure_future(worker.ask(lambda: b"hang", 60.0))
        await asyncio.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        with pytest.raises(ForkedUnavailable):
            await asked

    with_worker(work)


PARENT = """
import asyncio, signal
from roost.placement.queries.forked_worker import ForkedWorker
def begin():
    import os
    return lambda message: str(os.getpid()).encode()
async def main():
    worker = ForkedWorker(begin, 2**28, 60.0)
    print((await worker.ask(lambda: b"", 60.0)).decode(), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def test_it_ends_with_its_parent_however_that_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        assert child.exists()
        parent.kill()
    ends = Deadline(30)
    while child.exists() and "Z" not in (child / "stat").read_text().split()[2]:
        assert not ends.passed
        time.sleep(0.01)
