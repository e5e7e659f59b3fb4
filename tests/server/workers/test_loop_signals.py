"""Signals that come to a worker between the start of its event loop and the time when that serves."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator

import pytest
import uvloop

from roost.server.workers.loop_signals import call_on_signals
from support.waiting import patience

LOOPS = pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop])


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of the process are as before when a test has ended."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def told_between_two_runs(
    make: Callable[[], asyncio.AbstractEventLoop],
    number: signal.Signals,
    install: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], None],
    seconds: float,
) -> bool:
    """Whether a function is called on a signal that comes between two runs of a loop, within some seconds."""
    loop = make()
    told = asyncio.Event()

    async def start() -> None:
        install(loop, told.set)

    async def serve() -> bool:
        try:
            async with asyncio.timeout(seconds):
                await told.wait()
        except TimeoutError:
            return False
        return True

    try:
        loop.run_until_complete(start())
        os.kill(os.getpid(), number)
        return loop.run_until_complete(serve())
    finally:
        loop.close()


@LOOPS
def test_a_function_is_called_on_a_signal_that_comes_between_two_runs_of_the_loop(make) -> None:
    def install(_: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
        call_on_signals((signal.SIGHUP,), tell)

    assert told_between_two_runs(make, signal.SIGHUP, install, patience(30))


@LOOPS
def test_the_servers_handler_is_told_of_a_signal_that_comes_between_two_runs_of_the_loop(make) -> None:
    def install(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
        loop.add_signal_handler(signal.SIGTERM, tell)
        call_on_signals((signal.SIGTERM,))

    assert told_between_two_runs(make, signal.SIGTERM, install, patience(30))


def test_a_handler_that_is_added_to_the_loop_itself_is_not_told() -> None:
    def install(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
        loop.add_signal_handler(signal.SIGHUP, tell)

    assert not told_between_two_runs(uvloop.new_event_loop, signal.SIGHUP, install, 0.2)
