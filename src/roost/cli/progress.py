"""Progress of long commands: a bar on a terminal, else a line every few seconds, on standard error.

Commands that end within two seconds show nothing. Standard output, with its JSON, is never touched.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress

AFTER_SECONDS = 2.0
"""Seconds of a command before it shows progress."""

LINE_SECONDS = 5.0
"""Seconds between two lines if standard error is not a terminal."""

TICK_SECONDS = 0.2
"""Seconds between two changes of the bar."""

_OFF = "roost.no_progress"

Clock = Callable[[], float]
F = TypeVar("F", bound=Callable[..., Any])


def _turn_off(context: click.Context, _: click.Parameter, off: bool) -> None:
    if off:
        context.meta[_OFF] = True


def no_progress(command: F) -> F:
    """Add the option --no-progress to a command."""
    option = click.option(
        "--no-progress", is_flag=True, expose_value=False, callback=_turn_off, help="Show no progress."
    )
    return option(command)


class ProgressMeter:
    """The progress of a command: its current step, the part of it that is done, and the rate.

    ``clock`` returns seconds. A rate counts from the start of the step.
    """

    def __init__(self, step: str, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.begun = clock()
        self.begin(step)

    def begin(self, step: str, unit: str = "", done: int = 0, total: int | None = None) -> None:
        """Begin a step. ``done``: the part of it that is done already."""
        self.step, self.unit, self.done, self.total = step, unit, done, total
        self._first, self._since = done, self._clock()
        self.detail = ""

    def show(self, step: str, unit: str, done: int, total: int | None, detail: str = "") -> None:
        """Set the done part of a step, and begin the step if it is a new one."""
        if step != self.step or unit != self.unit:
            # When the first part began is not known.
            self.begin(step, unit, done, total)
        self.done, self.total, self.detail = done, total, detail

    def count(self, done: int, total: int | None) -> None:
        """Set the done part of the current step."""
        self.done, self.total = done, total

    def text(self) -> str:
        """Return the progress as a line: step, numbers, rate, and seconds in the step."""
        done, total = self.done, self.total
        seconds = self._clock() - self._since
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        parts = [f"{self.step}:"]
        if done or total:
            of = f" of {_amount(total, self.unit)}" if total else ""
            share = f" ({100 * done // total} %)" if total else ""
            parts.append(f"{_amount(done, self.unit)}{of}{_named(self.unit)}{share},")
        if rate > 0:
            parts.append(f"{_rate(rate, self.unit)},")
        parts.append(f"{seconds:.0f} s")
        if rate > 0 and total and total > done:
            parts.append(f"(about {(total - done) / rate:.0f} s left)")
        if self.detail:
            parts.append(f"- {self.detail}")
        return " ".join(parts)


class Display(Protocol):
    """Shows a meter."""

    def tick(self) -> None:
        """Show the meter if it is time."""

    def close(self) -> None:
        """Show the meter for the last time, if it was shown at all."""


class Lines:
    """Shows a meter as a line every few seconds. ``write`` prints a line."""

    def __init__(
        self, meter: ProgressMeter, write: Callable[[str], None], clock: Clock = time.monotonic
    ) -> None:
        self._meter = meter
        self._write = write
        self._clock = clock
        self._next = meter.begun + AFTER_SECONDS
        self._shown = False

    def tick(self) -> None:
        now = self._clock()
        if now >= self._next:
            self._next = now + LINE_SECONDS
            self._shown = True
            self._write(self._meter.text())

    def close(self) -> None:
        if self._shown:
            self._write(self._meter.text())


class Bar:
    """Shows a meter as a moving bar on a terminal."""

    def __init__(self, meter: ProgressMeter, console: Console, clock: Clock = time.monotonic) -> None:
        self._meter = meter
        self._clock = clock
        self._bar = RichProgress(
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
        )
        self._task: TaskID | None = None

    def tick(self) -> None:
        if self._task is None:
            if self._clock() < self._meter.begun + AFTER_SECONDS:
                return
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
        self._bar.update(
            self._task, description=self._meter.text(), completed=self._meter.done, total=self._meter.total
        )
        self._bar.refresh()

    def close(self) -> None:
        if self._task is not None:
            self.tick()
            self._bar.stop()


@contextmanager
def progress(step: str, clock: Clock = time.monotonic) -> Iterator[ProgressMeter]:
    """Show the progress of a command while the block runs, unless --no-progress is given."""
    meter = ProgressMeter(step, clock)
    context = click.get_current_context(silent=True)

    def shown() -> bool:
        # A group shows the progress of its commands before their options are read.
        return context is None or not context.meta.get(_OFF)

    console = Console(stderr=True)
    display: Display = Bar(meter, console, clock) if console.is_terminal else Lines(meter, _print, clock)
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(TICK_SECONDS):
            if shown():
                display.tick()

    ticking = threading.Thread(target=run, name="progress", daemon=True)
    ticking.start()
    try:
        yield meter
    finally:
        ended.set()
        ticking.join()
        display.close()


def _print(line: str) -> None:
    print(f"roost: {line}", file=sys.stderr, flush=True)


def _amount(number: int, unit: str) -> str:
    return f"{number / 1e6:,.1f}" if unit == "bytes" else f"{number:,}"


def _named(unit: str) -> str:
    return {"": "", "bytes": " MB"}.get(unit, f" {unit}")


def _rate(rate: float, unit: str) -> str:
    if unit == "bytes":
        return f"{rate / 1e6:,.1f} MB/s"
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:,.1f}/s"
