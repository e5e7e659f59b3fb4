"""Plots of reports."""

from pathlib import Path
from typing import Final

from roost.bench.replay.plot import BLUE, ORANGE, VERMILION
from roost.bench.report import BenchReport

_WAYS: Final = (
    ("loop_ms", "all hosts loaded, Python loop", VERMILION),
    ("where_ms", "SQL WHERE", ORANGE),
    ("fleet_ms", "Roost's fleet", BLUE),
)


def draw_filters(found: BenchReport, path: Path) -> None:
    """Draw the time of a request in each way over the number of hosts, on logarithmic axes, as a PNG."""
    # Imported here because the import takes as long as that of all other modules.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    hosts = [row["hosts"] for row in found.rows]
    for field, name, colour in _WAYS:
        times = [row[field] for row in found.rows]
        axes.plot(hosts, times, marker="o", color=colour)
        end = (hosts[-1], times[-1])
        axes.annotate(name, end, (0, 6), textcoords="offset points", color=colour, ha="right")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("hosts")
    axes.set_ylabel("ms for a request")
    axes.grid(color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
