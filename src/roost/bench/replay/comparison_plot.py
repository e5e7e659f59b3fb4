"""Plots settings side by side over one workload: hosts needed, empty hosts, refusals."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roost.bench.errors import PlotUnavailable
from roost.bench.replay.comparison import SettingOutcome
from roost.bench.replay.plot import (
    BLACK,
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    edges_of,
    scale_of,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
_LINES: Final = ("-", (0, (6, 2)), (0, (2, 1.5)), "-.", (0, (8, 2, 2, 2, 2, 2)), (0, (1, 1)), (0, (10, 3)))
"""Lines differ by their dashes too: settings of equal outcome lie on each other, and some readers print."""
_FORMATS: Final = ("png", "svg", "pdf")

_Series = Callable[[SettingOutcome], NDArray[np.float64]]
_Figure = Callable[[SettingOutcome], float]


def check_format(path: Path) -> str:
    """Return the format of a plot by the end of its name. Raises: `PlotUnavailable` for another one."""
    found = path.suffix.removeprefix(".").lower()
    if found not in _FORMATS:
        raise PlotUnavailable(f"--plot {path}: the name must end in one of .{', .'.join(_FORMATS)}")
    return found


def draw_comparison(
    outcomes: Sequence[SettingOutcome], path: Path, title: str, in_order: bool = False
) -> None:
    """Write the plot to ``path``: above, over time; below, the figure of the whole replay of each setting.

    ``in_order``: the seconds of the samples are positions in the order of arrival, not times.

    Raises: `PlotUnavailable` for a name of an unknown format.
    """
    kind = check_format(path)
    from matplotlib.figure import Figure

    # A line of names below the title, and a bar for each setting.
    height = 5.6 + 0.36 * len(outcomes)
    figure = Figure(figsize=(16, height), dpi=100)
    figure.set_layout_engine("constrained", h_pad=0.1, w_pad=0.14)
    lines, bars = figure.subplots(2, 3, height_ratios=(4.4, 0.36 * len(outcomes) + 0.3))
    columns: tuple[tuple[str, str, _Series, str, _Figure], ...] = (
        ("Hosts needed", "most hosts in use at once so far", _needed, "of the whole replay", _all_needed),
        ("Empty hosts", "hosts without an instance", _empty, "mean over time", lambda each: each.empty_mean),
        ("Refusals", "refused instances so far", _refused, "in all", lambda each: each.summary.refused),
    )
    for column, (name, what, series, of_all, figure_of) in enumerate(columns):
        _draw_lines(lines[column], outcomes, series, in_order)
        lines[column].set_title(name, loc="left", fontsize=14, fontweight="bold", color=INK, pad=22)
        lines[column].text(0, 1.02, what, transform=lines[column].transAxes, color=INK, fontsize=10.5)
        _draw_bars(bars[column], outcomes, figure_of, of_all, named=column == 0)
    bound = np.maximum.accumulate(np.max([each.samples.fewest for each in outcomes], axis=0))
    edges = edges_of(outcomes[0].samples, scale_of(outcomes[0].samples, in_order))
    label = "at least, by the amounts in use"
    lines[0].fill_between(edges, [*bound, bound[-1]], step="post", color="#E8E8E8", linewidth=0, zorder=0)
    lines[0].annotate(
        label, (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom", color="#666666", fontsize=9.5
    )
    figure.suptitle(title, x=0.012, ha="left", fontsize=15, color=INK)
    figure.savefig(path, format=kind, dpi=100)


def _needed(outcome: SettingOutcome) -> NDArray[np.float64]:
    return np.maximum.accumulate(np.asarray(outcome.samples.in_use, dtype=np.float64))


def _all_needed(outcome: SettingOutcome) -> float:
    return outcome.hosts_needed


def _empty(outcome: SettingOutcome) -> NDArray[np.float64]:
    return outcome.summary.hosts - np.asarray(outcome.samples.in_use, dtype=np.float64)


def _refused(outcome: SettingOutcome) -> NDArray[np.float64]:
    return np.cumsum(outcome.samples.refused).astype(np.float64)


def _draw_lines(axes: "Axes", outcomes: Sequence[SettingOutcome], series: _Series, in_order: bool) -> None:
    for number, outcome in enumerate(outcomes):
        scale = scale_of(outcome.samples, in_order)
        values = series(outcome)
        axes.plot(
            edges_of(outcome.samples, scale),
            [*values, values[-1]],
            color=_COLOURS[number],
            linestyle=_LINES[number],
            linewidth=1.8,
            drawstyle="steps-post",
        )
        axes.set_xlabel(scale.label)
    axes.set_ylim(bottom=0, top=max(1.0, 1.06 * axes.get_ylim()[1]))
    axes.locator_params(axis="y", integer=True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    style_axes(axes)


def _draw_bars(
    axes: "Axes", outcomes: Sequence[SettingOutcome], figure_of: _Figure, of_all: str, *, named: bool
) -> None:
    """Draw the figure of each setting as a bar with its number. ``named``: the names are beside the bars."""
    places = np.arange(len(outcomes))
    numbers = [figure_of(each) for each in outcomes]
    axes.barh(places, numbers, height=0.62, color=_COLOURS[: len(outcomes)])
    most = max(numbers)
    axes.set_xlim(0, 1.2 * most if most else 1)
    for place, number in zip(places, numbers, strict=True):
        text = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
        axes.annotate(
            text,
            (number, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize=11,
        )
    axes.set_ylim(len(outcomes) - 0.5, -0.5)
    axes.set_yticks(places, [each.name for each in outcomes] if named else [""] * len(outcomes), fontsize=11)
    axes.set_xticks([])
    axes.set_title(of_all, loc="left", fontsize=10.5, color=INK)
    axes.tick_params(left=False, colors=INK)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(INK)
