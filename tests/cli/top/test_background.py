"""The thread that reads: the newest query, at once, and never more than one at a time."""

import threading
from collections.abc import Sequence

import pytest
from rich.text import Text

from roost.cli.top.background import BackgroundReader
from roost.cli.top.panes.columns import PaneColumn
from roost.cli.top.panes.pane import PaneQuery, TableView
from roost.cli.top.service_reader import ServiceSilent
from support.waiting import patience


class Slow:
    """Readings that the test lets go on one by one. ``read``: the queries that were begun."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.read: list[PaneQuery] = []
        self._outcomes: Sequence[Exception | None] = outcomes
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.woken = threading.Semaphore(0)

    def __call__(self, query: PaneQuery) -> TableView:
        number = len(self.read)
        self.read.append(query)
        self.begun.release()
        assert self.go_on.acquire(timeout=patience(60))
        if number < len(self._outcomes) and (error := self._outcomes[number]) is not None:
            raise error
        return TableView(Text(f"reading {number}"), (PaneColumn("x"),), [])

    def wait_begun(self) -> None:
        assert self.begun.acquire(timeout=patience(60))

    def finish(self) -> None:
        """Let the reading under way end, and wait until it has woken the screen."""
        self.go_on.release()
        assert self.woken.acquire(timeout=patience(60))


def reader(slow: Slow, interval: float = 3600.0) -> BackgroundReader:
    made = BackgroundReader(slow, interval, slow.woken.release)
    made.start()
    return made


def said(background: BackgroundReader, pane: int = 0) -> tuple[str | None, str | None]:
    found = background.reading(pane)
    return (None if found.view is None else found.view.head(60)[0].plain, found.problem)


def test_while_one_reading_lasts_only_the_newest_query_is_kept() -> None:
    slow = Slow()
    background = reader(slow)
    background.ask(PaneQuery(0, first=0))
    slow.wait_begun()
    for first in range(1, 50):
        background.ask(PaneQuery(0, first=first))
    slow.finish()
    slow.wait_begun()
    slow.finish()
    assert [each.first for each in slow.read] == [0, 49]
    assert said(background) == ("reading 1", None)
    background.end()


def test_a_service_that_falls_silent_leaves_its_last_view_and_a_problem() -> None:
    slow = Slow(None, ServiceSilent("it is away"), None)
    background = reader(slow)
    assert said(background) == (None, None)
    every = ("reading 0", None), ("reading 0", "it is away"), ("reading 2", None)
    for first, expected in enumerate(every):
        background.ask(PaneQuery(0, first=first))
        slow.wait_begun()
        slow.finish()
        assert said(background) == expected
    background.end()


def test_each_pane_has_its_own_reading() -> None:
    slow = Slow(None, ServiceSilent("it is away"))
    background = reader(slow)
    for pane in (0, 1):
        background.ask(PaneQuery(pane))
        slow.wait_begun()
        slow.finish()
    assert said(background, 0) == ("reading 0", None)
    assert said(background, 1) == (None, "it is away")
    background.end()


def test_it_is_read_again_after_the_interval() -> None:
    slow = Slow()
    background = reader(slow, interval=0.01)
    background.ask(PaneQuery(0))
    for _ in range(3):
        slow.wait_begun()
        slow.finish()
    background.end()
    slow.go_on.release()


def test_a_defect_is_raised_where_the_screen_is_drawn() -> None:
    slow = Slow(RuntimeError("a defect"))
    background = reader(slow)
    background.ask(PaneQuery(0))
    slow.wait_begun()
    slow.finish()
    with pytest.raises(RuntimeError, match="a defect"):
        background.reading(0)
