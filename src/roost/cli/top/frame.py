"""The lines of the whole screen: tabs and head stay, the rows scroll, the last line has the keys."""

import time
from typing import Final, NamedTuple

from rich.text import Text

from roost.cli.tables import folded, one_line
from roost.cli.top.panes.pane import PaneView
from roost.cli.top.session import TopSession

MOST_PROBLEM_LINES: Final = 3
"""Lines of a problem at most; the rest of it is cut."""


class PaneReading(NamedTuple):
    """The last reading of the pane on the screen.

    ``view``: None until it has been read once. ``problem``: why the last reading failed; None if it did not.
    ``at``: seconds since the epoch of the view.
    """

    view: PaneView | None = None
    problem: str | None = None
    at: float | None = None


class Frame(NamedTuple):
    """A screen.

    ``lines``: as many as it has. ``height``: those of the pane's rows. ``total``: all rows of the pane.
    """

    lines: list[Text]
    height: int
    total: int


def frame(session: TopSession, reading: PaneReading, width: int, rows: int) -> Frame:
    """Compose the screen. ``width``, ``rows``: its size in characters."""
    view = reading.view
    head = [_tabs(session, reading, width)]
    if view is not None:
        head += view.head(width)
    elif reading.problem is None:
        head.append(Text("reading ...", "dim"))
    if reading.problem is not None:
        old = "" if view is None else ". What is shown is from its last answer."
        problem = folded(one_line(reading.problem) + old, max(width, 10))
        head += [Text(line, "bold red") for line in problem[:MOST_PROBLEM_LINES]]
    # The last line is for the keys, and one row is shown on the smallest screen.
    head = head[: max(rows - 2, 1)]
    height = max(rows - len(head) - 1, 1)
    total = 0 if view is None else view.total(width)
    session.clamp(height, total)
    body = [] if view is None else view.lines(width, session.state.first, height)
    empty = [Text() for _ in range(height - len(body))]
    lines = [*head, *body, *empty, _foot(session, height, total, width)][:rows]
    return Frame(lines, height, total)


def _tabs(session: TopSession, reading: PaneReading, width: int) -> Text:
    """Return the line of tabs, with the time of what is shown at its end."""
    line = Text(no_wrap=True)
    for number, pane in enumerate(session.panes):
        if number:
            line.append(" ")
        line.append(f"{number + 1} {pane.title}", "reverse" if number == session.shown else "")
    clock = "" if reading.at is None else time.strftime("%H:%M:%S", time.localtime(reading.at))
    space = width - line.cell_len - len(clock)
    if clock and space > 0:
        line.append(" " * space + clock, "dim")
    line.truncate(width)
    return line


def _foot(session: TopSession, height: int, total: int, width: int) -> Text:
    """Return the line of keys, or of the name that is being typed."""
    pane, state = session.pane, session.state
    if session.typing is not None:
        line = Text.assemble(
            "name with: ", (session.typing, "bold"), ("▏", "blink"), ("  enter, escape", "dim")
        )
        line.truncate(width)
        return line
    parts = []
    if total > height:
        parts.append(f"{state.first + 1:,}-{min(state.first + height, total):,} of {total:,}")
    # The rest of a line that is too long is cut: what is easily guessed comes last.
    parts += ["q quit", "tab"]
    if pane.sorts:
        parts.append("s sort")
    if pane.searches:
        parts.append(f"/{one_line(state.search)}" if state.search else "/ search")
    if total > height:
        parts.append("↑ ↓ PgUp PgDn")
    line = Text("  ".join(parts), "dim", no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line
