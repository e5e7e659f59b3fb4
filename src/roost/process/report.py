"""The report of a process, which an operator requests by the signal USR2.

It holds versions, memory, options without secrets, the stacks of asyncio tasks and threads, and sections that
the process adds, such as the state of its ledger. It holds no values of local variables. A thread writes it,
so it is written even while the event loop hangs; then the sections that need the loop say so.
"""

import asyncio
import os
import platform
import re
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LoopHangs
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import structlog
from oslo_config import cfg

import roost
from roost.model.secrets import HIDDEN, safe_message
from roost.process.logs.configuration import REPORT_LOGGER
from roost.process.timed_steps import timed_coroutine

SIGNAL = signal.SIGUSR2
LOOP_SECONDS = 2.0
"""Seconds that the event loop has to describe a section; after them the report goes on without it."""

_SECRET = re.compile("password|secret|token$|credential|private|hmac|_key$|^key$")
_LIBRARIES = (
    "alembic", "falcon", "granian", "httpx", "keystoneauth1", "keystonemiddleware", "msgspec", "numpy",
    "opentelemetry-sdk", "oslo.config", "oslo.policy", "prometheus-client", "psycopg", "PyMySQL",
    "SQLAlchemy", "structlog", "uvloop",
)  # fmt: skip

Describe = Callable[[], Mapping[str, object]]
"""Describes the state of a part of the process, by names and values. It is called in the event loop."""


class ProcessReport:
    """The report of this process. ``sections``: the title of each part and the function that describes it.

    ``options``: describes the options; it is called in the thread of the report.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None = None,
        options: Describe | None = None,
        sections: Mapping[str, Describe] | None = None,
    ) -> None:
        self._loop = loop
        self._options = options
        self._sections = dict(sections or {})
        self._started = time.time()

    def on_signal(self) -> None:
        """Log the report on every `SIGNAL` from now on. Call it in the main thread."""

        def start(_number: int, _frame: FrameType | None) -> None:
            threading.Thread(target=self.log, name="report", daemon=True).start()

        signal.signal(SIGNAL, start)

    def log(self) -> None:
        """Log the report as one record."""
        structlog.get_logger(REPORT_LOGGER).info("report", block=self.text())

    def write(self, stream: TextIO) -> None:
        """Write the report to a stream."""
        stream.write(self.text() + "\n")

    def text(self) -> str:
        """Return the report. Call it outside the thread of the event loop, which has to answer meanwhile."""
        parts: dict[str, Iterable[str]] = {"process": _process(self._started)}
        if self._options is not None:
            parts["options"] = _described(self._options)
        for title, describe in self._sections.items():
            parts[title] = _described(self._in_loop(describe))
        if self._loop is not None:
            parts["tasks"] = _tasks(self._loop)
        parts["threads"] = _threads()
        return "\n".join(line for title, lines in parts.items() for line in (f"== {title}", *lines))

    def _in_loop(self, describe: Describe) -> Describe:
        loop = self._loop
        if loop is None:
            return describe
        found: Future[Mapping[str, object]] = Future()

        def answer() -> None:
            try:
                found.set_result(describe())
            except Exception as error:
                found.set_exception(error)

        def wait() -> Mapping[str, object]:
            loop.call_soon_threadsafe(answer)
            try:
                return found.result(LOOP_SECONDS)
            except LoopHangs:
                return {"unknown": f"the event loop has not answered for {LOOP_SECONDS:g} seconds"}

        return wait


def masked_options(conf: cfg.ConfigOpts, groups: Mapping[str, Iterable[cfg.Opt]]) -> dict[str, object]:
    """Return the values of registered options by ``[group] option``, secrets and passwords in URLs masked."""
    found: dict[str, object] = {}
    for group, options in groups.items():
        section = conf if group == "DEFAULT" else conf[group]
        for option in options:
            value = section[option.dest]
            secret = value not in (None, "") and (option.secret or _SECRET.search(option.dest))
            found[f"[{group}] {option.dest}"] = HIDDEN if secret else masked(value)
    return found


def masked(value: Any) -> Any:
    """Return the value of an option without the secrets in the URLs in it."""
    if isinstance(value, str):
        return safe_message(value)
    if isinstance(value, list):
        return [masked(each) for each in value]
    if isinstance(value, dict):
        return {key: masked(each) for key, each in value.items()}
    return value


def _described(describe: Describe) -> Iterator[str]:
    try:
        found = describe()
    except Exception as error:
        # The other sections matter all the more then.
        yield f"cannot be described: {type(error).__name__}: {error}"
        return
    for name, value in found.items():
        yield f"{name} = {value!r}"


def _process(started: float) -> Iterator[str]:
    yield f"roost {roost.__version__}, Python {platform.python_version()}, {platform.platform()}"
    for name in _LIBRARIES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    yield f"process {os.getpid()} of {os.getppid()}, up for {time.time() - started:.0f} s"
    status = Path("/proc/self/status")
    if status.exists():
        yield from (line for line in status.read_text().splitlines() if line.startswith(("VmRSS", "VmHWM")))
        yield f"open files: {len(list(Path('/proc/self/fd').iterdir()))}"


def _tasks(loop: asyncio.AbstractEventLoop) -> Iterator[str]:
    """Yield the tasks of a loop. Tasks that wait at the same place are one entry."""
    places = Counter(
        (_place(task), task.get_name() if _is_named(task) else "") for task in asyncio.all_tasks(loop)
    )
    for (place, name), number in places.most_common():
        yield f"{number} x {name}".rstrip() if number > 1 or name else "1 x"
        yield from (f"  {line}" for line in place)


def _is_named(task: "asyncio.Task[Any]") -> bool:
    return not re.fullmatch(r"Task-\d+", task.get_name())


def _place(task: "asyncio.Task[Any]") -> tuple[str, ...]:
    """Return where a task waits: the frames of its coroutine and of the awaited ones, outermost first."""
    found = []
    waits: Any = task.get_coro()
    while waits is not None:
        waits = timed_coroutine(waits)
        frame = getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)
        if frame is None:
            break
        found.append(_frame(frame, frame.f_lineno))
        waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
    return tuple(found) or (repr(task.get_coro()),)


def _frame(frame: FrameType, line: int) -> str:
    return f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}"


def _threads() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        yield f"{names.get(ident, 'unknown')} ({ident})"
        yield from (f"  {_frame(each, line)}" for each, line in traceback.walk_stack(frame))
