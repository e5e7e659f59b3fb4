"""Lists as HTML: what is the same for each request is made once, and rows cost no more than their cells."""

import sys
from types import FrameType

import htpy as h
import pytest

from roost.dashboard.html.lists import cell, suggested_field, suggestions, table

COLUMNS = 8


def calls(rows: int) -> int:
    """The function calls in which a table of so many rows becomes text inside other elements."""
    made = [h.tr[[cell("Name", h.bdi[f"host-{row}"]) for _ in range(COLUMNS)]] for row in range(rows)]
    count = 0

    def note(frame: FrameType, event: str, of: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        str(h.main[h.div[h.section[table("Hosts", ["Name"] * COLUMNS, made)]]])
    finally:
        sys.setprofile(before)
    return count


def test_a_cell_is_rendered_through_the_elements_of_its_row_alone():
    # The text of an element passes through a generator of each element around it: 17 of them on a page.
    assert (calls(40) - calls(20)) / (20 * COLUMNS) < 50


def test_a_cell_of_one_part_is_that_part_and_of_several_a_block():
    assert str(cell("A", "b")) == '<td data-label="A">b</td>'
    assert str(cell("A", None)) == '<td data-label="A"></td>'
    assert str(cell("A", "b", None, h.i["c"])) == '<td data-label="A"><div>b<i>c</i></div></td>'


def test_suggestions_are_made_once_as_long_as_they_are_the_same():
    names = tuple(f"rack-{number}" for number in range(100))
    shown = {str(suggested_field("rack", "Rack", value, [*names])) for value in ("a", "b", "c")}
    before = suggestions.cache_info()
    assert len(shown) == 3
    assert all('<option value="rack-99"></option></datalist>' in each for each in shown)
    suggested_field("rack", "Rack", "d", [*names])
    assert suggestions.cache_info().misses == before.misses


@pytest.mark.parametrize("name", ["<b>", '"', "&amp;"])
def test_suggestions_are_text(name: str):
    assert str(h.option(value=name)) in str(suggested_field("rack", "Rack", None, [name]))
