"""The run over virtual time, as one picture: what was in use, and what became of the arrivals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roost.replay.errors import PlotUnavailable
from roost.replay.workload import BIN_SECONDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOUR: Final = 3600

# Okabe and Ito's palette: told apart with every common kind of colour blindness.
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
BLACK: Final = "#000000"
PALE: Final = "#A9D5F3"
"""A tint of SKY, for the many against which the few must be seen."""
_USE_COLOURS: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
_INK: Final = "#333333"
_GRID: Final = "#DDDDDD"

_MOST_COLUMNS: Final = 1200
"""Most columns of counts that 1,600 pixels show apart; more bins than that are added up to wider ones."""


@dataclass(slots=True)
class UsageSamples:
    """What a runner saw at each bin, in order of time; columns of equal length.

    ``shares`` has for each resource class the share in use (0 to 1) after the bin's requests; the counts
    are of the bin's instances.
    """

    seconds: list[int] = field(default_factory=list)
    shares: dict[str, list[float]] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(
        self, second: int, shares: Mapping[str, float], *, placed: int, refused: int = 0, failed: int = 0
    ) -> None:
        """Add a bin that starts at ``second`` (virtual), after those before it.

        Raises ValueError if it does not, or if its resource classes are not those of the bins before it.
        """
        if self.seconds and second <= self.seconds[-1]:
            raise ValueError(f"a bin at {second}, but one at {self.seconds[-1]} before")
        if self.seconds and shares.keys() != self.shares.keys():
            raise ValueError(f"shares of {sorted(shares)}, but of {sorted(self.shares)} before")
        self.seconds.append(second)
        for resource_class, share in shares.items():
            self.shares.setdefault(resource_class, []).append(share)
        self.placed.append(placed)
        self.refused.append(refused)
        self.failed.append(failed)


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
    """Write the picture to ``path`` as a PNG of 1600 × 900 pixels. Raises ValueError without samples."""
    if not samples.seconds:
        raise ValueError("there are no samples to draw")
    # It takes most of a second to import, which only those who want a picture should pay.
    from matplotlib.figure import Figure

    # A figure without pyplot keeps nothing global, and its PNG is drawn by Agg wherever it runs.
    figure = Figure(figsize=(16, 9), dpi=100)
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    use, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_use(use, samples)
    _draw_counts(counts, samples)
    _plain(use)
    _plain(counts, stacked=True)
    counts.set_xlabel("virtual time, hours")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, color=_INK)
    figure.savefig(path, format="png", dpi=100)


def _draw_use(axes: "Axes", samples: UsageSamples) -> None:
    # What is in use after the last bin's requests stays so until that bin ends.
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
    width = _column_seconds(samples.seconds)
    column = (np.asarray(samples.seconds) - samples.seconds[0]) // width
    edges = np.arange(column[-1] + 2) * (width / HOUR)
    # The rare ones lowest, where they stand on the axis and can be read off.
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
    axes.set_ylabel(f"instances in {_duration(width)}")
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="y", integer=True)


def _column_seconds(seconds: Sequence[int]) -> int:
    """How much virtual time one column of counts covers: a bin, or as many as it takes to show them all."""
    width = _bin_seconds(seconds)
    bins = (seconds[-1] - seconds[0]) // width + 1
    return width * -(-bins // _MOST_COLUMNS)


def _bin_seconds(seconds: Sequence[int]) -> int:
    """The least time between bins, as some may be missing."""
    return int(np.diff(seconds).min()) if len(seconds) > 1 else BIN_SECONDS


def _summed(column: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.float64]:
    return np.bincount(column, weights=counts).astype(np.float64)


def _duration(seconds: int) -> str:
    for unit, length in (("h", HOUR), ("min", 60)):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _plain(axes: "Axes", stacked: bool = False) -> None:
    """Take away what carries no information; put the legend beside the data, in the order of a stack."""
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
