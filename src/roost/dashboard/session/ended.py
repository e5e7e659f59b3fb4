"""The sessions that were ended before their time: a cookie that was copied before opens nothing after."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from roost.model.errors import OperatorError
from roost.process.durable_file import replace_file

_MOST = 100_000
"""Ended sessions that are remembered at most; with more, those that would end first are forgotten."""


class EndedSessions:
    """The ids of ended sessions, until the time at which they would have ended anyway.

    They are in a file of ``folder``, so that a restart does not bring them back; without a folder the key of
    the sessions ends with the process too. ``clock``: seconds since the epoch. Raises `OperatorError` if the
    file cannot be read.
    """

    def __init__(self, folder: Path | None, clock: Callable[[], float]) -> None:
        self._path = None if folder is None else folder / "ended_sessions.json"
        self._clock = clock
        self._ends: dict[str, float] = {}
        if self._path is not None:
            try:
                self._ends = msgspec.json.decode(self._path.read_bytes(), type=dict[str, float])
            except FileNotFoundError:
                pass
            except (OSError, msgspec.DecodeError) as error:
                raise OperatorError(f"[dashboard] directory: {self._path}: {error}") from error

    def __contains__(self, session: str) -> bool:
        return session in self._ends

    def add(self, session: str, ends: float) -> None:
        """End a session, which would have ended at ``ends``. Raises OSError if that cannot be kept."""
        now = self._clock()
        kept = {**self._ends, session: ends}
        latest = sorted(((at, each) for each, at in kept.items() if at > now), reverse=True)[:_MOST]
        self._ends = {each: at for at, each in latest}
        if self._path is not None:
            replace_file(self._path, msgspec.json.encode(self._ends))
