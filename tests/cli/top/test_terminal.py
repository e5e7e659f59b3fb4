"""`roost top` on a real pseudo terminal of 60 columns and 15 rows: what stays, what scrolls, how it ends."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import ROOST, RoostUp
from support.terminals import ScreenOfProgram

PANES = Path(__file__).with_name("panes_to_show.py")

DOWN, UP, PAGE_DOWN, PAGE_UP, HOME, END = "\x1b[B", "\x1b[A", "\x1b[6~", "\x1b[5~", "\x1b[H", "\x1b[F"
RIGHT, BACK_TAB, ENTER, ESCAPE, CTRL_C, CTRL_Z = "\x1b[C", "\x1b[Z", "\r", "\x1b", "\x03", "\x1a"


def panes(kind: str = "rows", columns: int = 60, rows: int = 15) -> ScreenOfProgram:
    """A program with panes that need no service."""
    return ScreenOfProgram([sys.executable, PANES, kind], columns, rows)


def ended_well(screen: ScreenOfProgram, status: int) -> None:
    """The program ends with a status, and the terminal is as it was before."""
    assert screen.wait() == status, screen.lines
    assert screen.mode == screen.before
    assert screen.shown.rindex("\x1b[?1049l") > screen.shown.rindex("\x1b[?1049h"), "the screen was not left"
    assert screen.shown.rindex("\x1b[?25h") > screen.shown.rindex("\x1b[?25l"), "the cursor is hidden"


def test_the_head_stays_while_rows_scroll() -> None:
    with panes() as screen:
        lines = screen.wait_for("row 10")
        assert len(lines) == 15
        assert all(len(line) <= 60 for line in lines)
        head = lines[:3]
        assert head[0].startswith("1 first 2 second ")
        assert [line.split() for line in head[1:]] == [["first", "with", "''"], ["column"]]
        for keys, first in (
            (DOWN, 1),
            (DOWN * 3, 4),
            (UP, 3),
            (PAGE_DOWN, 13),
            (" ", 23),
            (PAGE_UP, 13),
            (END, 989),
            (PAGE_DOWN, 989),
            ("k", 988),
            (HOME, 0),
            (UP, 0),
            ("j", 1),
        ):
            screen.types(keys)
            screen.wait_until(lambda lines, first=first: lines[3].split() == ["row", str(first)], keys)
            assert [line[:50] for line in screen.lines[1:3]] == [line[:50] for line in head[1:]]
            assert screen.lines[13].split() == ["row", str(first + 10)]
            assert screen.lines[14].startswith(f"{first + 1}-{first + 11:,} of 1,000")
        screen.types("q")
        ended_well(screen, 0)


def test_tabs_and_keys_show_another_pane_and_each_keeps_its_place() -> None:
    with panes() as screen:
        screen.wait_for("row 10")
        screen.types(PAGE_DOWN)
        screen.wait_for("row 20")
        for keys, title in (
            ("\t", "second"),
            ("\t", "first"),
            (BACK_TAB, "second"),
            ("f", "first"),
            ("2", "second"),
        ):
            screen.types(keys)
            screen.wait_for(f"{title} with")
        assert screen.lines[3].split() == ["row", "0"]
        screen.types("1")
        screen.wait_for("first with")
        screen.wait_until(lambda lines: lines[3].split() == ["row", "10"])
        screen.types("q")
        ended_well(screen, 0)


def test_a_name_is_searched_and_q_is_a_letter_of_it() -> None:
    with panes() as screen:
        screen.wait_for("row 0")
        screen.types("/quäx\x7f")
        screen.wait_for("name with: quä")
        screen.types(ENTER)
        screen.wait_for("first with 'quä'")
        screen.types("/")
        screen.wait_for("name with: quä")
        screen.types(ESCAPE)
        screen.wait_until(lambda lines: "/quä" in lines[-1])
        screen.types(ESCAPE)
        screen.wait_for("first with ''")
        screen.types("q")
        ended_well(screen, 0)


def test_another_size_of_the_terminal_is_filled_at_once() -> None:
    with panes() as screen:
        screen.wait_for("row 10")
        screen.types(END)
        screen.wait_for("row 999")
        screen.resize(100, 40)
        screen.wait_until(lambda lines: len(lines) == 40 and "row 999" in lines[38])
        screen.resize(30, 6)
        screen.wait_until(lambda lines: len(lines) == 6 and all(len(line) <= 30 for line in lines))
        screen.types("q")
        ended_well(screen, 0)


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 2), (10, 3), (20, 4)])
def test_a_tiny_terminal_is_no_error(columns: int, rows: int) -> None:
    with panes(columns=columns, rows=rows) as screen:
        screen.wait_until(lambda lines: len(lines) == rows)
        screen.types(DOWN + END + "\t")
        screen.resize(60, 15)
        screen.wait_for("second with")
        screen.types("q")
        ended_well(screen, 0)


def test_ctrl_c_ends_it_and_the_terminal_is_as_before() -> None:
    with panes() as screen:
        screen.wait_for("row 10")
        assert screen.mode != screen.before
        screen.types(CTRL_C)
        ended_well(screen, 130)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_the_terminal_is_as_before(number: signal.Signals, status: int) -> None:
    with panes() as screen:
        screen.wait_for("row 10")
        screen.process.send_signal(number)
        ended_well(screen, status)


def test_a_defect_ends_it_and_is_told_on_a_terminal_as_before() -> None:
    with panes("fails") as screen:
        ended_well(screen, 2)
        assert "RuntimeError: a defect" in screen.shown.rpartition("\x1b[?1049l")[2]


def test_a_service_that_does_not_answer_holds_up_no_key() -> None:
    with panes("silent") as screen:
        screen.wait_for("reading ...")
        screen.types("2")
        screen.wait_for("2 second")
        screen.types("q")
        ended_well(screen, 0)


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on() -> None:
    with panes() as screen:
        screen.wait_for("row 10")
        screen.types(CTRL_Z)
        stopped, status = os.waitpid(screen.process.pid, os.WUNTRACED)
        assert (stopped, os.WIFSTOPPED(status)) == (screen.process.pid, True)
        assert screen.mode == screen.before
        screen.shown = ""
        screen.process.send_signal(signal.SIGCONT)
        screen.wait_for("row 10")
        assert screen.mode != screen.before
        screen.types("q")
        ended_well(screen, 0)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoostUp]:
    """A system of 30 hosts in two cells with an instance and a refusal."""
    with RoostUp(tmp_path_factory.mktemp("up"), ["--hosts", "30", "--cells", "2"]) as running:
        running.wait_until_up()
        with running.client() as client:
            for vcpus in (64, 9999):
                body = {"flavor": {"vcpus": vcpus, "memory_mb": 1024, "name": "large"}}
                assert client.post("/v1/instances", json=body).status_code == 202
        yield running


def test_all_views_of_a_real_service(up: RoostUp) -> None:
    url = f"http://127.0.0.1:{up.port}"
    with ScreenOfProgram([ROOST, "top", "--url", url, "--interval", "0.2"]) as screen:
        screen.wait_for("30 hosts")
        for key, title in zip("12345", ("overview", "hosts", "cells", "GPUs", "refusals"), strict=True):
            screen.types(key)
            said = {
                "overview": "MEMORY_MB",
                "hosts": "100%",
                "cells": "cell2",
                "GPUs": "no devices",
                "refusals": "9999 VCPU",
            }
            lines = screen.wait_for(said[title])
            assert lines[0].startswith("1 overview 2 hosts 3 cells 4 GPUs 5 refusals")
            assert len(lines) == 15
            assert max(map(len, lines)) <= 60
        screen.types("h")
        lines = screen.wait_for("30 hosts: 30 up; fullest first")
        screen.types(END)
        screen.wait_for("20-30 of 30")
        screen.types("/0007" + ENTER)
        screen.wait_for("1 host of 30")
        screen.types("q")
        ended_well(screen, 0)


def test_a_service_without_a_scheduler_is_named_in_its_view(up: RoostUp) -> None:
    url = f"http://127.0.0.1:{up.port}"
    nowhere = {"ROOST_PLACEMENT_URL": url, "ROOST_SCHEDULER_URL": "http://127.0.0.1:9"}
    with ScreenOfProgram([ROOST, "top", "--interval", "0.2"], environment=nowhere) as screen:
        screen.wait_for("30 hosts")
        screen.types("h")
        screen.wait_for("the scheduler at http://127.0.0.1:9 cannot be read")
        screen.types("o")
        screen.wait_for("MEMORY_MB")
        screen.types("q")
        ended_well(screen, 0)
