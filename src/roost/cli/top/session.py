"""The state of the screen: which pane is shown, from which row on, and how keys change that."""

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.cli.top.keyboard import ENDED
from roost.cli.top.panes.pane import Pane, PaneQuery

MOST_SEARCH: Final = 60
"""Most characters of a searched name."""


class PaneState(msgspec.Struct):
    """A pane's first row on the screen, and its choices: numbers of its order and of its resource class."""

    first: int = 0
    sort: int = 0
    search: str = ""
    choice: int = 0


class TopSession:
    """The panes and what is shown of them. ``typing``: the name that is being typed, None if none is."""

    def __init__(self, panes: Sequence[Pane]) -> None:
        self.panes = panes
        self.shown = 0
        self.states = [PaneState() for _ in panes]
        self.typing: str | None = None
        self.ended = False

    @property
    def pane(self) -> Pane:
        """The pane that is shown."""
        return self.panes[self.shown]

    @property
    def state(self) -> PaneState:
        """The state of the pane that is shown."""
        return self.states[self.shown]

    def query(self, height: int) -> PaneQuery:
        """Return what the pane that is shown asks for: the rows on the screen, and as many before and after.

        ``height``: rows on the screen.
        """
        pane, state = self.pane, self.state
        sort = pane.sorts[state.sort % len(pane.sorts)] if pane.sorts else ""
        first = max(state.first - height, 0) if pane.pages else 0
        return PaneQuery(self.shown, first, 3 * height if pane.pages else 0, sort, state.search, state.choice)

    def has(self, query: PaneQuery, height: int) -> bool:
        """Return whether an earlier query asked for all that is on the screen now."""
        first = self.state.first
        wanted = self.query(height)
        same = query._replace(first=0, rows=0) == wanted._replace(first=0, rows=0)
        return same and (not self.pane.pages or query.first <= first <= query.first + query.rows - height)

    def press(self, key: str, height: int, total: int) -> None:
        """Carry out a key. ``height``: rows on the screen; ``total``: all rows of the pane."""
        if key == ENDED:
            self.ended = True
        elif self.typing is not None:
            self._type(key)
        elif not (self._shows(key) or self._scrolls(key, height, total)):
            self._chooses(key)

    def clamp(self, height: int, total: int) -> None:
        """Keep the first row within the pane: rows may have gone, or the screen may be larger."""
        self.state.first = max(min(self.state.first, total - height), 0)

    def _shows(self, key: str) -> bool:
        number = len(self.panes)
        letters = [each.key for each in self.panes]
        if key in letters:
            self.shown = letters.index(key)
        elif key.isdecimal() and key.isascii() and 1 <= int(key) <= number:
            self.shown = int(key) - 1
        elif key in ("tab", "back tab"):
            self.shown = (self.shown + (1 if key == "tab" else -1)) % number
        else:
            return False
        return True

    def _scrolls(self, key: str, height: int, total: int) -> bool:
        page = max(height - 1, 1)
        by = {
            "up": -1,
            "k": -1,
            "down": 1,
            "j": 1,
            "page up": -page,
            "page down": page,
            " ": page,
            "home": -total,
            "end": total,
        }
        if key not in by:
            return False
        self.state.first += by[key]
        self.clamp(height, total)
        return True

    def _chooses(self, key: str) -> None:
        state = self.state
        match key:
            case "q":
                self.ended = True
            case "s" if self.pane.sorts:
                state.sort = (state.sort + 1) % len(self.pane.sorts)
                state.first = 0
            case "left" | "right":
                state.choice += 1 if key == "right" else -1
                state.first = 0
            case "/" if self.pane.searches:
                self.typing = state.search
            case "escape":
                state.search, state.first = "", 0

    def _type(self, key: str) -> None:
        typed = self.typing or ""
        match key:
            case "enter":
                self.state.search, self.state.first, self.typing = typed.strip(), 0, None
            case "escape":
                self.typing = None
            case "backspace":
                self.typing = typed[:-1]
            case _ if len(key) == 1 and len(typed) < MOST_SEARCH:
                self.typing = typed + key
