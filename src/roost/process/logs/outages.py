"""Log lines about outages: a few for each outage, instead of one for each request that fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import structlog

SILENT_SECONDS: Final = 60.0
"""Seconds between two lines while an outage lasts."""

QUIET_SECONDS: Final = 5.0
"""Seconds without a failure after which a success ends an outage: some requests succeed during one."""


@dataclass
class _Outage:
    began: float
    failed: float
    told: float
    failures: int = 1
    untold: int = 0


class OutageLines:
    """Logs one line when an outage begins, one a minute with a count while it lasts, and one at its end.

    ``logger``: the name of the module. ``fails``, ``works``: the events of failure and of recovery.
    ``level``: the level of the failures; recovery is a warning. ``clock``: seconds.
    """

    def __init__(
        self,
        logger: str,
        fails: str,
        works: str,
        level: Literal["warning", "error"] = "error",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Without the name the logger would be the one of this module.
        self._log = structlog.get_logger(logger)
        self._fails = fails
        self._works = works
        self._level = level
        self._clock = clock
        self._outages: dict[str, _Outage] = {}

    def failed(self, subject: str = "", **values: object) -> None:
        """Count a failure, and log it if a line is due.

        ``subject``: the thing that is away, if there may be several. ``values``: further values of the line.
        """
        now = self._clock()
        outage = self._outages.get(subject)
        if outage is None:
            self._outages[subject] = _Outage(now, now, now)
            getattr(self._log, self._level)(self._fails, **values)
            return
        outage.failed = now
        outage.failures += 1
        outage.untold += 1
        if now - outage.told >= SILENT_SECONDS:
            getattr(self._log, self._level)(self._fails, more_since_the_last_line=outage.untold, **values)
            outage.told, outage.untold = now, 0

    def succeeded(self, subject: str = "", **values: object) -> bool:
        """Note a success of a subject. Returns whether it ends an outage."""
        outage = self._outages.get(subject)
        if outage is None or self._clock() - outage.failed < QUIET_SECONDS:
            return False
        del self._outages[subject]
        seconds = round(self._clock() - outage.began)
        self._log.warning(self._works, failures=outage.failures, seconds=seconds, **values)
        return True
