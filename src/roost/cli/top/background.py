"""Reads what the screen shows in a thread of its own, so that keys never wait for a service."""

import threading
import time
from collections.abc import Callable

from roost.cli.top.frame import PaneReading
from roost.cli.top.panes.pane import PaneQuery, PaneView
from roost.cli.top.service_reader import ServiceSilent


class BackgroundReader:
    """Reads a pane every ``interval`` seconds, and at once when the query changes.

    ``read``: reads a query; raises `ServiceSilent`. ``wake``: called when something has been read. While a
    reading is under way only the newest query is kept: a key that is held down sends no flood.
    """

    def __init__(
        self, read: Callable[[PaneQuery], PaneView], interval: float, wake: Callable[[], None]
    ) -> None:
        self._read = read
        self._interval = interval
        self._wake = wake
        self._changed = threading.Event()
        self._wanted: PaneQuery | None = None
        self._readings: dict[int, tuple[PaneQuery, PaneReading]] = {}
        self._failure: BaseException | None = None
        self._ended = False
        # A daemon: the process need not wait for a service that does not answer.
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        """Begin to read what `ask` has asked for."""
        self._thread.start()

    def end(self) -> None:
        """Read no more. A reading that is under way goes on."""
        self._ended = True
        self._changed.set()

    def ask(self, query: PaneQuery) -> None:
        """Read this from now on."""
        if query != self._wanted:
            self._wanted = query
            self._changed.set()

    @property
    def wanted(self) -> PaneQuery | None:
        """The query that is read now."""
        return self._wanted

    def reading(self, pane: int) -> PaneReading:
        """Return what was read last of a pane. Raises the error that ended the thread."""
        if self._failure is not None:
            raise self._failure
        return self._readings[pane][1] if pane in self._readings else PaneReading()

    def _run(self) -> None:
        try:
            while not self._ended:
                began = time.monotonic()
                # Cleared before the query is looked at: a change meanwhile sets it again.
                self._changed.clear()
                if self._wanted is not None:
                    self._take(self._wanted)
                self._changed.wait(max(self._interval - (time.monotonic() - began), 0))
        except BaseException as error:
            self._failure = error
            self._wake()

    def _take(self, query: PaneQuery) -> None:
        before = self._readings.get(query.pane, (query, PaneReading()))
        try:
            found = PaneReading(self._read(query), None, time.time())
        except ServiceSilent as silent:
            found = before[1]._replace(problem=str(silent))
        self._readings[query.pane] = query, found
        self._wake()
