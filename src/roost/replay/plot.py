"""Plots a replay over virtual time: the use of each resource class, and the outcomes of instances."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roost.replay.errors import PlotUnavailable
from roost.replay.samples import UsageSamples
from roost.replay.workload import BIN_SECONDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOUR: Final = 3600

# Source: the palette of Okabe and Ito, whose colours differ with every common kind of colour blindness.
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
BLACK: Final = "#000000"
PALE: Final = "#A9D5F3"
"""A tint of SKY for the largest area, on which the small ones stay visible."""
_USE_COLOURS: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
_INK: Final = "#333333"
_GRID: Final = "#DDDDDD"

MAX_COLUMNS: Final = 1200
"""Columns of counts in 1,600 pixels. More bins than that are summed into wider columns."""


def check_plotting() -> None:
    """Check that plots can be drawn. Commands call this before they measure for hours.

    Raises:
        PlotUnavailable: matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise PlotUnavailable(
            f"plots need matplotlib ({error}): install roost[bench], or ask for no plot"
        ) from error


def draw(samples: UsageSamples, path: Path, title: str = "") -> None:
    """Write the plot to ``path`` as a PNG of 1600 × 900 pixels.

    Raises:
        ValueError: there are no samples.
    """
    if not samples.seconds:
        raise ValueError("there are no samples to draw")
    # The import takes most of a second, so that only commands that draw pay for it.
    from matplotlib.figure import Figure

    # A figure without pyplot has no global state and needs no display: Agg draws its PNG.
    figure = Figure(figsize=(16, 9), dpi=100)
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    use, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_use(use, samples)
    _draw_counts(counts, samples)
    _style(use)
    _style(counts, stacked=True)
    counts.set_xlabel("virtual time, hours")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, color=_INK)
    figure.savefig(path, format="png", dpi=100)


def _draw_use(axes: "Axes", samples: UsageSamples) -> None:
    # A bin's use lasts until the bin ends.
    until = samples.seconds[-1] + _bin_seconds(samples.seconds)
    hours = (np.asarray([*samples.seconds, until]) - samples.seconds[0]) / HOUR
    for number, (resource_class, shares) in enumerate(samples.shares.items()):
        colour = _USE_COLOURS[number % len(_USE_COLOURS)]
        percent = 100 * np.asarray([*shares, shares[-1]])
        label = f"{resource_class}, peak {percent.max():.0f} %"
        axes.plot(hours, percent, color=colour, linewidth=1.3, drawstyle="steps-post", label=label)
    axes.set_ylabel("in use, % of capacity")
    axes.set_ylim(0, 105)
    axes.set_yticks(range(0, 101, 20))


def _draw_counts(axes: "Axes", samples: UsageSamples) -> None:
    width = column_seconds(samples.seconds)
    column = (np.asarray(samples.seconds) - samples.seconds[0]) // width
    edges = np.arange(column[-1] + 2) * (width / HOUR)
    # The rare outcomes are at the bottom, where their height can be read off the axis.
    base = np.zeros(len(edges) - 1)
    for name, colour, counts in (
        ("failed", BLACK, samples.failed),
        ("refused", VERMILION, samples.refused),
        ("placed", PALE, samples.placed),
    ):
        top = base + _summed(column, counts)
        axes.stairs(
            top, edges, baseline=base, fill=True, color=colour, linewidth=0, label=f"{name}, {sum(counts):,}"
        )
        base = top
    axes.set_ylabel(f"instances in {duration_text(width)}")
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", integer=True)


def column_seconds(seconds: Sequence[int]) -> int:
    """Return the virtual seconds of one column of counts: a bin, or several if there are too many bins."""
    width = _bin_seconds(seconds)
    bins = (seconds[-1] - seconds[0]) // width + 1
    return width * -(-bins // MAX_COLUMNS)


def _bin_seconds(seconds: Sequence[int]) -> int:
    """Return the smallest distance of two bins in seconds; bins without requests are missing."""
    return int(np.diff(seconds).min()) if len(seconds) > 1 else BIN_SECONDS


def _summed(column: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.float64]:
    return np.bincount(column, weights=counts).astype(np.float64)


def duration_text(seconds: int) -> str:
    """Return a duration in the largest unit that divides it: hours, minutes or seconds."""
    for unit, length in (("h", HOUR), ("min", 60)):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _style(axes: "Axes", stacked: bool = False) -> None:
    """Remove frames, and put the legend beside the data; with ``stacked`` in the order of the stack."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.tick_params(colors=_INK)
    axes.grid(axis="y", color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(x=0.005)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.005, 1.0),
            frameon=False,
            borderaxespad=0.0,
            labelcolor=_INK,
            reverse=stacked,
        )
