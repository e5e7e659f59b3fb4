"""Reports are printed, kept as JSON, and put into a page."""

import msgspec
import pytest

from roost.bench.errors import BenchError
from roost.bench.markdown import render_report, replace_report, report_names
from roost.bench.report import BenchReport, Column, format_cell, report
from roost.bench.suite import read_report

COLUMNS = (Column("hosts", "hosts", ","), Column("p50 ms", "ours.p50", ".1f"), Column("failed", "failed"))
PEER = Column("upstream ms", "peer.p50", ".0f")


class Inner(msgspec.Struct):
    p50: float


class Row(msgspec.Struct):
    hosts: int
    ours: Inner
    failed: dict[str, int]
    peer: Inner | None = None


def made(*rows: Row, **more) -> BenchReport:
    return report("q", "A title", (*COLUMNS, PEER), rows, {"clients": 3}, **more)


def test_a_column_that_nothing_stands_in_is_not_shown():
    assert [column.title for column in made(Row(1, Inner(2.0), {})).visible_columns()] == ["hosts", "p50 ms"]
    with_peer = made(Row(1, Inner(2.0), {}), Row(2, Inner(2.0), {"500": 1}, Inner(7.0)))
    assert [column.title for column in with_peer.visible_columns()] == [
        "hosts",
        "p50 ms",
        "failed",
        "upstream ms",
    ]


def test_a_table_in_a_page():
    found = made(Row(1_000, Inner(2.04), {}), Row(2, Inner(3.0), {"500": 1_000}, Inner(7.0)), wrong=["a sum"])
    assert render_report(found).splitlines() == [
        "| hosts | p50 ms | failed | upstream ms |",
        "|---|---|---|---|",
        "| 1,000 | 2.0 | – | – |",
        "| 2 | 3.0 | 500: 1,000 | 7 |",
        "",
        "*clients 3*",
        "",
        "**Wrong: a sum**",
    ]


def test_a_lower_bound_is_told():
    column = Column("ms", "peer.p50", ".0f", "late")
    assert format_cell({"peer": {"p50": 20.0}, "late": True}, column) == "≥ 20"
    assert format_cell({"peer": {"p50": 20.0}, "late": False}, column) == "20"
    assert format_cell({"peer": None, "late": True}, column) == "–"


def test_a_page_keeps_all_but_what_is_replaced():
    page = "# Title\n<!-- bench one -->\nold\n<!-- /bench -->\ntext\n<!-- bench two -->\n<!-- /bench -->\n"
    assert report_names(page) == ["one", "two"]
    once = replace_report(page, "one", "new")
    assert once == page.replace("old", "new")
    assert replace_report(once, "one", "new") == once


@pytest.mark.parametrize("page", ["nothing here", "<!-- bench one -->\nno end"])
def test_a_page_without_room_says_what_it_needs(page: str):
    with pytest.raises(BenchError, match="it needs a line <!-- bench one -->"):
        replace_report(page, "one", "new")


def test_a_report_comes_back_from_its_file(tmp_path):
    found = made(Row(1, Inner(2.0), {"500": 1}, Inner(3.0)), notes=["a note"])
    path = tmp_path / "q.json"
    path.write_bytes(msgspec.json.encode(found))
    assert read_report(path) == found


def test_a_file_that_is_no_report_is_named(tmp_path):
    path = tmp_path / "q.json"
    path.write_text("{}")
    with pytest.raises(BenchError, match=f"{path} is not the result of a benchmark"):
        read_report(path)
