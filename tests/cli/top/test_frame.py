"""The whole screen: as many lines as it has, none too long, the head first and the keys last."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

from cli.top.test_session import Still
from roost.cli.top.frame import PaneReading, frame
from roost.cli.top.panes.columns import PaneColumn
from roost.cli.top.panes.pane import TableView
from roost.cli.top.session import TopSession

NAMES = st.text(max_size=80)


def table(rows: Sequence[Sequence[str]], all_rows: int | None = None, first: int = 0) -> TableView:
    columns = (PaneColumn("name", ends=True), PaneColumn("state", 8), PaneColumn("used", 5, True, 1))
    return TableView(Text("a summary"), columns, rows, first, all_rows, "there are none")


@example(20, 4, [], "000000000\U00018cd6𠀀", False)  # an escape, and a character that takes two columns
@given(
    st.integers(1, 120),
    st.integers(1, 40),
    st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=50),
    st.none() | NAMES,
    st.booleans(),
)
def test_every_screen_is_filled_and_no_line_is_too_long(
    width: int, rows: int, cells: list[tuple[str, str, str]], problem: str | None, read: bool
) -> None:
    session = TopSession([Still("hosts"), Still("cells")])
    reading = PaneReading(table(cells) if read else None, problem, 1.0)
    drawn = frame(session, reading, width, rows)
    assert len(drawn.lines) == rows
    for line in drawn.lines:
        assert line.cell_len <= width or width < 20
        assert line.plain.isprintable()


def test_the_head_has_tabs_summary_and_titles_and_the_foot_has_keys() -> None:
    session = TopSession([Still("hosts"), Still("cells")])
    rows = [(f"host-{number}", "up", "5%") for number in range(40)]
    lines = [each.plain for each in frame(session, PaneReading(table(rows), None, 1.0), 60, 15).lines]
    assert lines[0].startswith("1 hosts 2 cells ")
    assert lines[1].rstrip() == "a summary"
    assert lines[2].split() == ["name", "state", "used"]
    assert lines[3].split() == ["host-0", "up", "5%"]
    assert lines[13].split() == ["host-10", "up", "5%"]
    assert lines[14] == "1-11 of 40  q quit  tab  s sort  / search  ↑ ↓ PgUp PgDn"


def test_a_problem_stands_above_the_last_rows() -> None:
    session = TopSession([Still("hosts")])
    reading = PaneReading(table([("host-1", "up", "")]), "the scheduler does not answer", 1.0)
    lines = [each.plain.rstrip() for each in frame(session, reading, 60, 15).lines]
    assert "the scheduler does not answer. What is shown is from its" in lines
    assert any(line.startswith("host-1") for line in lines)


def test_nothing_is_said_in_a_sentence_and_rows_that_are_not_loaded_are_dots() -> None:
    session = TopSession([Still("hosts")])
    empty = frame(session, PaneReading(table([]), None, 1.0), 60, 8)
    assert "there are none" in [each.plain for each in empty.lines]
    session.state.first = 90
    far = frame(session, PaneReading(table([("host-0", "up", "")], 100), None, 1.0), 60, 8)
    assert [each.plain for each in far.lines[3:7]] == ["…"] * 4


@pytest.mark.parametrize(("width", "titles"), [(80, ["name", "state", "used"]), (30, ["name", "state"])])
def test_columns_leave_a_narrow_screen_before_names_do(width: int, titles: list[str]) -> None:
    head = table([("host-1", "up", "5%")]).head(width)[-1]
    assert head.plain.split() == titles


def test_the_end_of_a_long_name_is_kept() -> None:
    [line] = table([("compute-0123456789-rack-7-host-42", "up", "")]).lines(30, 0, 1)
    assert line.plain.split() == ["…6789-rack-7-host-42", "up"]
