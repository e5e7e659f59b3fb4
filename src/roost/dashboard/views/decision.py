"""A decision: its story from all hosts to the chosen ones, or why it was refused."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from roost.dashboard.page import PageQuery
from roost.dashboard.service import DashboardService
from roost.dashboard.views.funnel import FunnelStep, funnel_of
from roost.dashboard.views.outcome import DecisionOutcome, RecordedHost, outcome_of
from roost.dashboard.views.relaxed_form import form_address, relaxed_form
from roost.dashboard.views.request_form import RequestForm, form_of
from roost.model.reasons import Miss, ProposedMove, Reasons, RefusalCause, Relaxation, WeighedHost
from roost.model.record import Attempt, Run
from roost.model.spec import UnreadKey
from roost.model.visibility import Viewer, shown_whole, visible
from roost.records import RunWithAttempts, spec_of
from roost.records.errors import DamagedRecords
from roost.scheduler.api.records import record_of
from roost.scheduler.nodes.table import NodeTable
from roost.web.request import Request


class DecisionQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of a decision. ``as``: what its project sees of it."""

    viewed: Literal["project"] | None = msgspec.field(name="as", default=None)


class WeigherShare(msgspec.Struct, frozen=True):
    """The part of one weigher in the weight of a host: ``share`` is ``normalised`` times ``multiplier``."""

    weigher: str
    raw: float
    normalised: float
    multiplier: float
    share: float


class HostShares(msgspec.Struct, frozen=True):
    """One of the best hosts: the shares of the weighers add up to its weight. ``chosen``: instances are on
    it."""

    host: RecordedHost
    weight: float
    chosen: bool
    shares: tuple[WeigherShare, ...]


class PlacedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of the request, its attempts in order, and the alternates of its host, best first."""

    instance: str
    attempts: tuple[Attempt, ...]
    alternates: tuple[RecordedHost, ...] = ()


class MissedHost(msgspec.Struct, frozen=True):
    """A host that one condition alone kept from the request. ``node``: of the host, None if it is gone."""

    miss: Miss
    node: str | None


class WorkingCause(msgspec.Struct, frozen=True):
    """A condition without which the request would have been placed. ``node``: of its host, None if it is
    gone."""

    cause: RefusalCause
    node: str | None


class WayOut(msgspec.Struct, frozen=True):
    """A change with which the request would have been placed.

    ``node``: of the host, None if it is gone or not seen. ``address``: of the what-if with this change, None
    if its form cannot say it.
    """

    relaxation: Relaxation
    node: str | None
    address: str | None = None


class MovedInstance(msgspec.Struct, frozen=True):
    """A move that makes room. ``source``, ``target``: the nodes of its hosts, None if they are gone."""

    move: ProposedMove
    source: str | None
    target: str | None


class RefusalView(msgspec.Struct, frozen=True, kw_only=True):
    """Why instances of the request were not placed.

    ``hosts``: the number of all hosts. ``version``: the commit that the reasons were found on; None if
    unknown or not seen. ``complete``: False if the time ran out before all changes were tried.
    ``moves``: with which it would have fitted, in their order.
    """

    sentence: str
    placed: int = 0
    asked: tuple[str, ...] = ()
    hosts: int = 0
    causes: tuple[WorkingCause, ...] = ()
    misses: tuple[MissedHost, ...] = ()
    ways: tuple[WayOut, ...] = ()
    moves: tuple[MovedInstance, ...] = ()
    version: int | None = None
    complete: bool = True


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, as far as the viewer sees it.

    ``version``: the commit that it was decided on. ``of_project``: it is shown as its project sees it.
    """

    run: str
    request_id: str
    global_request_id: str | None
    project_id: str
    user_id: str
    spec: dict[str, object]
    at: float
    seconds: float
    outcome: DecisionOutcome
    instances: tuple[PlacedInstance, ...]
    funnel: tuple[FunnelStep, ...]
    shares: tuple[HostShares, ...]
    refusal: RefusalView | None
    warnings: tuple[UnreadKey, ...]
    version: int | None
    of_project: bool


# It is made of what the viewer may see of the record.
shown_whole(DecisionView)


