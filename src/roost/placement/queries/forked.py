"""A function in a forked process: on the memory as it is now, with limits of time and memory of its own.

Why a fork: the fleet changes with each commit, and a search that takes seconds needs one version of it. A
copy of the columns takes 45 ms for 100,000 hosts, the fork of a process some milliseconds, whatever it holds;
and only the operating system can interrupt a search at any point.

The process has other threads, which the child lacks, and they may hold locks at the fork. So the child uses
nothing with such locks: it closes all files but the one for its result, computes, writes, and ends without
any clean-up.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn

NICENESS: Final = 10
"""Added to the child's niceness: beside a busy process of normal priority it gets a tenth of a processor."""

_LARGEST_FILE: Final = 2**31 - 1
_SIGNAL_AT_PARENTS_DEATH: Final = 1  # PR_SET_PDEATHSIG
_SIGNALS: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)
_OUT_OF_MEMORY: Final = 3
_FAILED: Final = 4
_LIBC: Final = ctypes.CDLL(None)


class ForkedError(Exception):
    """A function in a forked process has no result: one of the errors below."""


class ForkedFailed(ForkedError):
    """The function raised; the text has the traceback."""


class ForkedTooLong(ForkedError):
    """The function did not return in time."""


class ForkedTooLarge(ForkedError):
    """The function exceeded its limit of memory."""


class ForkedUnavailable(ForkedError):
    """The system could not provide a process or file for the function, or killed the process."""


async def run_forked(
    function: Callable[[], bytes],
    seconds: float,
    more_bytes: int,
    on_fork: Callable[[float], None] = lambda seconds: None,
) -> bytes:
    """Call a function in a forked process, and return its result.

    The fork is made before the first ``await``, so the function sees the state of the caller.

    Args:
        function: must use no other thread, no file and no event loop.
        seconds: time limit.
        more_bytes: memory that the process may allocate beside what it shares.
        on_fork: gets the seconds for which the fork kept the caller's event loop.

    Raises:
        ForkedTooLong, ForkedTooLarge, ForkedUnavailable, ForkedFailed: see there.
    """
    with system_errors():
        result = os.memfd_create("roost-query")
    try:
        started = time.perf_counter()
        child = fork(lambda parent: _run(function, result, parent, seconds, more_bytes))
        on_fork(time.perf_counter() - started)
        await end_of(child, seconds)
    except BaseException:
        os.close(result)
        raise
    return await asyncio.get_running_loop().run_in_executor(None, _read_and_close, result)


def _read_and_close(result: int) -> bytes:
    """Read a result, in another thread: copying and freeing a hundred MiB takes tens of milliseconds."""
    try:
        return os.pread(result, os.fstat(result).st_size, 0)
    finally:
        os.close(result)


def fork(be: Callable[[int], None]) -> int:
    """Fork a process that calls ``be`` with the id of this process. Returns the child's id.

    ``be`` must not return.

    Raises: `ForkedUnavailable`.
    """
    parent = os.getpid()
    with warnings.catch_warnings(), system_errors():
        # Python 3.12 warns of forks with threads; the docstring of this module says why this one is safe.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        be(parent)
    return child


@contextlib.contextmanager
def system_errors() -> Iterator[None]:
    """Translate errors of the operating system to `ForkedUnavailable`."""
    try:
        yield
    except OSError as error:
        raise ForkedUnavailable(error.strerror or str(error)) from error


async def end_of(child: int, seconds: float | None) -> None:
    """Wait for the end of the child, and kill it after ``seconds`` or when the caller is cancelled.

    Raises: see `run_forked`.
    """
    loop = asyncio.get_running_loop()
    try:
        with system_errors():
            handle = os.pidfd_open(child)
    except ForkedUnavailable:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        raise ForkedTooLong(f"no result within {seconds:g} seconds") from None
    finally:
        try:
            if not ended.is_set():
                os.kill(child, signal.SIGKILL)
                # The system takes a while to free the child's memory; the event loop goes on meanwhile.
                await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
            _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == _OUT_OF_MEMORY:
        raise ForkedTooLarge("it takes too much memory")
    if code == -signal.SIGXCPU:
        raise ForkedTooLong("it takes too much processor time")
    if code == -signal.SIGKILL:
        raise ForkedUnavailable("its process was killed, perhaps for lack of memory")
    if code != 0:
        raise ForkedFailed(f"the process ended with {code}; its traceback is on standard error")


def _run(function: Callable[[], bytes], result: int, parent: int, seconds: float, more_bytes: int) -> None:
    """Run as the child. Never returns."""

    def work() -> None:
        limit_processor_time(seconds)
        written = memoryview(function())
        while written:
            written = written[os.write(result, written) :]

    be_child(work, result, parent, more_bytes)


def be_child(work: Callable[[], None], file: int, parent: int, more_bytes: int) -> NoReturn:
    """Do the work of a forked process, and end the process.

    ``file``: the descriptor that stays open. ``parent``: the process with which the child ends.
    """
    code = _FAILED
    try:
        _become_child(file, parent, more_bytes)
        work()
        code = 0
    except MemoryError:
        code = _OUT_OF_MEMORY
    except BaseException:
        with contextlib.suppress(BaseException):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def limit_processor_time(seconds: float) -> None:
    """End this process with SIGXCPU once it has used ``seconds`` more of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _become_child(file: int, parent: int, more_bytes: int) -> None:
    """Drop everything that belongs to the parent: connections must end when the parent closes them."""
    os.closerange(3, file)
    os.closerange(file + 1, _LARGEST_FILE)
    _LIBC.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(_FAILED)
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    gc.disable()
    os.nice(NICENESS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + more_bytes, resource.RLIM_INFINITY))
