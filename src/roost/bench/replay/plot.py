"""Plots a replay over virtual time: use of each resource class, its spread over hosts, and outcomes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roost.bench.errors import PlotUnavailable
from roost.bench.replay.state import SPREAD_PERCENTILES, UsageSamples
from roost.bench.replay.workload import BIN_SECONDS

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
_PALER: Final = "#DCEEFB"
_USE_COLOURS: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
INK: Final = "#333333"
_GRID: Final = "#DDDDDD"

MAX_COLUMNS: Final = 1200
"""Most columns of counts in 1,600 pixels. More bins are summed into wider columns."""


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


def draw(samples: UsageSamples, path: Path, title: str = "", in_order: bool = False) -> None:
    """Write the plot to ``path`` as a PNG of 1600 × 900 pixels.

    ``in_order``: the seconds of the samples are positions in the order of arrival, not times.

    Raises:
        ValueError: there are no samples.
    """
    if not samples.seconds:
        raise ValueError("there are no samples to draw")
    # The import takes most of a second; only commands that draw pay for it.
    from matplotlib.figure import Figure

    # A figure without pyplot has no global state and needs no display: Agg draws its PNG.
    figure = Figure(figsize=(16, 9), dpi=100)
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    use, spread, counts = figure.subplots(3, 1, sharex=True, height_ratios=(5, 4, 4))
    scale = scale_of(samples, in_order)
    _draw_use(use, samples, scale)
    _draw_spread(spread, samples, scale)
    _draw_counts(counts, samples, scale, in_order)
    style_axes(use)
    style_axes(spread)
    style_axes(counts, stacked=True)
    counts.set_xlabel(scale.label)
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, color=INK)
    figure.savefig(path, format="png", dpi=100)


class AxisScale(NamedTuple):
    """The unit of the horizontal axis in seconds of the samples, and the label of the axis."""

    unit: int
    label: str


def scale_of(samples: UsageSamples, in_order: bool) -> AxisScale:
    """Return the scale whose unit is the largest of which the samples span several."""
    if in_order:
        return AxisScale(1, "requests, in order of arrival")
    span = samples.seconds[-1] - samples.seconds[0]
    for unit, name in ((24 * HOUR, "days"), (HOUR, "hours"), (60, "minutes")):
        if span >= 4 * unit:
            return AxisScale(unit, f"virtual time, {name}")
    return AxisScale(1, "virtual time, seconds")


def edges_of(samples: UsageSamples, scale: AxisScale) -> NDArray[np.float64]:
    """Return the start of each bin and the end of the last one. A bin's use lasts until the bin ends."""
    until = samples.seconds[-1] + _bin_seconds(samples.seconds)
    return (np.asarray([*samples.seconds, until]) - samples.seconds[0]) / scale.unit


def _draw_use(axes: "Axes", samples: UsageSamples, scale: AxisScale) -> None:
    edges = edges_of(samples, scale)
    most = 0.0
    for number, (resource_class, shares) in enumerate(samples.shares.items()):
        colour = _USE_COLOURS[number % len(_USE_COLOURS)]
        percent = 100 * np.asarray([*shares, shares[-1]])
        most = max(most, float(percent.max()))
        label = f"{resource_class}, peak {percent_text(percent.max())}"
        axes.plot(edges, percent, color=colour, linewidth=1.3, drawstyle="steps-post", label=label)
    axes.set_ylabel("in use, % of capacity")
    _scale_percent(axes, most)


def _draw_spread(axes: "Axes", samples: UsageSamples, scale: AxisScale) -> None:
    """Draw the spread of the use of the fullest resource class over the hosts that have it."""
    if not samples.shares:
        return
    fullest = max(samples.shares, key=lambda each: max(samples.shares[each]))
    percent = 100 * np.asarray([*samples.spread[fullest], samples.spread[fullest][-1]])
    edges = edges_of(samples, scale)
    last = len(SPREAD_PERCENTILES) - 1
    for low, colour in ((0, _PALER), (1, PALE)):
        lower, upper = SPREAD_PERCENTILES[low], SPREAD_PERCENTILES[last - low]
        axes.fill_between(
            edges,
            percent[:, low],
            percent[:, last - low],
            step="post",
            color=colour,
            linewidth=0,
            label=f"{upper - lower} % of hosts",
        )
    axes.plot(
        edges, percent[:, last // 2], color=BLUE, linewidth=1.3, drawstyle="steps-post", label="median host"
    )
    axes.set_ylabel(f"{fullest} of a host, %")
    _scale_percent(axes, float(percent.max()))


def _draw_counts(axes: "Axes", samples: UsageSamples, scale: AxisScale, in_order: bool) -> None:
    width = column_seconds(samples.seconds)
    column = (np.asarray(samples.seconds) - samples.seconds[0]) // width
    edges = np.arange(column[-1] + 2) * (width / scale.unit)
    # Rare outcomes are at the bottom, where their height can be read off the axis.
    base = np.zeros(len(edges) - 1)
    first = [placed - other for placed, other in zip(samples.placed, samples.on_alternate, strict=True)]
    for name, colour, counts in (
        ("failed", BLACK, samples.failed),
        ("refused", VERMILION, samples.refused),
        ("placed on an alternate", GREEN, samples.on_alternate),
        ("placed at once", PALE, first),
    ):
        top = base + _summed(column, counts)
        axes.stairs(
            top, edges, baseline=base, fill=True, color=colour, linewidth=0, label=f"{name}, {sum(counts):,}"
        )
        base = top
    each = f"each {width:,}" if in_order else duration_text(width)
    axes.set_ylabel(f"instances in {each}")
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", integer=True)


def _scale_percent(axes: "Axes", most: float) -> None:
    """Let the axis end above the greatest percentage, and at 100 or more if half is in use."""
    top = 105.0 if 50 <= most <= 100 else max(1.1 * most, 0.1)
    axes.set_ylim(0, top)
    if top == 105.0:
        axes.set_yticks(range(0, 101, 20))


def percent_text(percent: float) -> str:
    """Return a percentage with a decimal place where it is below ten."""
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"


def column_seconds(seconds: Sequence[int]) -> int:
    """Return the virtual seconds of one column of counts: one bin, or several if there are too many."""
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


def style_axes(axes: "Axes", stacked: bool = False) -> None:
    """Remove frames, and put the legend beside the data; with ``stacked`` in the order of the stack."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK)
    axes.grid(axis="y", color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(x=0.005)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.005, 1.0),
            frameon=False,
            borderaxespad=0.0,
            labelcolor=INK,
            reverse=stacked,
        )