async def decision_view(service: DashboardService, req: Request, run: str) -> DecisionView:
    """Return a decision. Raises `NotFound`."""
    record = await record_of(service.records, run, req.projects)
    viewer = Viewer.PROJECT if req.query.viewed == "project" else req.viewer
    return decision_of(visible(record, viewer), service.table, of_project=viewer is Viewer.PROJECT)


def decision_of(record: RunWithAttempts, table: NodeTable, *, of_project: bool) -> DecisionView:
    """Return the view of a record, or of the part of it that is seen. ``table``: has the uuids of hosts."""
    run = record.run
    chosen = {each.selected.node for each in run.destinations}
    return DecisionView(
        run=run.id,
        request_id=run.request_id,
        global_request_id=run.global_request_id,
        project_id=run.project_id,
        user_id=run.user_id,
        spec=run.spec,
        at=run.started_at,
        seconds=run.finished_at - run.started_at,
        outcome=outcome_of(record),
        instances=tuple(_placed(record)),
        funnel=funnel_of(run),
        shares=tuple(_shares(each, table, chosen) for each in _weighed(run)),
        refusal=_refusal(run, table, None if of_project else _form(run)),
        warnings=run.warnings,
        version=run.version,
        of_project=of_project,
    )


def causes_in(reasons: Reasons, table: NodeTable) -> Iterator[WorkingCause]:
    """Yield the causes of a refusal with the uuids of their hosts."""
    for each in reasons.causes:
        yield WorkingCause(each, None if each.host is None else node_of(table, each.host))


def ways_in(reasons: Reasons, table: NodeTable, form: RequestForm | None) -> Iterator[WayOut]:
    """Yield the changes that work, with the what-ifs that ask for them. ``form``: of the request."""
    for each in reasons.relaxations:
        changed = None if form is None else relaxed_form(form, each)
        yield WayOut(
            each,
            node_of(table, each.host) if each.host else None,
            None if changed is None else form_address(changed),
        )


def node_of(table: NodeTable, name: str) -> str | None:
    """Return the uuid of the root provider of a host, by its name in explanations; None if it is unknown.

    That is the name of the service, with the name of the node behind it if there are several.
    """
    index = table.index(name)
    if index is None and "/" in name:
        host, _, nodename = name.partition("/")
        index = table.index(host, nodename)
    return None if index is None else table.nodes[index]


def _placed(record: RunWithAttempts) -> Iterable[PlacedInstance]:
    alternates = {
        each.instance: tuple(RecordedHost(other.host, other.node) for other in each.alternates)
        for each in record.run.destinations
    }
    for instance in record.run.instances:
        attempts = tuple(each for each in record.attempts if each.instance == instance)
        yield PlacedInstance(instance=instance, attempts=attempts, alternates=alternates.get(instance, ()))


def _weighed(run: Run) -> tuple[WeighedHost, ...]:
    return run.weighed or (() if run.reasons is None else run.reasons.weighed)


def _shares(weighed: WeighedHost, table: NodeTable, chosen: set[str]) -> HostShares:
    node = node_of(table, weighed.host)
    shares = (
        WeigherShare(
            each.weigher, each.raw, each.normalised, each.multiplier, each.normalised * each.multiplier
        )
        for each in weighed.numbers
    )
    return HostShares(RecordedHost(weighed.host, node), weighed.weight, node in chosen, tuple(shares))


def _form(run: Run) -> RequestForm | None:
    """Return the request in the form of what-ifs; None if the record has none of this program."""
    try:
        return form_of(spec_of(run), run.id)
    except DamagedRecords:
        return None


def _refusal(run: Run, table: NodeTable, form: RequestForm | None) -> RefusalView | None:
    if run.refusal is None:
        return None
    reasons: Reasons | None = run.reasons
    if reasons is None:
        return RefusalView(sentence=run.refusal)
    return RefusalView(
        sentence=reasons.sentence,
        placed=reasons.placed,
        asked=reasons.query,
        hosts=reasons.hosts,
        causes=tuple(causes_in(reasons, table)),
        misses=tuple(MissedHost(each, node_of(table, each.host)) for each in reasons.misses),
        ways=tuple(ways_in(reasons, table, form)),
        moves=tuple(
            MovedInstance(each, node_of(table, each.source), node_of(table, each.target))
            for each in (() if reasons.move_search is None else reasons.move_search.moves)
        ),
        version=reasons.version,
        complete=reasons.complete,
    )
