"""Reports are printed, kept as JSON, and put into a page."""

from typing import Any

import msgspec
import pytest

from roost.bench.errors import BenchError
from roost.bench.goals import Calibration, Goal
from roost.bench.report import (
    BenchReport,
    BenchTable,
    Column,
    format_cell,
    read_report,
    render_report,
    replace_report,
    report_names,
)

COLUMNS = (Column("hosts", "hosts", ","), Column("p50 ms", "ours.p50", ".1f"), Column("failed", "failed"))
PEER = Column("upstream ms", "peer.p50", ".0f")


class Inner(msgspec.Struct):
    p50: float


def row(hosts: int, ours: Inner, failed: dict[str, int], **more: Inner) -> dict[str, Any]:
    return {"hosts": hosts, "ours": ours, "failed": failed, **more}


def made(*rows: dict[str, Any], goals: tuple[Goal, ...] = (), **more) -> BenchReport:
    return BenchTable("q", "A title", (*COLUMNS, PEER), goals).report(rows, {"clients": 3}, **more)


def test_a_column_that_nothing_stands_in_is_not_shown():
    assert [column.title for column in made(row(1, Inner(2.0), {})).visible_columns()] == ["hosts", "p50 ms"]
    with_peer = made(row(1, Inner(2.0), {}), row(2, Inner(2.0), {"500": 1}, peer=Inner(7.0)))
    assert [column.title for column in with_peer.visible_columns()] == [
        "hosts",
        "p50 ms",
        "failed",
        "upstream ms",
    ]


def test_a_table_in_a_page():
    found = made(
        row(1_000, Inner(2.04), {}), row(2, Inner(3.0), {"500": 1_000}, peer=Inner(7.0)), wrong=["a sum"]
    )
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
    found = made(row(1, Inner(2.0), {"500": 1}, peer=Inner(3.0)), notes=["a note"])
    path = tmp_path / "q.json"
    path.write_bytes(msgspec.json.encode(found))
    assert read_report(path) == found


def test_a_file_that_is_no_report_is_named(tmp_path):
    path = tmp_path / "q.json"
    path.write_text("{}")
    with pytest.raises(BenchError, match=f"{path} is not the result of a benchmark"):
        read_report(path)


def test_a_field_that_no_column_shows_is_an_error():
    with pytest.raises(ValueError, match="q: no column shows unknown"):
        made({"hosts": 1, "unknown": 2})


def test_a_field_that_a_row_leaves_out_is_none():
    [only] = made({"hosts": 1}).rows
    assert only == {"hosts": 1, "ours": None, "failed": None, "peer": None}


def test_goals_of_the_rows_are_told():
    goal = Goal(
        workload="a thing of 1,000 hosts",
        of={"hosts": 1_000, "clients": 3},
        field="ours.p50",
        unit="ms",
        at_most=2.5,
        calibrations=(Calibration((2.0,)),),
    )
    rows = [row(hosts, Inner(value), {}) for hosts, value in ((1_000, 2.04), (1_000, 3.0), (2, 9.0))]
    assert made(*rows, goals=(goal,)).notes == (
        "Goal of a thing of 1,000 hosts: at most 2.5 ms: reached with 2.04.",
        "Goal of a thing of 1,000 hosts: at most 2.5 ms: not reached with 3.",
    )
