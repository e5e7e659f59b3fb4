"""The screen of `roost top`: a view as tables."""

import time
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from roost.cli.tables import one_line
from roost.cli.top.figures import OperationFigures, TopFigures
from roost.cli.top.view import CapacityView, ResourceUse, View

NEARLY_FULL = 0.9
"""Share in use from which a resource class or a provider is shown in red."""

BAR = 20
"""Characters of a bar."""

_GAP = 2
_LEAST_NAME = 8

MOST_OPERATIONS = 12
"""Most operations that are shown; the most frequent ones are."""


def screen(view: View, has_metrics: bool, now: float) -> RenderableType:
    """Return the whole screen. ``has_metrics``: a metrics address was given. ``now``: epoch seconds."""
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    return Group(Text(f"{clock}  {headline(view)}"), tables(view, has_metrics, now))


def tables(view: View, has_metrics: bool, now: float) -> RenderableType:
    """Return all below the first line: the problems, then the tables. Arguments: as `screen`."""
    parts: list[RenderableType] = [Text(problem, style="bold red") for problem in view.problems]
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


def headline(view: View) -> str:
    """Return the numbers of the fleet, its version and the lag."""
    said = []
    if view.capacity is not None:
        said += [f"{view.capacity.trees:,} hosts", f"{view.capacity.providers:,} providers"]
        said.append(f"version {view.capacity.version:,}")
    if view.figures is not None and view.figures.lag_commits is not None:
        said.append(f"lag {view.figures.lag_commits:,.0f} commits")
    if view.figures is not None and view.figures.lag_seconds:
        said.append(f"{view.figures.lag_seconds:.1f} s")
    return ", ".join(said)


class _Fitted:
    """The first of some tables that fits the screen. In the last one names are cut so that it fits: a number
    that is cut would be another number."""

    def __init__(self, *tables: Table) -> None:
        self._tables = tables

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in self._tables:
            first, *others = map(_width, table.columns)
            rest = sum(others) + _GAP * len(others)
            if first + rest <= options.max_width:
                break
        table.columns[0].max_width = max(options.max_width - rest, _LEAST_NAME)
        yield table


def _width(column: Column) -> int:
    return max(cell_len(str(cell)) for cell in (column.header, *column.cells))


def _resources(capacity: CapacityView) -> RenderableType:
    names = ("resource class", "providers", "capacity", "used", "share", "")
    chosen = [range(6), [0, 2, 3, 4, 5], [0, 2, 3, 4]]
    variants = [_table(*(names[each] for each in places)) for places in chosen]
    for name, use in sorted(capacity.resources.items()):
        share = _share(use)
        style = "red" if share >= NEARLY_FULL else ""
        row = (
            name,
            f"{use.providers:,}",
            f"{use.capacity:,}",
            f"{use.used:,}",
            Text(f"{share:.1%}", style),
            Text(_bar(share), style),
        )
        for table, places in zip(variants, chosen, strict=True):
            table.add_row(*(row[each] for each in places))
    return _Fitted(*variants)


def _fullest(capacity: CapacityView) -> RenderableType:
    table = _table("fullest hosts", "class", "used", "capacity", "share")
    for each in capacity.fullest:
        share = each.used / max(each.capacity, 1)
        style = "red" if share >= NEARLY_FULL else ""
        cells = (f"{each.used:,}", f"{each.capacity:,}", Text(f"{share:.1%}", style))
        table.add_row(Text(one_line(each.name)), each.resource_class, *cells)
    return _Fitted(table)


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


def _operations(operations: list[OperationFigures]) -> RenderableType:
    table = _table("operation", "requests/s", "5xx/s", "p50 ms", "p99 ms")
    for each in operations[:MOST_OPERATIONS]:
        failed = Text(_number(each.failed), "bold red" if each.failed else "")
        table.add_row(each.operation, _number(each.rate), failed, _ms(each.p50), _ms(each.p99))
    if not operations:
        table.add_row(Text("no requests", "dim"))
    return _Fitted(table)


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
