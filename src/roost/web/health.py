"""Readiness: checks that a service can serve requests, within a bounded time and at a bounded cost.

A load balancer probes each process every second, even while the database hangs. So a report waits for its
checks only for a limited time. It is then cached for a while, so that many probes at the same time cost one
run of each check. A check that does not answer is not started again before it ends.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from roost.model.errors import OperatorError
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import counting
from roost.process.options import OptionStruct, option

CACHE_SECONDS = 1.0
"""Seconds for which a report is cached; probes during this time get the same one."""

_LOG = structlog.get_logger()


def _ports_and_paths(texts: Sequence[str]) -> tuple[tuple[int, str], ...]:
    return tuple(_port_and_path(each) for each in texts if each.strip())


def _port_and_path(text: str) -> tuple[int, str]:
    port, _, path = text.strip().partition(":")
    if not (port.isascii() and port.isdigit() and path):
        raise OperatorError(f"configuration: [healthcheck] disable_by_file_paths: {text!r} is not PORT:PATH")
    return int(port), path


class HealthOptions(OptionStruct, frozen=True, group="healthcheck"):
    """The conditions of health, as options. ``disable_by_port``: files by the port that they disable."""

    disable_file: str | None = option(
        None,
        name="disable_by_file_path",
        help="While this file exists, /healthcheck and /readyz answer 503, so that load balancers send no "
        "requests.",
    )
    disable_by_port: tuple[tuple[int, str], ...] = option(
        (),
        name="disable_by_file_paths",
        parse=_ports_and_paths,
        help="As disable_by_file_path, for processes at one port, as in 8778:/run/roost/disable.",
    )
    max_lag_commits: int = option(
        1000,
        min=0,
        help="A process that lacks more commits than this is not ready (/readyz answers 503).",
    )
    max_lag_seconds: float = option(
        30.0,
        min=0.0,
        help="A process that lacks a commit for more than this many seconds is not ready.",
    )
    check_seconds: float = option(
        2.0,
        name="check_timeout",
        min=0.05,
        help="A check of /readyz that takes longer than this many seconds fails.",
    )

    def disabled(self, port: int | None) -> bool:
        """Return whether a file disables the process at a port."""
        paths = [path for each, path in self.disable_by_port if each == port]
        return any(Path(path).exists() for path in (self.disable_file, *paths) if path)


class NoAnswer(Exception):
    """A check took longer than its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


def _judge(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    return str(failure) if isinstance(failure, NoAnswer) else "it fails; the log has the error"


@dataclass(frozen=True)
class HealthCheck:
    """A condition that must hold for requests to be served.

    - ``ask``: asks the service concerned, and may take long. None: ``judge`` needs no answer.
    - ``judge``: returns the reason why the condition does not hold, None if it holds. It is called with the
      error of ``ask`` when all checks have answered or are late. The reason is public: it names no address.
    - ``lasting``: seconds for which an answer without an error is cached.
    """

    name: str
    ask: Callable[[], Awaitable[object]] | None = None
    judge: Callable[[Exception | None], str | None] = _judge
    lasting: float = CACHE_SECONDS


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check. ``reason``: why the condition does not hold; None if it holds."""

    name: str
    passed: bool
    reason: str | None = None


class Readiness(msgspec.Struct, frozen=True):
    """The readiness of a process. It is ready to serve requests if all checks pass."""

    ready: bool
    checks: Sequence[CheckResult]


class Health:
    """The checks of one process. For use from one event loop. ``clock``: seconds, monotonic."""

    def __init__(
        self,
        checks: Sequence[HealthCheck],
        options: HealthOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self._clock = clock
        self._asked = [_Asked(check, options.check_seconds, clock) for check in checks]
        self._report: Readiness | None = None
        self._until = 0.0
        self._reporting: asyncio.Task[Readiness] | None = None
        self._failing: set[str] = set()

    async def readiness(self) -> Readiness:
        """Report on all checks, within `HealthOptions.check_seconds`."""
        if self._report is not None and self._clock() < self._until:
            return self._report
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._make_report())
        # Shielded, because other probes may wait for the report when this one is cancelled.
        return await asyncio.shield(self._reporting)

    def describe(self) -> dict[str, object]:
        """Return the results of the last report by name."""
        if self._report is None:
            return {}
        return {each.name: "passed" if each.passed else each.reason for each in self._report.checks}

    def close(self) -> None:
        """Cancel the checks under way."""
        if self._reporting is not None:
            self._reporting.cancel()
        for asked in self._asked:
            asked.cancel()

    async def _make_report(self) -> Readiness:
        try:
            await asyncio.gather(*(asked.ask() for asked in self._asked))
            results = tuple(self._judge(asked) for asked in self._asked)
            self._report = Readiness(all(each.passed for each in results), results)
            self._until = self._clock() + CACHE_SECONDS
            return self._report
        finally:
            self._reporting = None

    def _judge(self, asked: "_Asked") -> CheckResult:
        name = asked.check.name
        reason = asked.check.judge(asked.failure)
        if reason is None and name in self._failing:
            self._failing.discard(name)
            _LOG.warning("a readiness check passes again", check=name)
        elif reason is not None and name not in self._failing:
            self._failing.add(name)
            error = {} if asked.failure is None else {"error": str(asked.failure)}
            _LOG.warning("a readiness check fails", check=name, reason=reason, **error)
        return CheckResult(name, reason is None, reason)


class _Asked:
    """A check and its last answer. ``failure``: the error of that answer, `NoAnswer`, or None."""

    def __init__(self, check: HealthCheck, seconds: float, clock: Callable[[], float]) -> None:
        self.check = check
        self.failure: Exception | None = None
        self._seconds = seconds
        self._clock = clock
        self._task: asyncio.Future[object] | None = None
        self._late_at = 0.0
        self._until = 0.0

    async def ask(self) -> None:
        """Run the check or wait for the run under way, at most until its time limit."""
        if self.check.ask is None:
            return
        now = self._clock()
        if self._task is None:
            if now < self._until:
                return
            self._task = asyncio.ensure_future(self.check.ask())
            self._late_at = now + self._seconds
        await asyncio.wait((self._task,), timeout=max(0.0, self._late_at - now))
        if not self._task.done():
            self.failure = NoAnswer(self._seconds)
            return
        error = None if self._task.cancelled() else self._task.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        self._task, self.failure = None, error
        self._until = 0.0 if error else self._clock() + self.check.lasting

    def cancel(self) -> None:
        """Cancel the run under way."""
        if self._task is not None:
            self._task.cancel()


CHECK_SECONDS = 5.0
"""Seconds between two reports."""


async def keep_checking(health: Health) -> None:
    """Set the metrics of readiness until cancelled; return at once if metrics are not counted."""
    while counting():
        report = await health.readiness()
        passed: dict[str, bool] = {}
        for check in report.checks:
            # The label is the first word: `cell NAME` has one for all names, `api database` is `api`.
            kind = check.name.partition(" ")[0]
            passed[kind] = passed.get(kind, True) and check.passed
        for kind, value in passed.items():
            metrics.HEALTH_CHECKS.labels(kind).set(value)
        await asyncio.sleep(CHECK_SECONDS)
