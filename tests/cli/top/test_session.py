"""The state of the screen under any keys: rows stay within the pane, and queries cover what is shown."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from roost.cli.top.panes.pane import PaneQuery, PaneView
from roost.cli.top.service_reader import ServiceReader
from roost.cli.top.session import MOST_SEARCH, TopSession


class Still:
    """A pane that is never read."""

    searches = True

    def __init__(self, title: str, pages: bool = True, sorts: Sequence[str] = ("used", "name")) -> None:
        self.title = title
        self.key = title[0]
        self.pages = pages
        self.sorts = sorts

    def read(self, services: ServiceReader, query: PaneQuery) -> PaneView:
        raise AssertionError


def session() -> TopSession:
    return TopSession([Still("all", pages=False, sorts=()), Still("hosts"), Still("cells")])


SPECIAL = ("up", "down", "page up", "page down", "home", "end", "left", "right", "tab", "back tab", "resized")
KEYS = st.sampled_from([*SPECIAL, "escape", "enter", "backspace", *" jk1234hs/xä"])


@given(st.lists(st.tuples(KEYS, st.integers(1, 50), st.integers(0, 500)), max_size=60))
def test_rows_stay_within_the_pane_and_queries_cover_the_screen(
    presses: list[tuple[str, int, int]],
) -> None:
    here = session()
    asked = here.query(1)
    for key, height, total in presses:
        here.press(key, height, total)
        here.clamp(height, total)
        assert 0 <= here.state.first <= max(total - height, 0)
        assert not here.ended
        assert len(here.typing or "") <= MOST_SEARCH
        if not here.has(asked, height):
            asked = here.query(height)
        assert here.has(asked, height)
        if here.pane.pages:
            assert asked.first <= here.state.first
            assert here.state.first + height <= asked.first + asked.rows


def test_scrolling_within_what_is_loaded_asks_for_nothing() -> None:
    here = session()
    here.press("2", 10, 1000)
    asked = here.query(10)
    assert asked == PaneQuery(1, 0, 30, "used")
    for _ in range(20):
        here.press("down", 10, 1000)
        assert here.has(asked, 10)
    here.press("down", 10, 1000)
    assert not here.has(asked, 10)
    assert here.query(10).first == 11


def test_each_pane_keeps_its_place_order_and_name() -> None:
    here = session()
    for key in ("h", "page down", "s", "page down", "c", "/", "x", "enter", "1"):
        here.press(key, 11, 1000)
    assert here.query(11) == PaneQuery(0)
    here.press("2", 11, 1000)
    assert (here.state.first, here.query(11).sort) == (10, "name")
    here.press("3", 11, 1000)
    assert here.query(11).search == "x"
    here.press("escape", 11, 1000)
    assert here.query(11).search == ""


def test_q_ends_it_unless_a_name_is_typed() -> None:
    here = session()
    for key in ("h", "/", "q", "backspace", "backspace", "q", "enter"):
        here.press(key, 10, 100)
    assert (here.ended, here.state.search) == (False, "q")
    here.press("q", 10, 100)
    assert here.ended


def test_a_terminal_that_is_gone_ends_it_even_while_typing() -> None:
    here = session()
    for key in ("h", "/", "ended"):
        here.press(key, 10, 100)
    assert here.ended
