"""`roost top` on a terminal: draws the screen when something has been read or typed, until `q`."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Console, Group
from rich.control import Control
from rich.screen import Screen

from roost.cli.top.background import BackgroundReader
from roost.cli.top.frame import Frame, frame
from roost.cli.top.keyboard import RESIZED, STOPPED, Keyboard
from roost.cli.top.panes.pane import Pane, PaneQuery, PaneView
from roost.cli.top.service_reader import ServiceReader
from roost.cli.top.session import TopSession

IDLE_SECONDS = 60.0
"""Seconds after which the screen is drawn although nothing has changed."""


def is_interactive() -> bool:
    """Return whether somebody types at the terminal that shows the output."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not Console().is_dumb_terminal


def show_panes(panes: Sequence[Pane], services: ServiceReader, interval: float) -> None:
    """Show panes until the person at the terminal ends it. ``interval``: seconds between two readings."""
    keyboard = Keyboard(sys.stdin.fileno())

    def read(query: PaneQuery) -> PaneView:
        return panes[query.pane].read(services, query)

    reader = BackgroundReader(read, interval, keyboard.wake)
    with keyboard.typing(), contextlib.closing(_Screen()) as screen:
        reader.start()
        try:
            _run(TopSession(panes), reader, keyboard, screen)
        finally:
            reader.end()


def _run(session: TopSession, reader: BackgroundReader, keyboard: Keyboard, screen: "_Screen") -> None:
    while True:
        drawn = screen.draw(partial(frame, session, reader.reading(session.shown)))
        if reader.wanted is None or not session.has(reader.wanted, drawn.height):
            reader.ask(session.query(drawn.height))
        for event in keyboard.wait(IDLE_SECONDS):
            if event == RESIZED:
                screen.forget()
            elif event == STOPPED:
                with screen.left():
                    keyboard.stop()
            else:
                session.press(event, drawn.height, drawn.total)
        if session.ended:
            return


class _Screen:
    """The whole screen of the terminal. What it showed before comes back when it is closed."""

    def __init__(self) -> None:
        self._console = Console(markup=False, highlight=False)
        self._shown: tuple[object, ...] | None = None
        self._take()

    def close(self) -> None:
        """Leave the screen as it was before."""
        self._console.show_cursor(True)
        self._console.set_alt_screen(False)

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """Leave the screen for as long as the context lasts."""
        self.close()
        try:
            yield
        finally:
            self._take()

    def forget(self) -> None:
        """Draw everything the next time: the terminal may have changed what it shows."""
        self._shown = None

    def draw(self, compose: Callable[[int, int], Frame]) -> Frame:
        """Draw what ``compose`` makes for the width and the number of rows, unless it is there already."""
        width, rows = self._console.size
        drawn = compose(width, rows)
        shown = (width, rows, *((line.plain, line.style, line.spans) for line in drawn.lines))
        if shown != self._shown:
            self._console.print(Control.home(), Screen(Group(*drawn.lines)), end="", soft_wrap=False)
            self._shown = shown
        return drawn

    def _take(self) -> None:
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)
        self.forget()
