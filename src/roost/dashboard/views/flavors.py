"""The flavors that are in use, with how many of each fit now."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.dashboard.flavor_counts import MOST_PLACED, FlavorCount, flavor_key
from roost.dashboard.page import PageQuery
from roost.dashboard.service import DashboardService
from roost.dashboard.views.decision import WorkingCause, causes_in
from roost.dashboard.views.relaxed_form import form_address
from roost.dashboard.views.request_form import form_of, new_spec
from roost.model.spec import Flavor, RequestSpec
from roost.records import Search, SearchableRecords
from roost.records.records import CountableRecords
from roost.scheduler.api.records import OWN_SECONDS
from roost.scheduler.errors import SchedulerError
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database.instance_search import read_flavors
from roost.web.request import Request

MOST_FLAVORS = 40
"""Flavors on the page: those that most runs asked for, and most instances have."""
MOST_RUNS = 2_000
"""Newest runs whose flavors are counted."""
MOST_RUNS_READ = 200
"""Newest runs that are read of records that cannot count."""
MOST_INSTANCES = 5_000
"""Instances of each cell whose flavors are counted."""
FOUND_SECONDS = 30.0
"""Seconds after which flavors are looked for again."""


class FlavorsQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the page. ``count``: one flavor that is due is counted first."""

    count: bool = False
    search: Annotated[str, Meta(max_length=200)] = ""


class FlavorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A flavor. ``runs``: that asked for it lately. ``instances``: that have it, of those looked at.

    ``fit``: None if it is not counted yet. ``due``: it is, or its count is old. ``causes``: what keeps the
    next one away. ``address``: of the what-if with this flavor.
    """

    flavor: Flavor
    runs: int
    instances: int
    fit: FlavorCount | None
    due: bool
    causes: tuple[WorkingCause, ...]
    address: str


class FlavorsView(msgspec.Struct, frozen=True, kw_only=True):
    """The flavors that are in use. ``others``: further ones, not shown. ``at``: seconds since the epoch."""

    at: float
    search: str
    flavors: tuple[FlavorRow, ...]
    others: int = 0


class UsedFlavor(msgspec.Struct, frozen=True):
    """A flavor with the number of runs and of instances."""

    flavor: Flavor
    runs: int
    instances: int


async def flavors_view(service: DashboardService, req: Request) -> FlavorsView:
    """Return the flavors that are in use. With ``count`` a flavor that is due is counted first."""
    query: FlavorsQuery = req.query
    found = await service.kept("used flavors", FOUND_SECONDS, lambda: used_flavors(service))
    sought = [each for each in found if query.search.lower() in each.flavor.name.lower()]
    shown = sought[:MOST_FLAVORS]
    fits = service.flavor_counts
    if query.count:
        due = [each for each in shown if _is_due(service, each.flavor)]
        # Those without a count first.
        due.sort(key=lambda each: fits.of(each.flavor) is not None)
        for each in due[:1]:
            await _count(service, each.flavor)
    return FlavorsView(
        at=service.clock(),
        search=query.search,
        flavors=tuple(_row(service, each) for each in shown),
        others=len(sought) - len(shown),
    )


def _row(service: DashboardService, used: UsedFlavor) -> FlavorRow:
    fit = service.flavor_counts.of(used.flavor)
    answer = None if fit is None else fit.answer
    binds = None if answer is None else answer.binds
    return FlavorRow(
        flavor=used.flavor,
        runs=used.runs,
        instances=used.instances,
        fit=fit,
        due=_is_due(service, used.flavor),
        causes=() if binds is None else tuple(causes_in(binds, service.table)),
        address=form_address(form_of(_spec(used.flavor))),
    )


def _is_due(service: DashboardService, flavor: Flavor) -> bool:
    version = None if service.ledger is None else service.ledger.known().version
    return service.flavor_counts.is_due(flavor, service.clock(), (version, service.table.version))


async def _count(service: DashboardService, flavor: Flavor) -> None:
    async def make() -> FlavorCount:
        try:
            answer = await service.scheduler.what_if(_spec(flavor), MOST_PLACED)
        except SchedulerError as error:
            return FlavorCount(at=service.clock(), failure=str(error))
        failure = "it could not be counted now" if answer is None else None
        return FlavorCount(at=service.clock(), answer=answer, failure=failure)

    await service.flavor_counts.count(flavor, lambda: _is_due(service, flavor), make)


def _spec(flavor: Flavor) -> RequestSpec:
    return msgspec.structs.replace(new_spec("flavors", "flavors"), flavor=flavor)


async def used_flavors(service: DashboardService) -> tuple[UsedFlavor, ...]:
    """Return the flavors of recent runs and of present instances, those in most use first.

    Raises: `RecordsError`.
    """
    runs, instances = await asyncio.gather(_of_runs(service), _of_instances(service))
    flavors: dict[str, Flavor] = {}
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for found, count in zip((runs, instances), counts, strict=True):
        for flavor, number in _decoded(found):
            key = flavor_key(flavor)
            flavors[key] = flavor
            count[key] += number
    ordered = sorted(flavors, key=lambda key: (-counts[0][key] - counts[1][key], key))
    return tuple(UsedFlavor(flavors[key], counts[0][key], counts[1][key]) for key in ordered)


async def _of_runs(service: DashboardService) -> Mapping[bytes, int]:
    await service.records.flush(OWN_SECONDS)
    backend = service.records.backend
    if isinstance(backend, CountableRecords):
        return await backend.flavor_counts(MOST_RUNS)
    found: Counter[bytes] = Counter()
    if isinstance(backend, SearchableRecords):
        for each in await backend.find(Search(), MOST_RUNS_READ):
            if "flavor" in each.run.spec:
                found[msgspec.json.encode(each.run.spec["flavor"])] += 1
    return found


async def _of_instances(service: DashboardService) -> Mapping[bytes, int]:
    total: Counter[bytes] = Counter()
    cells = {} if service.cloud is None else service.cloud.cells
    for found in await asyncio.gather(
        *(ask_cell(cell, read_flavors(MOST_INSTANCES)) for cell in cells.values())
    ):
        total.update(found or {})
    return total


_flavor = msgspec.json.Decoder(Flavor)


def _decoded(found: Mapping[bytes, int]) -> Iterable[tuple[Flavor, int]]:
    for text, number in found.items():
        try:
            yield _flavor.decode(text), number
        except msgspec.DecodeError:
            # A flavor of another program, or one with parts that look like secrets.
            continue
