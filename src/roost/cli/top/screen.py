"""The screen of `roost top`: a view as tables."""

import time
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from roost.cli.top.figures import OperationFigures, TopFigures
from roost.cli.top.view import CapacityView, ResourceUse, View

NEARLY_FULL = 0.9
"""Share in use from which a resource class or a provider is shown in red."""

BAR = 20
"""Characters of a bar."""

MOST_OPERATIONS = 12
"""Most operations that are shown; the most frequent ones are."""


def screen(view: View, has_metrics: bool, now: float) -> RenderableType:
    """Return the whole screen. ``has_metrics``: a metrics address was given. ``now``: epoch seconds."""
    parts: list[RenderableType] = [Text(time.strftime("%H:%M:%S", time.localtime(now)) + _headline(view))]
    parts += [Text(problem, style="bold red") for problem in view.problems]
    if view.problems and (view.capacity is not None or view.figures is not None):
        parts.append(Text("Its values are those of its last answer.", "red"))
    parts.append("")
    if view.capacity is not None:
        parts += [_resources(view.capacity), "", _fullest(view.capacity), ""]
    if view.figures is not None:
        parts += _figures(view.figures, now)
    elif has_metrics:
        parts.append(Text("Rates follow from two samples of the metrics.", "dim"))
    else:
        parts.append(
            Text("No rates: start the service with --metrics-port, and give the address as --metrics.", "dim")
        )
    return Group(*parts)


def _headline(view: View) -> str:
    said = []
    if view.capacity is not None:
        said += [f"{view.capacity.trees:,} hosts", f"{view.capacity.providers:,} providers"]
        said.append(f"version {view.capacity.version:,}")
    if view.figures is not None and view.figures.lag_commits is not None:
        said.append(f"lag {view.figures.lag_commits:,.0f} commits")
    if view.figures is not None and view.figures.lag_seconds:
        said.append(f"{view.figures.lag_seconds:.1f} s")
    return "  " + ", ".join(said)


def _resources(capacity: CapacityView) -> Table:
    table = _table("resource class", "providers", "capacity", "used", "share", "")
    for name, use in sorted(capacity.resources.items()):
        share = _share(use)
        style = "red" if share >= NEARLY_FULL else ""
        table.add_row(
            name,
            f"{use.providers:,}",
            f"{use.capacity:,}",
            f"{use.used:,}",
            Text(f"{share:.1%}", style),
            Text(_bar(share), style),
        )
    return table


def _fullest(capacity: CapacityView) -> Table:
    table = _table("fullest hosts", "class", "used", "capacity", "share")
    for each in capacity.fullest:
        share = each.used / max(each.capacity, 1)
        style = "red" if share >= NEARLY_FULL else ""
        cells = (f"{each.used:,}", f"{each.capacity:,}", Text(f"{share:.1%}", style))
        table.add_row(Text(each.name), each.resource_class, *cells)
    return table


def _figures(figures: TopFigures, now: float) -> list[RenderableType]:
    levels = Text("  ").join(
        Text(f"{name} {_number(value)}")
        for name, value in (
            ("in flight", figures.in_flight),
            ("waiting for a commit", figures.waiting),
            ("commits/s", figures.commits),
            ("outruns/s", figures.outruns),
            ("reloads/s", figures.reloads),
        )
    )
    return [
        levels,
        "",
        _operations(figures.operations),
        "",
        *_warnings(figures),
        Text.assemble(_rates("decisions", figures.decisions), _latency(figures)),
        _rates("refusals by cause", figures.refusals),
        "",
        _processes(figures, now),
    ]


def _operations(operations: list[OperationFigures]) -> Table:
    table = _table("operation", "requests/s", "5xx/s", "p50 ms", "p99 ms")
    for each in operations[:MOST_OPERATIONS]:
        failed = Text(_number(each.failed), "bold red" if each.failed else "")
        table.add_row(each.operation, _number(each.rate), failed, _ms(each.p50), _ms(each.p99))
    if not operations:
        table.add_row(Text("no requests", "dim"))
    return table


def _warnings(figures: TopFigures) -> Iterator[RenderableType]:
    for name in figures.failing:
        yield Text(f"not ready: check {name} fails, see /readyz", style="bold red")
    if any(figures.overload.values()):
        yield Text(_rates("refused with 503 at a limit", figures.overload).plain, style="bold red")


def _latency(figures: TopFigures) -> str:
    if figures.decision_p50 is None:
        return ""
    return f"; p50 {_ms(figures.decision_p50)} ms, p99 {_ms(figures.decision_p99)} ms"


def _rates(title: str, rates: Mapping[str, float]) -> Text:
    shown = [f"{name} {_number(rate)}/s" for name, rate in rates.items() if rate]
    return Text(f"{title}: {', '.join(shown) or 'none'}")


def _processes(figures: TopFigures, now: float) -> Table:
    table = _table("process", "up", "CPU", "memory MiB")
    for each in figures.processes:
        up = "" if each.started is None else _duration(now - each.started)
        cpu = "" if each.cpu is None else f"{each.cpu:.0%}"
        memory = "" if each.memory is None else f"{each.memory / 2**20:,.0f}"
        table.add_row(each.process, up, cpu, memory)
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="left" if name in ("class", "") else "right", no_wrap=True)
    return table


def _share(use: ResourceUse) -> float:
    return use.used / max(use.capacity, 1)


def _bar(share: float) -> str:
    filled = min(BAR, round(share * BAR))
    return "█" * filled + "░" * (BAR - filled)


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.1f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
