"""Series over time, as charts draw them: use, claims, decisions, states of hosts and instances."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from roost.dashboard import addresses
from roost.dashboard.page import PageQuery
from roost.dashboard.past.samples import HOUR, MINUTE, PastSample, by_time
from roost.dashboard.past.use_history import UseHistory
from roost.dashboard.service import DashboardService
from roost.web.errors import NotFound
from roost.web.request import Request

Shown = Literal["use", "claims", "decisions", "hosts", "instances"]
Span = Literal["hour", "day", "week", "month"]

SPANS: Final[dict[Span, tuple[int, int]]] = {
    "hour": (MINUTE, 60),
    "day": (MINUTE, 24 * 60),
    "week": (HOUR, 7 * 24),
    "month": (HOUR, 31 * 24),
}
"""Seconds between two values of a span, and the number of values."""

KEPT_SECONDS: Final = 20.0
"""Seconds for which a series is shown again."""


class SeriesQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of a series. ``resource_class``: of use."""

    of: Shown = "use"
    resource_class: Annotated[str, Meta(max_length=255)] = msgspec.field(name="class", default="VCPU")
    span: Span = "day"


class SeriesLine(msgspec.Struct, frozen=True):
    """A line of a chart. ``colour``: a custom property of the style. ``values``: None where not known."""

    name: str
    colour: str
    values: tuple[float | None, ...]
    area: bool = False
    dashed: bool = False


class SeriesView(msgspec.Struct, frozen=True, kw_only=True):
    """A chart, as its script takes it. ``x``: seconds since the epoch. ``href``: where a click leads.

    ``title`` and ``note``: what it shows, and what is not known.
    """

    title: str
    note: str
    of: Shown
    resource_class: str
    span: Span
    x: tuple[int, ...]
    series: tuple[SeriesLine, ...]
    unit: str
    low: float | None = 0.0
    high: float | None = None
    href: str = f"{addresses.ROOT}?at={{x}}.0"
    group: str = "past"


async def series_view(service: DashboardService, req: Request) -> SeriesView:
    """Return a series. Raises: `NotFound` for a resource class that no provider has."""
    query: SeriesQuery = req.query
    key = ("series", query.of, query.resource_class if query.of == "use" else "", query.span)
    return await service.kept(key, KEPT_SECONDS, lambda: _made(service, query))


async def _made(service: DashboardService, query: SeriesQuery) -> SeriesView:
    step, count = SPANS[query.span]
    end = int(service.clock()) // step * step
    times = tuple(range(end - (count - 1) * step, end + step, step))
    store = service.past.samples
    samples = by_time(store.minutes if step == MINUTE else store.hours, times, step)
    title, unit, note = _TITLES[query.of]
    if query.of == "use":
        title, unit = f"{query.resource_class} in use", query.resource_class
        lines = await _use(service, query.resource_class, times, step, samples)
    elif query.of == "claims":
        lines = await _claims(service, times, step)
    elif query.of == "decisions":
        lines = _counts(samples, step)
    elif query.of == "hosts":
        lines = tuple(_line(each, samples) for each in _HOSTS)
    else:
        lines = _instances(samples)
    return SeriesView(
        title=title,
        note=note,
        of=query.of,
        resource_class=query.resource_class,
        span=query.span,
        x=times,
        series=lines,
        unit=unit,
    )


async def _use(
    service: DashboardService,
    name: str,
    times: Sequence[int],
    step: int,
    samples: Sequence[PastSample | None],
) -> tuple[SeriesLine, ...]:
    history = await service.past.uses(times)
    if (
        history is not None
        and name not in history.used
        and not any(each is not None and name in each.use for each in samples)
    ):
        raise NotFound(f"No provider has {name}.")
    used: list[float | None] = []
    capacity: list[float | None] = []
    for place, (at, sample) in enumerate(zip(times, samples, strict=True)):
        known = _known(history, name, place, at)
        if known is None and sample is not None:
            known = sample.use.get(name)
        used.append(None if known is None else known[0])
        capacity.append(None if known is None else known[1])
    return (
        SeriesLine("used", "used", tuple(used), area=True),
        SeriesLine("capacity", "muted", tuple(capacity), dashed=True),
    )


def _known(history: UseHistory | None, name: str, place: int, at: int) -> tuple[float, float] | None:
    if history is None or at < history.since or name not in history.used:
        return None
    return float(history.used[name][place]), float(history.capacity[name][place])


async def _claims(service: DashboardService, times: Sequence[int], step: int) -> tuple[SeriesLine, ...]:
    history = await service.past.uses(times)
    values = [
        None
        if history is None or at - step < history.since
        else float(history.created[place]) * MINUTE / step
        for place, at in enumerate(times)
    ]
    if values:
        # All that came before the first time is counted in its step.
        values[0] = None
    return (SeriesLine("claims", "allocated", tuple(values), area=True),)


def _counts(samples: Sequence[PastSample | None], step: int) -> tuple[SeriesLine, ...]:
    def values(of: Callable[[PastSample], int | None]) -> tuple[float | None, ...]:
        found = (None if each is None else of(each) for each in samples)
        return tuple(None if each is None else each * MINUTE / step for each in found)

    return (
        SeriesLine("decisions", "accent", values(lambda each: each.runs), area=True),
        SeriesLine("refused", "fails", values(lambda each: each.refused)),
    )


_HOSTS: Final = (("up", "ok", 0), ("disabled", "muted", 1), ("down", "fails", 2))


def _line(each: tuple[str, str, int], samples: Sequence[PastSample | None]) -> SeriesLine:
    name, colour, number = each
    values = (None if sample is None or sample.hosts[0] < 0 else sample.hosts[number] for sample in samples)
    return SeriesLine(name, colour, tuple(values))


def _instances(samples: Sequence[PastSample | None]) -> tuple[SeriesLine, ...]:
    known = [None if each is None else each.instances for each in samples]
    states = sorted(
        {state for each in known for state in (each or {})}, key=lambda each: (each != "active", each)
    )
    colours = {"active": "used", "error": "fails", "building": "allocated"}
    return tuple(
        SeriesLine(
            state,
            colours.get(state, f"cat-{number % 6 + 1}"),
            tuple(None if each is None else each.get(state, 0) for each in known),
        )
        for number, state in enumerate(states)
    )


_OF_INDEX: Final = "By the index of the ledger's commits; older values are samples."
_SAMPLED: Final = "Looked at once a minute while this dashboard runs."
_TITLES: Final[dict[Shown, tuple[str, str, str]]] = {
    "use": ("Use", "", _OF_INDEX),
    "claims": ("Claims a minute", "a minute", "Consumers that came, by the index of the ledger's commits."),
    "decisions": ("Decisions a minute", "a minute", "Counted from the records, each minute."),
    "hosts": ("Hosts", "hosts", _SAMPLED),
    "instances": ("Instances", "instances", _SAMPLED),
}
