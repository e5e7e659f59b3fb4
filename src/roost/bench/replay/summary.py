"""The figures of a replay: as a value, as plain data for ``--json``, and as a table."""

from collections.abc import Sequence

import msgspec
import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


class Latency(msgspec.Struct, frozen=True):
    """Percentiles of latencies, in milliseconds."""

    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> "Latency | None":
        """Return the percentiles of some latencies in milliseconds, or None if there are none."""
        if len(milliseconds) == 0:
            return None
        p50, p99 = np.percentile(milliseconds, (50, 99))
        return cls(float(p50), float(p99))


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a workload.

    ``requests`` ask for ``asked`` instances. Each instance was ``placed`` (``placed_on_alternate`` of them
    after a build failed on another host), or ``failed`` on every host that was tried, or was refused.
    ``refusals``: refused instances by reason. ``decisions``: instances for which the scheduler ran.
    ``departures``: deleted instances. ``peak_use``: the greatest share of each resource class in use at
    once, 0 to 1. ``peak_rss_mib``: peak memory in MiB. ``settling``: over HTTP, the time from the request
    for an instance until it is seen to be settled.
    """

    workload: str
    hosts: int
    cells: int
    requests: int
    asked: int
    placed: int
    placed_on_alternate: int
    failed: int
    refusals: dict[str, int]
    departures: int
    decisions: int
    wall_seconds: float
    peak_rss_mib: float
    peak_use: dict[str, float]
    decision: Latency | None = None
    claim: Latency | None = None
    settling: Latency | None = None
    seed: int | None = None

    @property
    def refused(self) -> int:
        """Instances that were refused, for any reason."""
        return sum(self.refusals.values())

    @property
    def unaccounted(self) -> int:
        """Instances that were neither placed, failed nor refused; 0 in a complete run."""
        return self.asked - self.placed - self.failed - self.refused

    @property
    def decisions_per_second(self) -> float:
        """Decisions in a second of wall time."""
        return _rate(self.decisions, self.wall_seconds)

    @property
    def changes_per_second(self) -> float:
        """Placements and departures in a second of wall time."""
        return _rate(self.placed + self.departures, self.wall_seconds)

    def to_dict(self) -> dict[str, object]:
        """Return all figures, with the derived ones, as plain data."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return plain | {
            "refused": self.refused,
            "unaccounted": self.unaccounted,
            "decisions_per_second": self.decisions_per_second,
            "changes_per_second": self.changes_per_second,
        }


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def render(summary: Summary) -> RenderableType:
    """Return the summary as a table."""
    seed = "" if summary.seed is None else f", seed {summary.seed}"
    hosts = f"{_count(summary.hosts, 'host')} in {_count(summary.cells, 'cell')}"
    if not summary.cells:
        hosts = "over HTTP"
    table = Table(
        title=Text(f"{summary.workload}: {hosts}{seed}"), show_header=False, title_justify="left", box=None
    )
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("share", justify="right", style="dim")
    for section in (_outcome(summary), _speed(summary), _use(summary)):
        for name, value, note in section:
            # rich takes a plain str as markup, and a reason may contain brackets.
            table.add_row(Text(name), Text(value), Text(note))
        table.add_section()
    return table


_Row = tuple[str, str, str]


def _outcome(summary: Summary) -> list[_Row]:
    def row(name: str, instances: int) -> _Row:
        return name, f"{instances:,}", f"{instances / summary.asked:.1%}" if summary.asked else ""

    reasons = sorted(summary.refusals.items(), key=lambda reason: (-reason[1], reason[0]))
    rows = [
        ("requests", f"{summary.requests:,}", ""),
        ("instances asked for", f"{summary.asked:,}", ""),
        row("  placed", summary.placed),
        row("    on an alternate", summary.placed_on_alternate),
        row("  failed on every host tried", summary.failed),
        row("  refused", summary.refused),
        *(row(f"    {reason}", instances) for reason, instances in reasons),
    ]
    if summary.unaccounted:
        rows.append(row("  unaccounted for", summary.unaccounted))
    return [*rows, ("departures", f"{summary.departures:,}", "")]


def _speed(summary: Summary) -> list[_Row]:
    return [
        ("decisions", f"{summary.decisions_per_second:,.0f} /s", ""),
        ("placements and departures", f"{summary.changes_per_second:,.0f} /s", ""),
        ("decision latency, p50 / p99", _milliseconds(summary.decision), ""),
        ("claim latency, p50 / p99", _milliseconds(summary.claim), ""),
        *([("asked to settled, p50 / p99", _milliseconds(summary.settling), "")] if summary.settling else []),
        ("wall time", f"{summary.wall_seconds:,.1f} s", ""),
        ("peak memory", f"{summary.peak_rss_mib:,.0f} MiB", ""),
    ]


def _use(summary: Summary) -> list[_Row]:
    return [(f"peak use of {name}", f"{share:.1%}", "") for name, share in sorted(summary.peak_use.items())]


def _milliseconds(latency: Latency | None) -> str:
    return "–" if latency is None else f"{latency.p50_ms:.2f} / {latency.p99_ms:.2f} ms"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
