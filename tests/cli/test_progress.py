"""Progress: nothing for short commands, lines or a bar for long ones, and never on standard output."""

import io
import json
import time

import click
import pytest
from rich.console import Console

from roost.cli import progress as module
from roost.cli.main import main
from roost.cli.progress import AFTER_SECONDS, LINE_SECONDS, Bar, Lines, ProgressMeter, no_progress, progress
from support.waiting import Deadline


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_short_command_shows_nothing() -> None:
    clock, lines = Clock(), list[str]()
    display = Lines(ProgressMeter("import", clock), lines.append, clock)
    clock.now += AFTER_SECONDS - 0.01
    display.tick()
    display.close()
    assert lines == []


def test_a_line_every_few_seconds_and_one_at_the_end() -> None:
    clock, lines = Clock(), list[str]()
    meter = ProgressMeter("start", clock)
    meter.begin("import", "consumers", total=50_000)
    display = Lines(meter, lines.append, clock)
    for second in range(1, 13):
        clock.now = 1000.0 + second
        meter.count(second * 1000, 50_000)
        display.tick()
    display.close()
    assert lines == [
        "import: 2,000 of 50,000 consumers (4 %), 1,000/s, 2 s (about 48 s left)",
        "import: 7,000 of 50,000 consumers (14 %), 1,000/s, 7 s (about 43 s left)",
        "import: 12,000 of 50,000 consumers (24 %), 1,000/s, 12 s (about 38 s left)",
        "import: 12,000 of 50,000 consumers (24 %), 1,000/s, 12 s (about 38 s left)",
    ]
    assert LINE_SECONDS == 5.0


def test_a_step_that_was_done_in_part_has_the_rate_of_the_rest() -> None:
    clock = Clock()
    meter = ProgressMeter("replay", clock)
    meter.begin("replay", "bins", 900, 1000)
    clock.now += 10
    meter.show("replay", "bins", 950, 1000, "7 placed")
    assert meter.text() == "replay: 950 of 1,000 bins (95 %), 5.0/s, 10 s (about 10 s left) - 7 placed"


def test_a_step_without_numbers_shows_its_seconds() -> None:
    clock = Clock()
    meter = ProgressMeter("upgrade", clock)
    clock.now += 61
    assert meter.text() == "upgrade: 61 s"


def test_a_new_step_begins_anew_and_bytes_are_megabytes() -> None:
    clock = Clock()
    meter = ProgressMeter("backup", clock)
    clock.now += 30
    meter.show("copying api", "bytes", 4_000_000, None)
    clock.now += 2
    meter.show("copying api", "bytes", 24_000_000, None)
    assert meter.text() == "copying api: 24.0 MB, 10.0 MB/s, 2 s"


def test_on_a_terminal_a_bar_appears_after_two_seconds() -> None:
    clock, file = Clock(), io.StringIO()
    meter = ProgressMeter("verify", clock)
    bar = Bar(meter, Console(file=file, force_terminal=True, width=120), clock)
    bar.tick()
    assert file.getvalue() == ""
    clock.now += AFTER_SECONDS
    meter.begin("verify", "commits", total=20)
    clock.now += 1
    meter.count(10, 20)
    bar.tick()
    bar.close()
    assert "verify: 10 of 20 commits (50 %), 10/s, 1 s" in file.getvalue()


def test_a_bar_of_a_short_command_never_appears() -> None:
    clock, file = Clock(), io.StringIO()
    bar = Bar(ProgressMeter("verify", clock), Console(file=file, force_terminal=True), clock)
    bar.tick()
    bar.close()
    assert file.getvalue() == ""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command count as a long one."""
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)


def test_a_command_turns_off_what_its_group_has_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, shown = Clock(), list[str]()

    @click.group
    @click.pass_context
    def group(context: click.Context) -> None:
        context.with_resource(progress("group", clock))

    @group.command
    @no_progress
    def long() -> None:
        clock.now += AFTER_SECONDS
        until = Deadline(0.3 if off else 30)
        while not until.passed and not (shown and shown[-1]):
            time.sleep(0.01)
            shown.append(capsys.readouterr().err)

    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    off = True
    group.main(["long", "--no-progress"], standalone_mode=False)
    assert set(shown) == {""}
    off = False
    group.main(["long"], standalone_mode=False)
    assert shown[-1].startswith("roost: group: ")


def run_replay(folder, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    command = ["roost", "replay", "demo", "--bins", "3", "--hosts", "4", "--no-plot", "--json"]
    monkeypatch.setattr("sys.argv", [*command, "--data-dir", str(folder), *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0


def test_json_on_standard_output_stays_json_and_progress_can_be_turned_off(
    at_once: None, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_replay(tmp_path / "shown", monkeypatch)
    out, err = capsys.readouterr()
    assert json.loads(out)["differences"] == []
    assert err.startswith("roost: ")
    assert "bins" in err or "commits" in err
    run_replay(tmp_path / "not-shown", monkeypatch, "--no-progress")
    out, err = capsys.readouterr()
    assert json.loads(out)["differences"] == []
    assert err == ""
